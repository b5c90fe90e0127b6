"""The states of an automaton gathered by where they come from, so that 20,000 of them fit into a picture.

A group is the states of a part of the source; where the source says no more it is cut by how far from the start its
states lie, a loop in one piece where it fits. Groups nest: a group that is opened is split again, until its states,
with literals as one, can be drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from viz import labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from viz.graph import Graph
    from viz.outline import Section

GROUPS = 24
"""Groups of one picture: what can be read at once."""
LARGE_SHARE = 4
"""A part that holds more than this share of the states is divided at once."""
WINDOW_STATES = 60
"""States of one picture: what can be laid out in less than a quarter of a second."""


@dataclass(frozen=True, eq=False)
class Group:
    """States that belong together.

    Attributes:
        name: of the part of the source that they come from; empty for the whole.
        note: what tells it from other groups of that name.
        span: of that part.
        states: int, ascending.
        sections: numbers of the sections whose states they are; none where the source divides them no further.
    """

    name: str
    note: str
    span: tuple[int, int]
    states: np.ndarray
    sections: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Atlas:
    """A graph whose states know their place in the outline of the source."""

    graph: Graph
    outline: Section

    @cached_property
    def sections(self) -> tuple[list[Section], np.ndarray]:
        """Return all sections, a section before its parts, and behind which number its last part ends."""
        found: list[Section] = []
        last: dict[int, int] = {}
        waiting: list[Section | int] = [self.outline]
        while waiting:
            match waiting.pop():
                case int(number):
                    last[number] = len(found)
                case section:
                    waiting += [len(found), *reversed(section.parts)]
                    found.append(section)
        return found, np.asarray([last[n] for n in range(len(found))])

    @cached_property
    def place(self) -> np.ndarray:
        """Int `[states]`: number of the smallest section that holds all that a state can write next."""
        numbers = {id(section): n for n, section in enumerate(self.sections[0])}
        known: dict[tuple[tuple[int, int], ...], int] = {}
        for spans in set(self.graph.origins):
            written = [span for span in spans if span[1] > span[0]]
            start, stop = min((a for a, _ in written), default=0), max((b for _, b in written), default=0)
            known[spans] = numbers[id(_around(self.outline, start, stop))] if written else 0
        return np.asarray([known[spans] for spans in self.graph.origins])

    @property
    def whole(self) -> Group:
        """All states."""
        return self._of((0,), np.arange(self.graph.states))

    def split(self, group: Group) -> list[Group]:
        """Divide a group into two to `GROUPS`, each state into one of them; one that can't be divided is returned."""
        if not group.sections:
            return self._by_depth(group)
        # What holds most of the states would hide the rest; parts alike stay alike.
        share = group.states.size / LARGE_SHARE
        parts, closed = [group], False
        while not closed:
            largest = max(parts, key=lambda g: g.states.size if g.sections else 0)
            inner = self._runs(self._opened(largest), GROUPS + 1 - len(parts)) if largest.sections else []
            closed = len(inner) < 2 or (len(parts) > 1 and largest.states.size <= share)
            if not closed:
                at = parts.index(largest)
                parts[at : at + 1] = inner
        return parts

    def trail(self, path: Sequence[int]) -> list[Group]:
        """Return the groups that a path of numbers leads through, the whole first; as far as there are such."""
        found = [self.whole]
        for depth, number in enumerate(path):
            parts = self.parts(tuple(path[:depth]), found[-1])
            if len(parts) < 2 or not 0 <= number < len(parts):
                break
            found.append(parts[number])
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, ...], list[Group]]:
        return {}

    def parts(self, path: tuple[int, ...], group: Group) -> list[Group]:
        """Return the groups that a group divides into, remembered by its path."""
        if path not in self._known:
            self._known[path] = self.split(group)
        return self._known[path]

    def _of(self, sections: tuple[int, ...], states: np.ndarray) -> Group:
        """Return the group of some sections' states; a section that one part takes whole is that part."""
        found, last = self.sections
        if len(sections) > 1:
            first, end = found[sections[0]], found[sections[-1]]
            note = f"to {end.name} · {len(sections)} parts"
            return Group(first.name, note, (first.start, end.stop), states, sections)
        number = sections[0]
        places = self.place[states]
        while True:
            part = next((n for n in self._parts(number) if places.min() >= n and places.max() < last[n]), None)
            if part is None:
                break
            number = part
        section = found[number]
        divided = bool((places != number).any())
        return Group(section.name, "", (section.start, section.stop), states, (number,) if divided else ())

    def _parts(self, number: int) -> Iterator[int]:
        """Yield the numbers of a section's parts."""
        _, last = self.sections
        inner = number + 1
        while inner < last[number]:
            yield inner
            inner = int(last[inner])

    def _opened(self, group: Group) -> list[Group]:
        """Return the parts that a group has in the source, and first what lies between them."""
        _, last = self.sections
        several = len(group.sections) > 1
        numbers = group.sections if several else tuple(self._parts(group.sections[0]))
        starts = np.asarray([*numbers, last[numbers[-1]]])
        within = np.searchsorted(starts, self.place[group.states], "right") - 1
        own = group.states[within < 0]
        between = [replace(group, note="between its parts", states=own, sections=())] if own.size else []
        inner = np.unique(within[within >= 0]).tolist()
        return [*between, *(self._of((numbers[n],), group.states[within == n]) for n in inner)]

    def _runs(self, parts: list[Group], most: int) -> list[Group]:
        """Join neighbours in the source to runs of about as many states each where they are more than `most`."""
        between, named = [g for g in parts if g.note], [g for g in parts if not g.note]
        room = most - len(between)
        if len(named) <= room or room < 2:
            return parts if len(named) <= room else []
        before = np.cumsum([0, *(g.states.size for g in named)])
        run = np.minimum(before[:-1] * room // before[-1], room - 1)
        return [*between, *(self._joined([named[k] for k in np.flatnonzero(run == n)]) for n in np.unique(run))]

    def _joined(self, some: list[Group]) -> Group:
        """Return neighbours in the source as one group."""
        states = np.sort(np.concatenate([g.states for g in some]))
        return some[0] if len(some) == 1 else self._of(tuple(self._section_of(g) for g in some), states)

    def _section_of(self, group: Group) -> int:
        """Return the number of the section that a group of one section is of."""
        return group.sections[0] if group.sections else int(self.place[group.states[0]])

    def _by_depth(self, group: Group) -> list[Group]:
        """Cut a group by how many moves from the start its states lie; a loop stays whole where it fits."""
        count = min(GROUPS, max(2, -(-group.states.size // WINDOW_STATES)))
        if group.states.size < count:
            return [group]
        target = -(-group.states.size // count)
        pieces: list[list[int]] = [[]]
        for states in self._loops(group.states, target):
            if pieces[-1] and len(pieces[-1]) + len(states) > target and len(pieces) < GROUPS:
                pieces.append([])
            pieces[-1] += states
        ranges = [self.graph.depths[piece] for piece in pieces]
        notes = [_between(int(depth.min()), int(depth.max())) for depth in ranges]
        return [
            replace(group, note=note if notes.count(note) == 1 else f"{note} · {n + 1}", states=np.sort(piece))
            for n, (piece, note) in enumerate(zip(pieces, notes, strict=True))
        ]

    def _loops(self, states: np.ndarray, most: int) -> list[list[int]]:
        """Return some states as they are reached, those of one loop together, but in pieces of at most `most`."""
        depth = self.graph.depths
        by_loop: dict[int, list[int]] = {}
        for q in states[np.lexsort((states, depth[states]))].tolist():
            by_loop.setdefault(int(self.graph.loop[q]), []).append(q)
        pieces = [loop[n : n + most] for loop in by_loop.values() for n in range(0, len(loop), most)]
        return sorted(pieces, key=lambda piece: (depth[piece[0]], piece[0]))


def _between(first: int, last: int) -> str:
    return f"{first} moves in" if first == last else f"{first}–{last} moves in"


def _around(section: Section, start: int, stop: int) -> Section:
    """Return the smallest section that holds a span."""
    while True:
        at = bisect_right(section.parts, start, key=lambda part: part.start) - 1
        if at < 0 or section.parts[at].stop < stop:
            return section
        section = section.parts[at]


@dataclass(frozen=True)
class Chain:
    """States of which each leads to the next alone, and what they write.

    Attributes:
        states: in order.
        text: what is written from the first to the last, as a reader sees it.
    """

    states: tuple[int, ...]
    text: str


def chains(graph: Graph, states: np.ndarray) -> list[Chain]:
    """Join states with one way out and one way in; every state is in one chain, most of them alone.

    The way is one where a single edge leads from one state to the next, and where all tokens that leave the one begin
    with what the shortest of them writes, and all that enter the other end with it: tokens of several characters are
    shortcuts through a literal, and don't make it a choice.
    """
    inside = set(states.tolist())
    following = {q: link for q in states.tolist() if (link := _link(graph, q)) and link[0] in inside}
    entered = {target for target, _ in following.values()}
    found, seen = [], set()
    # What is entered from elsewhere begins a chain; a ring of links has no beginning, and is cut at its lowest state.
    for q in [*(q for q in states.tolist() if q not in entered), *states.tolist()]:
        if q in seen:
            continue
        members, parts = [q], []
        seen.add(q)
        while members[-1] in following and following[members[-1]][0] not in seen:
            target, part = following[members[-1]]
            members.append(target)
            parts.append(part)
            seen.add(target)
        found.append(Chain(tuple(members), _spelled(parts)))
    return found


def _link(graph: Graph, q: int) -> tuple[int, bytes | str] | None:
    """Return the one state that follows, and what leads there: text, or a set of tokens in a few characters."""
    out = range(graph.ptr[q], graph.ptr[q + 1])
    if graph.accepting[q] or q == graph.start or not out:
        return None
    written = [(text, int(graph.target[e])) for e in out for text in graph.texts(e) or [b""]]
    shortest, target = min(written, key=lambda pair: len(pair[0]))
    entering = graph.entering(target)
    if target in (q, graph.start):
        return None
    if len(out) == 1 and entering.size == 1:
        return target, shortest if len(written) == 1 and shortest else graph.label(out)
    ends = [text for e in entering.tolist() for text in graph.texts(e) or [b""]]
    one = shortest and all(text.startswith(shortest) for text, _ in written) and all(t.endswith(shortest) for t in ends)
    return (target, shortest) if one else None


def _spelled(parts: Sequence[bytes | str]) -> str:
    """Join texts, and in brackets sets of tokens with how often they stand in a row."""
    words: list[str] = []
    begins = [n for n in range(len(parts)) if n == 0 or not _same(parts[n - 1], parts[n])]
    for start, stop in pairwise([*begins, len(parts)]):
        run = parts[start:stop]
        if isinstance(run[0], bytes):
            words.append(labels.visible(labels.readable(b"".join(p for p in run if isinstance(p, bytes)))))
        else:
            words.append(f"[{run[0]}]" if len(run) == 1 else f"[{run[0]}]×{len(run)}")
    return " ".join(words)


def _same(one: bytes | str, other: bytes | str) -> bool:
    return isinstance(one, bytes) if isinstance(other, bytes) else one == other
