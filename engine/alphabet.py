"""The symbols of a pattern: classes of code points that none of its character sets tells apart (minterms).

Automata are built over these few symbols; only the finished one is written out in UTF-8 bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.pattern import ANY, Chars

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.pattern import Pattern, Ranges


@dataclass(frozen=True, eq=False)
class Alphabet:
    """A partition of the code points that UTF-8 can write.

    Attributes:
        ranges: the code points of each symbol.
        symbols_of: the symbols that make up each character set of the pattern.
    """

    ranges: tuple[Ranges, ...]
    symbols_of: dict[Ranges, tuple[int, ...]]

    @cached_property
    def all(self) -> tuple[int, ...]:
        """Every symbol."""
        return tuple(range(len(self.ranges)))

    def symbol(self, code: int) -> int:
        """Return the symbol of a code point; -1 for a surrogate."""
        at = bisect_right(self._starts, code) - 1
        return self._symbols[at] if at >= 0 and not 0xD800 <= code <= 0xDFFF else -1

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        return sorted((low, symbol) for symbol, ranges in enumerate(self.ranges) for low, _ in ranges)

    @cached_property
    def _starts(self) -> list[int]:
        return [low for low, _ in self._segments]

    @cached_property
    def _symbols(self) -> list[int]:
        return [symbol for _, symbol in self._segments]

    @cached_property
    def ascii(self) -> tuple[Ranges, ...]:
        """The code points of each symbol below 128."""
        return tuple(tuple((low, min(high, 127)) for low, high in ranges if low < 128) for ranges in self.ranges)

    @cached_property
    def beyond_ascii(self) -> tuple[Ranges, ...]:
        """The code points of each symbol from 128 on."""
        return tuple(tuple((max(low, 128), high) for low, high in ranges if high > 127) for ranges in self.ranges)


def alphabet_of(nodes: Iterable[Pattern]) -> Alphabet:
    """Partition the code points by which character sets of a pattern's nodes hold them."""
    sets = list(dict.fromkeys(node.ranges for node in nodes if isinstance(node, Chars)))
    toggled: dict[int, list[int]] = {limit: [] for low, high in ANY for limit in (low, high + 1)}
    for number, ranges in enumerate(sets):
        for low, high in ranges:
            toggled.setdefault(low, []).append(number)
            toggled.setdefault(high + 1, []).append(number)
    holding: set[int] = set()
    segments: dict[frozenset[int], list[tuple[int, int]]] = {}
    for low, following in pairwise(sorted(toggled)):
        for number in toggled[low]:
            holding ^= {number}
        if not 0xD800 <= low <= 0xDFFF:
            segments.setdefault(frozenset(holding), []).append((low, following - 1))
    symbols: list[list[int]] = [[] for _ in sets]
    for symbol, numbers in enumerate(segments):
        for number in numbers:
            symbols[number].append(symbol)
    return Alphabet(
        tuple(tuple(ranges) for ranges in segments.values()),
        {ranges: tuple(symbols[number]) for number, ranges in enumerate(sets)},
    )
