"""A text held against a constraint, and texts that it accepts; no tokenizer is involved."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.diagnosis.subject import places_of
from engine.partition import distances

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.automaton import ByteAutomaton
    from engine.constraints import Constraint
    from engine.errors import Place

_PLAIN = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. ,:;/'\"()[]{}<>=+*!?&%$#@~^|`\\"
_RANK = np.full(256, 1000)
_RANK[list(_PLAIN)] = np.arange(len(_PLAIN))
_RANK[0x80:] = 500 + np.arange(0x80)
MOST_WALKED = 20_000
"""Bytes that are walked at random in search of further examples."""
LONGEST_LITERAL = 24
"""Characters of a forced continuation that are shown."""


def plainness(data: bytes) -> tuple[int, list[int]]:
    """Return a key that sorts short texts of letters and digits first."""
    return len(data), _RANK[list(data)].tolist()


@dataclass(frozen=True)
class Reading:
    """How a constraint reads a text, character by character.

    Attributes:
        text: what was read.
        accepted: whether all of it is in the language.
        read: characters that an accepted text can begin with; less than the text's length where it dies.
        states: states of the byte automaton before each of these characters, and behind the last; one where it is
            deterministic.
        places: for each of these characters the places of the source that it may come from.
        expected: what may stand next: a literal where only one text can, or else characters; and the text's end.
        expected_places: places of the source that may be written next.
    """

    text: str
    accepted: bool
    read: int
    states: tuple[tuple[int, ...], ...]
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
            "states": [list(states) for states in self.states],
            "places": [[place.plain() for place in places] for places in self.places],
            "expected": list(self.expected),
            "expected_places": [place.plain() for place in self.expected_places],
        }


@dataclass(frozen=True, eq=False)
class Walker:
    """Walks a byte automaton with sets of states, of which a deterministic one has single ones."""

    automaton: ByteAutomaton
    _targets: dict[int, dict[int, list[int]]] = field(default_factory=dict, repr=False)
    _ways: dict[frozenset[int], list[tuple[int, frozenset[int], int]]] = field(default_factory=dict, repr=False)

    @cached_property
    def moves(self) -> tuple[np.ndarray, ...]:
        """`(ptr, symbol, target, origin)`: the moves of state `q` are `ptr[q]:ptr[q + 1]` of the others."""
        automaton = self.automaton
        return automaton.rows, automaton.symbol, automaton.target, automaton.origin

    @property
    def start(self) -> frozenset[int]:
        """The set of the start state."""
        return frozenset({self.automaton.start})

    @cached_property
    def bytes_of(self) -> list[np.ndarray]:
        """The bytes of each byte class."""
        classes = self.automaton.byte_class
        return [np.flatnonzero(classes == symbol) for symbol in range(int(classes.max()) + 1)]

    @cached_property
    def plain_of(self) -> list[list[int]]:
        """The bytes of each byte class that are printable ASCII."""
        return [[byte for byte in found.tolist() if 0x20 <= byte < 0x7F] for found in self.bytes_of]

    @cached_property
    def _to_go(self) -> list[int]:
        found: list[int] = self.distance.tolist()
        return found

    @cached_property
    def distance(self) -> np.ndarray:
        """int64 `[states]`: the fewest bytes from each state to acceptance."""
        automaton = self.automaton
        source, target = automaton.source.astype(np.int64), automaton.target.astype(np.int64)
        found: np.ndarray = distances(source, target, automaton.accepting)
        return found

    def targets(self, state: int) -> dict[int, list[int]]:
        """Return for each byte class that moves a state where it leads."""
        if state not in self._targets:
            ptr, symbol, target, _ = self.moves
            at, gathered = slice(ptr[state], ptr[state + 1]), dict[int, list[int]]()
            for moved, to in zip(symbol[at].tolist(), target[at].tolist(), strict=True):
                gathered.setdefault(moved, []).append(to)
            self._targets[state] = gathered
        return self._targets[state]

    def next_states(self, states: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return for each byte class that moves any of the states the next states."""
        gathered: dict[int, set[int]] = {}
        for state in states:
            for symbol, targets in self.targets(state).items():
                gathered.setdefault(symbol, set()).update(targets)
        return {symbol: frozenset(targets) for symbol, targets in gathered.items()}

    def ways(self, states: frozenset[int]) -> list[tuple[int, frozenset[int], int]]:
        """Return for each byte class that moves any of the states, ascending, the next states and how far they are.

        They are kept: a walk comes back to where a part repeats.
        """
        if states not in self._ways:
            moves = sorted(self.next_states(states).items())
            self._ways[states] = [(symbol, targets, self.to_go(targets)) for symbol, targets in moves]
        return self._ways[states]

    def following(self, states: frozenset[int]) -> dict[int, tuple[frozenset[int], set[int]]]:
        """Return for each byte class that moves any of the states the next states and the leaves that write it."""
        ptr, symbol, target, origin = self.moves
        gathered: dict[int, tuple[set[int], set[int]]] = {}
        for state in states:
            for move in range(ptr[state], ptr[state + 1]):
                targets, leaves = gathered.setdefault(int(symbol[move]), (set(), set()))
                targets.add(int(target[move]))
                leaves.update(self.automaton.origin_sets[origin[move]])
        return {symbol: (frozenset(targets), leaves) for symbol, (targets, leaves) in gathered.items()}

    def ends(self, states: frozenset[int]) -> bool:
        """Whether the text may end here."""
        return any(self.automaton.accepting[state] for state in states)

    def to_go(self, states: frozenset[int]) -> int:
        """Return the fewest bytes to acceptance."""
        return min(self._to_go[state] for state in states)


