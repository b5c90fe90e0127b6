"""An automaton over characters written out as one over the bytes of UTF-8."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine import effort

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.alphabet import Alphabet
    from engine.pattern import Ranges
    from engine.routines import Symbols
    from engine.table import Table

Block = tuple[tuple[tuple[int, int, int], ...], ...]
"""A small automaton, its start the last state: state -> moves (low byte, high byte, next); ways out are ~0, ~1, …"""


@lru_cache(maxsize=4096)
def block(sets: tuple[Ranges, ...]) -> Block:
    """Return the automaton of disjoint sets of characters, each with its own way out, equal continuations shared."""
    ids: dict[tuple[tuple[int, int, int], ...], int] = {}

    def share(sequences: list[tuple[tuple[tuple[int, int], ...], int]]) -> int:
        """Number the automaton of byte-range sequences that differ in their first ranges."""
        if len(sequences) == 1 and not sequences[0][0]:
            return ~sequences[0][1]
        groups: dict[tuple[int, int], list[tuple[tuple[tuple[int, int], ...], int]]] = {}
        for (first, *rest), way in sequences:
            groups.setdefault(first, []).append((tuple(rest), way))
        moves = _joined((low, high, share(rest)) for (low, high), rest in sorted(groups.items()))
        return ids.setdefault(moves, len(ids))

    share([(s, n) for n, ranges in enumerate(sets) for low, high in ranges for s in _sequences(low, high)])
    return tuple(ids)


def _joined(moves: Iterable[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Join neighbouring ranges that lead to the same state."""
    out: list[tuple[int, int, int]] = []
    for low, high, to in moves:
        if out and out[-1][1] + 1 == low and out[-1][2] == to:
            out[-1] = (out[-1][0], high, to)
        else:
            out.append((low, high, to))
    return tuple(out)


