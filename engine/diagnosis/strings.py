"""A text held against a constraint, and texts that it accepts; no tokenizer is involved."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.automaton import ByteAutomaton
    from engine.constraints import Constraint

_PLAIN = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. ,:;/'\"()[]{}<>=+*!?&%$#@~^|`\\"
_RANK = np.full(256, 1000)
_RANK[list(_PLAIN)] = np.arange(len(_PLAIN))
_RANK[0x80:] = 500 + np.arange(0x80)
LONGEST_LITERAL = 24
"""Characters of a forced continuation that are shown."""


@dataclass(frozen=True)
class Reading:
    """How a constraint reads a text, character by character.

    Attributes:
        text: what was read.
        accepted: whether all of it is in the language.
        read: characters that an accepted text can begin with; less than the text's length where it dies.
        states: state of the byte automaton before each of these characters, and behind the last.
        places: for each of these characters the places of the source that it may come from.
        expected: what may stand next: a literal where only one text can, or else characters; and the text's end.
        expected_places: places of the source that may be written next.
    """

    text: str
    accepted: bool
    read: int
    states: tuple[int, ...]
    places: tuple[tuple[Place, ...], ...]
    expected: tuple[str, ...]
    expected_places: tuple[Place, ...]

    @property
    def message(self) -> str:
        """One sentence: accepted, or where it dies and what was expected there."""
        wanted = " or ".join(self.expected) or "nothing"
        if self.accepted:
            return f"Accepted, all {len(self.text)} characters."
        if self.read < len(self.text):
            return f"Dies at character {self.read + 1}, {self.text[self.read]!r}; expected {wanted}."
        return f"Ends too early, after {self.read} characters; expected {wanted}."

    def plain(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {
            "text": self.text,
            "accepted": self.accepted,
            "read": self.read,
            "message": self.message,
            "states": list(self.states),
            "places": [[place.plain() for place in places] for places in self.places],
            "expected": list(self.expected),
            "expected_places": [place.plain() for place in self.expected_places],
        }


def read(constraint: Constraint, text: str) -> Reading:
    """Read a text as far as some accepted text begins like it."""
    automaton = constraint.automaton
    states, places = [automaton.start], []
    for character in text:
        state, leaves = states[-1], set[int]()
        for byte in character.encode(errors="surrogatepass"):
            symbol = automaton.byte_class[byte]
            state, origin = int(automaton.move[state, symbol]), int(automaton.edge_origins[state, symbol])
            if state < 0:
                break
            leaves.update(automaton.origin_sets[origin])
        if state < 0:
            break
        states.append(state)
        places.append(_places(constraint, leaves))
    read_to, last = len(states) - 1, states[-1]
    row = automaton.edge_origins[last]
    following = {leaf for origin in row[row >= 0].tolist() for leaf in automaton.origin_sets[origin]}
    return Reading(
        text=text,
        accepted=read_to == len(text) and bool(automaton.accepting[last]),
        read=read_to,
        states=tuple(states),
        places=tuple(places),
        expected=expected(automaton, last),
        expected_places=_places(constraint, following),
    )


def _places(constraint: Constraint, leaves: set[int]) -> tuple[Place, ...]:
    spans = {constraint.automaton.leaves[leaf] for leaf in leaves}
    ordered = sorted(spans, key=lambda origin: (origin.start, origin.stop))
    return tuple(Place(constraint.text, o.start, o.stop, o.pointer) for o in ordered)


def expected(automaton: ByteAutomaton, state: int) -> tuple[str, ...]:
    """Say what may stand next at a state."""
    ends = ("the end of the text",) if automaton.accepting[state] else ()
    literal = _forced(automaton, state)
    if literal:
        return (repr(literal), *ends)
    allowed = automaton.move[state, automaton.byte_class] >= 0
    runs = []
    start = None
    for byte in range(0x81):
        inside = byte < 0x80 and bool(allowed[byte])
        if inside and start is None:
            start = byte
        elif not inside and start is not None:
            runs.append(_run(start, byte - 1))
            start = None
    if allowed[0x80:].any():
        runs.append("a character beyond ASCII" if allowed[0xC2:].any() else "the rest of a character")
    return (*runs, *ends)


def _run(low: int, high: int) -> str:
    if low == high:
        return repr(chr(low))
    return f"{chr(low)!r} to {chr(high)!r}"


def _forced(automaton: ByteAutomaton, state: int) -> str:
    """Return the text that has to follow, as far as there is no choice; nothing where there is one at once."""
    written = bytearray()
    while len(written) < LONGEST_LITERAL:
        following = np.flatnonzero(automaton.move[state, automaton.byte_class] >= 0)
        if following.size != 1 or (written and automaton.accepting[state]):
            break
        written.append(int(following[0]))
        state = int(automaton.move[state, automaton.byte_class[following[0]]])
    return written.decode(errors="ignore")


def distances(automaton: ByteAutomaton) -> np.ndarray:
    """Return int64 `[states]`: the fewest bytes from each state to acceptance; the largest int where there is none."""
    source, symbol = np.nonzero(automaton.move >= 0)
    before: list[list[int]] = [[] for _ in range(automaton.states)]
    for q, s in zip(source.tolist(), symbol.tolist(), strict=True):
        before[automaton.move[q, s]].append(q)
    distance = np.full(automaton.states, np.iinfo(np.int64).max)
    queue = deque(np.flatnonzero(automaton.accepting).tolist())
    distance[automaton.accepting] = 0
    while queue:
        state = queue.popleft()
        for previous in before[state]:
            if distance[previous] > distance[state] + 1:
                distance[previous] = distance[state] + 1
                queue.append(previous)
    return distance


def shortest(automaton: ByteAutomaton, count: int = 3) -> tuple[str, ...]:
    """Return the shortest accepted texts, letters and digits first among the equally long; fewer if there are fewer."""
    out: list[str] = []
    for data in _by_length(automaton):
        out.append(data.decode())
        if len(out) == count:
            break
    return tuple(out)


def _by_length(automaton: ByteAutomaton) -> Iterator[bytes]:
    """Yield accepted texts by length, best first (A*; the distance to acceptance is exact)."""
    if automaton.is_empty:
        return
    distance = distances(automaton)
    # Deeper first among the equally long: one of a million texts of one length is found without the others.
    heap: list[tuple[int, int, tuple[int, ...], bytes, int]] = []
    heapq.heappush(heap, (int(distance[automaton.start]), 0, (), b"", automaton.start))
    while heap:
        _, depth, ranks, data, state = heapq.heappop(heap)
        if state < 0:
            yield data
            continue
        if automaton.accepting[state]:
            heapq.heappush(heap, (len(data), depth - 1, ranks, data, -1))
        for byte in np.flatnonzero(automaton.move[state, automaton.byte_class] >= 0).tolist():
            following = int(automaton.move[state, automaton.byte_class[byte]])
            total = len(data) + 1 + int(distance[following])
            entry = (total, depth - 1, (*ranks, int(_RANK[byte])), data + bytes([byte]), following)
            heapq.heappush(heap, entry)


def sampled(automaton: ByteAutomaton, seed: int, count: int = 3, most: int = 200) -> tuple[str, ...]:
    """Walk at random to acceptance, in printable ASCII where the language has a choice.

    The walks follow no particular law: they are examples, not a sample of the language.

    Args:
        automaton: whose texts are wanted.
        seed: of the walks.
        count: how many distinct texts at most.
        most: bytes of a text, or the shortest if that is longer.
    """
    if automaton.is_empty:
        return ()
    rng = np.random.default_rng(seed)
    distance = distances(automaton)
    limit = max(most, int(distance[automaton.start]))
    texts: dict[str, None] = {}
    for _ in range(8 * count):
        texts.setdefault(_walk(automaton, distance, limit, rng).decode())
        if len(texts) == count:
            break
    return tuple(texts)


def _walk(automaton: ByteAutomaton, distance: np.ndarray, limit: int, rng: np.random.Generator) -> bytes:
    state, data = automaton.start, bytearray()
    while True:
        following = automaton.move[state, automaton.byte_class]
        left = limit - len(data) - 1
        bytes_on = np.flatnonzero((following >= 0) & (distance[np.maximum(following, 0)] <= left))
        if automaton.accepting[state] and (not bytes_on.size or rng.random() < 0.25):
            return bytes(data)
        plain = bytes_on[(bytes_on >= 0x20) & (bytes_on < 0x7F)]
        # One of the ways on, then one of its bytes: a class of sixty letters is not sixty times as likely as a quote.
        choices = plain if plain.size else bytes_on
        symbol = rng.choice(np.unique(automaton.byte_class[choices]))
        byte = int(rng.choice(choices[automaton.byte_class[choices] == symbol]))
        data.append(byte)
        state = int(following[byte])
