"""Bytes that a constraint needs and no token can write where they are needed."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import effort
from engine.diagnosis import schema, strings
from engine.diagnosis.subject import finding_at, named, places_of, quoted
from engine.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints import Constraint
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

MARKERS = {"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"}
"""How tokenizers spell blanks inside; a token that holds such a mark was not decoded."""

Pair = tuple[int, int]
"""A state of the byte automaton and a node of the trie: how far a token has been written, 0 at a token's end."""
ByteEdge = tuple[int, int]
"""A state of the byte automaton and the byte class that leaves it."""


@dataclass(eq=False)
class Walk:
    """The byte automaton, walked by the tokens of a vocabulary.

    Attributes:
        reached: states that some beginning of tokens writes its way to.
        begun: byte edges that some token takes, whether or not it leads anywhere.
        finished: byte edges on the way of some accepted text that tokens write.
    """

    walker: strings.Walker
    vocabulary: Vocabulary
    reached: set[int] = field(default_factory=set)
    begun: set[ByteEdge] = field(default_factory=set)
    finished: set[ByteEdge] = field(default_factory=set)

    def run(self) -> Walk:
        """Visit every pair of a state and a trie node, forwards from the start and then backwards from acceptance."""
        trie = self.vocabulary.trie
        children: list[list[tuple[int, int]]] = [[] for _ in range(trie.parent.size)]
        for node in range(1, trie.parent.size):
            children[trie.parent[node]].append((int(self.walker.automaton.byte_class[trie.byte[node]]), node))
        ends = set(trie.node.tolist()) - {0}
        first = (self.walker.automaton.start, 0)
        before: dict[Pair, list[tuple[Pair, ByteEdge | None]]] = {first: []}
        queue = deque([first])
        while queue:
            pair = queue.popleft()
            effort.spend(4 + 0.2 * len(children[pair[1]]))
            for following, edge in self._from(pair, children, ends):
                effort.spend(2)
                if following not in before:
                    before[following] = []
                    queue.append(following)
                before[following].append((pair, edge))
        self.reached = {state for state, _ in before}
        self._back(before)
        return self

    def _from(
        self, pair: Pair, children: list[list[tuple[int, int]]], ends: set[int]
    ) -> Iterable[tuple[Pair, ByteEdge | None]]:
        state, node = pair
        if node in ends:
            yield (state, 0), None
        moves = self.walker.targets(state)
        for symbol, child in children[node]:
            if symbol in moves:
                self.begun.add((state, symbol))
                for target in moves[symbol]:
                    yield (target, child), (state, symbol)

    def _back(self, before: dict[Pair, list[tuple[Pair, ByteEdge | None]]]) -> None:
        accepting = self.walker.automaton.accepting
        live = {pair for pair in before if pair[1] == 0 and accepting[pair[0]]}
        stack = list(live)
        while stack:
            for pair, edge in before[stack.pop()]:
                if edge is not None:
                    self.finished.add(edge)
                if pair not in live:
                    live.add(pair)
                    stack.append(pair)

    def unwritten(self) -> Iterable[tuple[ByteEdge, set[int]]]:
        """Yield the byte edges that no token takes though tokens lead there, with the leaves that they are of.

        A character of a class that no token has is nothing to report; a part that no token writes is.
        """
        automaton = self.walker.automaton
        written = {leaf for at in self._of(self.finished) for leaf in automaton.origin_sets[automaton.origin[at]]}
        taken = np.zeros(automaton.source.size, bool)
        taken[self._of(self.begun)] = True
        reached = np.zeros(automaton.states, bool)
        reached[list(self.reached)] = True
        leaves: dict[ByteEdge, set[int]] = {}
        for at in np.flatnonzero(~taken & reached[automaton.source]).tolist():
            edge = int(automaton.source[at]), int(automaton.symbol[at])
            leaves.setdefault(edge, set()).update(automaton.origin_sets[automaton.origin[at]])
        return ((edge, found) for edge, found in leaves.items() if not found & written)

    def _of(self, edges: set[ByteEdge]) -> list[int]:
        """Return the moves of some byte edges."""
        automaton = self.walker.automaton
        wanted = np.asarray([state * automaton.byte_classes + symbol for state, symbol in edges], np.int64)
        keys = automaton.source.astype(np.int64) * automaton.byte_classes + automaton.symbol
        return np.flatnonzero(np.isin(keys, wanted)).tolist()


def every_byte_has_a_token(walker: strings.Walker, vocabulary: Vocabulary) -> bool:
    """Whether a token of its own writes each byte that the language uses; then no text is out of reach."""
    used = np.isin(walker.automaton.byte_class, walker.moves[1])
    single = {data[0] for data in vocabulary.token_bytes if data is not None and len(data) == 1}
    return set(np.flatnonzero(used).tolist()) <= single