def read(constraint: Constraint, text: str) -> Reading:
    """Read a text as far as some accepted text begins like it."""
    walker = Walker(constraint.automaton)
    states, places = [walker.start], []
    for character in text:
        reached, leaves = states[-1], set[int]()
        for byte in character.encode(errors="surrogatepass"):
            symbol = int(walker.automaton.byte_class[byte])
            reached, written = walker.following(reached).get(symbol, (frozenset(), set()))
            leaves |= written
        if not reached:
            break
        states.append(reached)
        places.append(places_of(constraint, leaves))
    read_to, last = len(places), states[-1]
    following = {leaf for _, leaves in walker.following(last).values() for leaf in leaves}
    return Reading(
        text=text,
        accepted=read_to == len(text) and walker.ends(last),
        read=read_to,
        states=tuple(tuple(sorted(s)) for s in states),
        places=tuple(places),
        expected=_expected(walker, last),
        expected_places=places_of(constraint, following),
    )


def expected(automaton: ByteAutomaton, state: int) -> tuple[str, ...]:
    """Say what may stand next at a state."""
    return _expected(Walker(automaton), frozenset({state}))


def _expected(walker: Walker, states: frozenset[int]) -> tuple[str, ...]:
    ends = ("the end of the text",) if walker.ends(states) else ()
    literal = _forced(walker, states)
    if literal:
        return (repr(literal), *ends)
    allowed = np.isin(walker.automaton.byte_class, list(walker.following(states)))
    # Where a run of allowed bytes begins and where the next forbidden one stands.
    edges = np.flatnonzero(np.diff(np.concatenate([[False], allowed[:0x80], [False]])))
    runs = [_run(low, high - 1) for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
    if allowed[0x80:].any():
        runs.append("a character beyond ASCII" if allowed[0xC2:].any() else "the rest of a character")
    return (*runs, *ends)


def _run(low: int, high: int) -> str:
    if low == high:
        return repr(chr(low))
    return f"{chr(low)!r} to {chr(high)!r}"


def _forced(walker: Walker, states: frozenset[int]) -> str:
    """Return the text that has to follow, as far as there is no choice; nothing where there is one at once."""
    written = bytearray()
    while len(written) < LONGEST_LITERAL:
        following = walker.following(states)
        if len(following) != 1 or (written and walker.ends(states)):
            break
        ((symbol, (states, _)),) = following.items()
        if walker.bytes_of[symbol].size != 1:
            break
        written.append(int(walker.bytes_of[symbol][0]))
    return written.decode(errors="ignore")


def next_character(walker: Walker, edge: tuple[int, int], begun: bytes = b"") -> str:
    """Return a character that goes on with a byte of the class `edge[1]` at the state `edge[0]`, plain if it can be.

    Args:
        walker: of the automaton.
        edge: a state and a byte class that moves it.
        begun: the bytes of the character that are written already.
    """
    data = bytearray(begun)
    states, symbol = frozenset({edge[0]}), edge[1]
    while True:
        data.append(min(walker.bytes_of[symbol].tolist(), key=lambda byte: int(_RANK[byte])))
        states, _ = walker.following(states)[symbol]
        text = data.decode(errors="ignore")
        if text or len(data) == 4:
            return text
        symbol = min(walker.following(states))


def shortest(automaton: ByteAutomaton, count: int = 3) -> tuple[str, ...]:
    """Return the shortest accepted texts, letters and digits first among the equally long; fewer if there are fewer."""
    return tuple(data.decode() for data in itertools.islice(_by_length(automaton), count))


def _by_length(automaton: ByteAutomaton) -> Iterator[bytes]:
    """Yield accepted texts by length, best first (A*; the distance to acceptance is exact).

    Of the bytes of a class only the best is waiting, and behind it the next: a text holds on to the one that it goes
    on from, so thousands of bytes take no more than so many entries.
    """
    if automaton.is_empty:
        return
    walker, number = Walker(automaton), itertools.count()
    ordered = [sorted(found.tolist(), key=lambda byte: int(_RANK[byte])) for found in walker.bytes_of]
    heap: list[tuple[int, int, int, int, _Text | None, int, int, frozenset[int]]] = []

    def wait(total: int, depth: int, text: _Text | None, symbol: int, k: int, targets: frozenset[int]) -> None:
        # Deeper first among the equally long: one of a million texts of one length is found without the others.
        rank = int(_RANK[ordered[symbol][k]])
        heapq.heappush(heap, (total, -depth, rank, next(number), text, symbol, k, targets))

    def go_on(text: _Text | None, depth: int, states: frozenset[int]) -> None:
        for symbol, targets in walker.next_states(states).items():
            wait(depth + 1 + walker.to_go(targets), depth + 1, text, symbol, 0, targets)

    if walker.ends(walker.start):
        yield b""
    go_on(None, 0, walker.start)
    while heap:
        total, depth, _, _, before, symbol, k, states = heapq.heappop(heap)
        if k + 1 < len(ordered[symbol]):
            wait(total, -depth, before, symbol, k + 1, states)
        text = _Text(before, ordered[symbol][k])
        if walker.ends(states):
            yield text.data
        go_on(text, -depth, states)


@dataclass(frozen=True, eq=False, slots=True)
class _Text:
    """A text by its last byte and what stands before it."""

    before: _Text | None
    byte: int

    @property
    def data(self) -> bytes:
        """All of it."""
        written, here = bytearray([self.byte]), self.before
        while here is not None:
            written.append(here.byte)
            here = here.before
        return bytes(reversed(written))


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
    rng, walker = np.random.default_rng(seed), Walker(automaton)
    limit = max(most, walker.to_go(walker.start))
    texts: dict[str, None] = {}
    walked = 0
    for _ in range(8 * count):
        data = _walk(walker, limit, rng)
        texts.setdefault(data.decode())
        walked += len(data)
        if len(texts) == count or walked > MOST_WALKED:
            break
    return tuple(texts)


def _walk(walker: Walker, limit: int, rng: np.random.Generator) -> bytes:
    states, data = walker.start, bytearray()
    while True:
        left = limit - len(data) - 1
        ways = {symbol: to for symbol, to, far in walker.ways(states) if far <= left}
        if walker.ends(states) and (not ways or rng.random() < 0.25):
            return bytes(data)
        # One of the ways on, then one of its bytes: a class of sixty letters is not sixty times as likely as a quote.
        choice = [s for s in ways if walker.plain_of[s]] or list(ways)
        symbol = choice[rng.integers(len(choice))]
        written = walker.plain_of[symbol] or walker.bytes_of[symbol].tolist()
        data.append(written[rng.integers(len(written))])
        states = ways[symbol]