def _sequences(low: int, high: int) -> Iterable[tuple[tuple[int, int], ...]]:
    """Split a range of code points into products of byte ranges, at the limits of encodings and of continuations."""
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if low <= limit < high:
            yield from _sequences(low, limit)
            yield from _sequences(limit + 1, high)
            return
    size = len(chr(low).encode())
    for n in range(1, size):
        mask = (1 << (6 * n)) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                yield from _sequences(low, low | mask)
                yield from _sequences((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from _sequences(low, (high & ~mask) - 1)
                yield from _sequences(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


class TooManyBytesError(Exception):
    """The states over bytes pass a budget; `leaves` are those whose characters make the last of them."""

    def __init__(self, problem: str, leaves: frozenset[int]) -> None:
        super().__init__(problem)
        self.leaves = leaves


Exit = tuple[int, int]
"""The state that a character leads to, and its origin."""


class Written(NamedTuple):
    """An automaton over bytes.

    Attributes:
        states: how many there are; the first are those of the automaton over characters.
        edges: int64 `[5 edges]`: source, low byte, high byte, target, origin.
        origin_sets: the set of leaves that each origin stands for.
    """

    states: int
    edges: np.ndarray
    origin_sets: list[frozenset[int]]


def written(table: Table, alphabet: Alphabet, budget: int, together: bool = True) -> Written:
    """Write moves on characters as moves on bytes, with states in between for characters of several bytes.

    States in between that lead alike are one, so a minimal automaton stays minimal.

    Args:
        table: over characters.
        alphabet: whose symbols are moved by.
        budget: of states over bytes.
        together: whether the moves of a state share states in between; so they must not where one symbol may lead to
            several states.

    Raises:
        TooManyBytesError: that or the limit of work is passed.
    """
    source = np.repeat(np.arange(table.states), np.diff(table.ptr))
    moves = np.stack([source, table.symbol, table.target, table.origin])
    writer = _Writer(table, alphabet, budget)
    groups = 1 + int((moves[[0, 2, 3], 1:] != moves[[0, 2, 3], :-1]).any(axis=0).sum())
    writer.spend(8 * table.states + 0.2 * source.size + groups, frozenset())
    wide = np.asarray([bool(ranges) for ranges in alphabet.beyond_ascii])[table.symbol]
    for state, own in groupby(moves[:, wide].T.tolist(), itemgetter(0)):
        ways: dict[Exit, list[int]] = {}
        for _, symbol, target, origin in own:
            ways.setdefault((target, origin), []).append(symbol)
        for apart in [ways] if together else [{exit_: symbols} for exit_, symbols in ways.items()]:
            writer.add(state, apart)
    edges = np.concatenate([_ascii(moves, alphabet), np.asarray(writer.edges, np.int64).reshape(-1, 5).T], axis=1)
    return Written(writer.states, edges, writer.origin_sets)


def _ascii(moves: np.ndarray, alphabet: Alphabet) -> np.ndarray:
    """Return the edges of the characters below 128, each a byte."""
    low, high = np.asarray([span for ranges in alphabet.ascii for span in ranges], np.int64).reshape(-1, 2).T
    count = np.asarray([len(ranges) for ranges in alphabet.ascii])
    first = np.cumsum(count) - count
    source, symbol, target, origin = np.repeat(moves, count[moves[1]], axis=1)
    nth = np.arange(source.size) - np.repeat(np.cumsum(count[moves[1]]) - count[moves[1]], count[moves[1]])
    at = first[symbol] + nth
    return np.stack([source, low[at], high[at], target, origin])


class _Writer:
    """Writes the moves on characters beyond ASCII.

    Attributes:
        states: as in `Written`.
        edges: (source, low byte, high byte, target, origin).
        origin_sets: as in `Written`.
    """

    def __init__(self, table: Table, alphabet: Alphabet, budget: int) -> None:
        self.states = table.states
        self.edges: list[tuple[int, int, int, int, int]] = []
        self.origin_sets = list(table.origin_sets)
        self._alphabet = alphabet
        self._budget = budget
        self._origins = {leaves: n for n, leaves in enumerate(self.origin_sets)}
        self._blocks: dict[tuple[Symbols, ...], _Ways] = {}
        self._numbers: dict[tuple[tuple[int, int, int], ...], int] = {}
        self._known: dict[tuple[int, int, tuple[Exit, ...]], Exit] = {}

    def add(self, source: int, moves: dict[Exit, list[int]]) -> None:
        """Add the moves of a state: symbols by where they lead, none in two of them."""
        ways = self._ways(tuple(map(tuple, moves.values())))
        exits = tuple(moves)
        self.edges += [(source, low, high, *self._exit(ways, exits, to)) for low, high, to in ways.block[-1]]

    def _exit(self, ways: _Ways, exits: tuple[Exit, ...], node: int) -> Exit:
        """Return the state that stands for a node of a block whose ways out lead to `exits`, and what leads there."""
        if node < 0:
            return exits[~node]
        own = tuple(exits[n] for n in ways.below[node])
        key = (ways.number, node, own)
        if key not in self._known:
            leaves = frozenset[int]().union(*(self.origin_sets[origin] for _, origin in own))
            self.spend(4 + 1.5 * len(ways.block[node]) + len(own), leaves)
            moves = [(low, high, *self._exit(ways, exits, to)) for low, high, to in ways.block[node]]
            state = self._state(_joined((low, high, to) for low, high, to, _ in moves), leaves)
            self.edges += [(state, *move) for move in moves]
            self._known[key] = (state, self._origin(leaves))
        return self._known[key]

    def spend(self, steps: float, leaves: frozenset[int]) -> None:
        """Count steps, for the characters of these leaves."""
        try:
            effort.spend(steps)
        except effort.OutOfStepsError:
            raise TooManyBytesError("takes too much work", leaves) from None

    def _state(self, moves: tuple[tuple[int, int, int], ...], leaves: frozenset[int]) -> int:
        number = self._numbers.setdefault(moves, self.states)
        if number == self.states:
            self.states += 1
            if self.states > self._budget:
                raise TooManyBytesError(f"passes {self._budget:,} states", leaves)
        return number

    def _origin(self, leaves: frozenset[int]) -> int:
        number = self._origins.setdefault(leaves, len(self.origin_sets))
        if number == len(self.origin_sets):
            self.origin_sets.append(leaves)
        return number

    def _ways(self, wide: tuple[Symbols, ...]) -> _Ways:
        if wide not in self._blocks:
            sets = tuple(
                _merged(r for symbol in symbols for r in self._alphabet.beyond_ascii[symbol]) for symbols in wide
            )
            self._blocks[wide] = _ways(len(self._blocks), block(sets))
        return self._blocks[wide]


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort disjoint ranges and join the neighbours."""
    return tuple((low, high) for low, high, _ in _joined((low, high, 0) for low, high in sorted(ranges)))


@dataclass(frozen=True, eq=False)
class _Ways:
    """A block, its number, and the ways out that each of its states leads to."""

    number: int
    block: Block
    below: list[tuple[int, ...]]


def _ways(number: int, states: Block) -> _Ways:
    below: list[tuple[int, ...]] = []
    for moves in states:
        found = {n for _, _, to in moves for n in ((~to,) if to < 0 else below[to])}
        below.append(tuple(sorted(found)))
    return _Ways(number, states, below)