def findings(constraint: Constraint, vocabulary: Vocabulary) -> list[Finding]:
    """Find what the constraint needs and the vocabulary can't write: everything, or whole parts of the source.

    Raises:
        OutOfStepsError: a limit of work is passed before all pairs of a state and a beginning of a token are seen.
    """
    automaton = constraint.automaton
    walker = strings.Walker(automaton)
    if every_byte_has_a_token(walker, vocabulary):
        return []
    walk = Walk(walker, vocabulary).run()
    out: dict[tuple[Place, ...], Finding] = {}
    for edge, leaves in walk.unwritten():
        places = places_of(constraint, leaves)
        if places not in out:
            out[places] = _finding(constraint, vocabulary, edge, places, fatal=not walk.finished)
    if not out and not walk.finished and not automaton.accepting[automaton.start]:
        return [_misfit(constraint)]
    return sorted(out.values(), key=lambda finding: finding.where.start if finding.where else -1)


def _misfit(constraint: Constraint) -> Finding:
    text = next(iter(strings.shortest(constraint.automaton, 1)), "")
    message = (
        f"Every byte of the shortest accepted text, {text!r}, has tokens, but no sequence of whole tokens writes any "
        "accepted text."
    )
    return Finding("vocabulary", "error", None, message, ("Add shorter tokens, or allow another spelling.",))


def _finding(
    constraint: Constraint, vocabulary: Vocabulary, edge: ByteEdge, places: tuple[Place, ...], fatal: bool
) -> Finding:
    walker = strings.Walker(constraint.automaton)
    data = _prefix(walker, edge[0])
    prefix = data.decode(errors="ignore")
    needed = strings.next_character(walker, edge, data[len(prefix.encode()) :])
    behind = f" after {prefix!r}" if prefix else " first"
    lost = "" if fatal else f"; {named(places[0] if places else None)} can never be written"
    cause, advice = _cause(vocabulary, needed)
    return finding_at(
        "vocabulary",
        "error" if fatal else "warning",
        places,
        f"The constraint needs {needed!r}{behind}, and no token can write it there{lost}{cause}.",
        fixes=(advice,),
        evidence={"needed": needed, "bytes": needed.encode().hex(" "), "prefix": prefix, "byte_state": edge[0]},
    )


def _prefix(walker: strings.Walker, state: int) -> bytes:
    """Return a shortest text that leads to a state, perhaps into a character."""
    came: dict[int, tuple[int, int]] = {walker.automaton.start: (-1, -1)}
    queue = deque([walker.automaton.start])
    while state not in came:
        here = queue.popleft()
        for symbol, targets in walker.targets(here).items():
            for target in targets:
                if target not in came:
                    came[target] = (here, symbol)
                    queue.append(target)
    data = bytearray()
    while came[state][0] >= 0:
        state, symbol = came[state]
        data.append(min(walker.bytes_of[symbol].tolist(), key=lambda byte: strings.plainness(bytes([byte]))))
    return bytes(reversed(data))


def _cause(vocabulary: Vocabulary, needed: str) -> tuple[str, str]:
    marks = {mark for data in vocabulary.token_bytes if data for mark in MARKERS if mark.encode() in data}
    mark = next((m for m in sorted(marks) if MARKERS[m] == needed[:1]), None)
    if mark is not None:
        cause = f"; the vocabulary has tokens with {mark!r} in them, by which tokenizers mean {MARKERS[mark]!r}"
        return cause, f"Map {mark!r} to {MARKERS[mark]!r} when reading the vocabulary, or allow the text without it."
    return "", "Choose a model whose vocabulary has a token for it, or allow another spelling."


def remedies(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes that let the text go without what can't be written, untried."""
    place, source = finding.where, config.source
    if place is None:
        return []
    if config.kind in schema.KINDS:
        return _of_json(finding, config)
    if config.kind == "regex" and isinstance(source, str):
        text = source[place.start : place.stop]
        before, behind = source[: place.start], source[place.stop :]
        return [
            (f"Make {quoted(text)} optional", {"source": f"{before}{text}?{behind}"}),
            (f"Remove {quoted(text)}", {"source": before + behind}),
        ]
    if config.kind == "choices" and isinstance(source, tuple) and len(source) > 1:
        ends = np.cumsum([len(choice) + 1 for choice in source])  # in the source they stand one a line
        number = int(np.searchsorted(ends, place.start, side="right"))
        kept = (*source[:number], *source[number + 1 :])
        return [(f"Remove the choice {quoted(source[number])}", {"source": kept})]
    return []


def _of_json(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Write JSON without the blanks that no token has, or without the one value that needs what no token has."""
    reading = dict(config.reading)
    if finding.evidence["needed"] == " " and reading.get("whitespace") != "compact":
        return [("Write it without blanks", {"reading": tuple({**reading, "whitespace": "compact"}.items())})]
    pointer = finding.where.pointer if finding.where else None
    if not pointer or not re.search(r"/enum/\d+$", pointer) or not isinstance(config.source, str):
        return []
    return [(f"Remove {pointer}", {"source": schema.removed(config.source, pointer)})]
