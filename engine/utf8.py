"""Sets of characters as small automata over the bytes of UTF-8."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.pattern import Ranges

Block = tuple[tuple[tuple[int, int, int], ...], ...]
"""A small automaton: state -> moves (low byte, high byte, next state); the next of its last state is the way out."""


@lru_cache(maxsize=4096)
def block(ranges: Ranges) -> Block:
    """Return the automaton of a set of characters in UTF-8, equal continuations shared; state 0 is its start."""
    ids: dict[tuple[tuple[int, int, int], ...], int] = {}
    states: list[tuple[tuple[int, int, int], ...]] = []

    def share(sequences: list[tuple[tuple[int, int], ...]]) -> int:
        """Number the automaton of byte-range sequences that differ in their first ranges; -1 is the end."""
        if sequences == [()]:
            return -1
        groups: dict[tuple[int, int], list[tuple[tuple[int, int], ...]]] = {}
        for first, *rest in sequences:
            groups.setdefault(first, []).append(tuple(rest))
        moves = tuple((low, high, share(rest)) for (low, high), rest in sorted(groups.items()))
        if moves not in ids:
            ids[moves] = len(states)
            states.append(moves)
        return ids[moves]

    share([s for low, high in ranges for s in _sequences(low, high)])
    # The start was numbered last; the block wants it first, and the end behind all others.
    count = len(states)
    number = {count - 1: 0, -1: count, **{n: n + 1 for n in range(count - 1)}}
    order = [count - 1, *range(count - 1)]
    return tuple(tuple((low, high, number[to]) for low, high, to in states[n]) for n in order)


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
