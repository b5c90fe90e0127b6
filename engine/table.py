"""An automaton over symbols as arrays: explored from a lazy one, trimmed and, if deterministic, minimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.partition import alike, distances, refine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Move = tuple[tuple[int, ...], int, frozenset[int]]
"""Symbols, the state that they lead to, the leaves that they may come from."""


class Moves(NamedTuple):
    """The moves of an automaton, in any order.

    Attributes:
        source: int64 `[moves]`.
        symbol: int64 `[moves]`.
        target: int64 `[moves]`.
        origin: int64 `[moves]`, index into `origin_sets`.
        origin_sets: sets of leaf ids.
    """

    source: np.ndarray
    symbol: np.ndarray
    target: np.ndarray
    origin: np.ndarray
    origin_sets: list[frozenset[int]]


@dataclass(frozen=True, eq=False)
class Table:
    """An automaton; every state is reachable and, unless it is empty, can accept.

    Deterministic unless `reduction.reduced` made it.

    Attributes:
        accepting: bool `[states]`.
        ptr: int64 `[states + 1]`; the moves of state `q` are `ptr[q]:ptr[q + 1]` of the next three.
        symbol: int64 `[moves]`.
        target: int64 `[moves]`.
        origin: int64 `[moves]`, index into `origin_sets`.
        origin_sets: sets of leaf ids.
    """

    accepting: np.ndarray
    ptr: np.ndarray
    symbol: np.ndarray
    target: np.ndarray
    origin: np.ndarray
    origin_sets: list[frozenset[int]]
    initial = 0

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    def accepts(self, state: int) -> bool:
        """Whether the text may end here."""
        return bool(self.accepting[state])

    def moves(self, state: int) -> Iterable[Move]:
        """Yield the moves of a state, symbols that lead to the same state from the same leaves together."""
        span = slice(self.ptr[state], self.ptr[state + 1])
        together: dict[tuple[int, int], list[int]] = {}
        columns = self.symbol[span].tolist(), self.target[span].tolist(), self.origin[span].tolist()
        for symbol, target, origin in zip(*columns, strict=True):
            together.setdefault((target, origin), []).append(symbol)
        for (target, origin), symbols in together.items():
            yield tuple(symbols), target, self.origin_sets[origin]


def minimal(moves: Moves, accepting: np.ndarray) -> Table:
    """Drop the states that can't accept and join those that can't be told apart (Valmari, Lehtinen 2008).

    Args:
        moves: of a deterministic automaton whose state 0 is the initial one.
        accepting: bool `[states]`.
    """
    source, symbol, target, origin, sets = moves
    distance = distances(source, target, accepting)
    alive = distance >= 0
    if not alive[0]:
        none = np.zeros(0, np.int64)
        return Table(np.zeros(1, bool), np.zeros(2, np.int64), none, none, none, [])
    kept = alive[source] & alive[target]
    source, symbol, target, origin = source[kept], symbol[kept], target[kept], origin[kept]
    number = np.cumsum(alive) - 1
    # States that can't be told apart are equally far from acceptance.
    block = refine(number[source], symbol, number[target], distance[alive])
    # The initial state comes first.
    swap = np.arange(int(block.max()) + 1)
    swap[[0, block[0]]] = swap[[block[0], 0]]
    block = swap[block]
    joined = np.zeros(swap.size, bool)
    joined[block] = accepting[alive]
    width = int(symbol.max()) + 1 if symbol.size else 1
    key, first, origin, sets = united(block[number[source]] * width + symbol, origin, sets)
    ptr = np.searchsorted(key, np.arange(swap.size + 1) * width)
    return Table(joined, ptr, key % width, block[number[target[first]]], origin, sets)


def flat(rows: Sequence[Sequence[Move]]) -> Moves:
    """Write the moves of each state out as arrays."""
    sets: dict[frozenset[int], int] = {}
    groups = [
        (source, len(symbols), target, sets.setdefault(leaves, len(sets)))
        for source, row in enumerate(rows)
        for symbols, target, leaves in row
    ]
    symbol = np.fromiter((s for row in rows for symbols, _, _ in row for s in symbols), np.int64)
    source, count, target, origin = np.asarray(groups, np.int64).reshape(-1, 4).T
    return Moves(np.repeat(source, count), symbol, np.repeat(target, count), np.repeat(origin, count), list(sets))


def united(
    key: np.ndarray, origin: np.ndarray, sets: list[frozenset[int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[frozenset[int]]]:
    """Join entries of one key and unite their origins.

    Returns:
        The distinct keys ascending, for each the index of an entry that has it, its origin, and the sets they number.
    """
    order = np.lexsort((origin, key))
    key, origin = key[order], origin[order]
    new_key = np.append(True, key[1:] != key[:-1])[: key.size]
    kept = np.flatnonzero(new_key | np.append(True, origin[1:] != origin[:-1])[: key.size])
    starts = np.flatnonzero(new_key[kept])
    items, ptr = origin[kept], np.append(starts, kept.size)
    number, lists = alike(items, ptr)
    joined = items[ptr[lists]]
    numbers = {leaves: n for n, leaves in enumerate(sets)}
    for n in np.flatnonzero(np.diff(ptr)[lists] > 1).tolist():
        leaves = frozenset().union(*(sets[o] for o in items[ptr[lists[n]] : ptr[lists[n] + 1]].tolist()))
        joined[n] = numbers.setdefault(leaves, len(numbers))
    first = kept[starts]
    return key[first], order[first], joined[number], list(numbers)
