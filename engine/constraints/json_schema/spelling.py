"""How JSON writes the characters of a string, the punctuation, and the blanks between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from engine import effort
from engine.pattern import Chars, Concat, Origin, Pattern, Ranges, Repeat, Union, alternatives, sequence

Whitespace = Literal["optional", "compact", "single-space", "free"]
WHITESPACE: tuple[Whitespace, ...] = ("optional", "compact", "single-space", "free")

_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_CONTROLS = ((0, 0x1F),)
_RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_BEYOND_ASCII: Ranges = ((0x7F, 0xD7FF), (0xE000, 0xFFFF))
_ASTRAL: Ranges = ((0x10000, 0x10FFFF),)


def overlap(left: Ranges, right: Ranges) -> Ranges:
    """Return the code points in both."""
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


@lru_cache(maxsize=8192)
def text(written: str, origin: Origin) -> Pattern:
    """Return the pattern of characters that stand for themselves."""
    return sequence([Chars(((ord(c), ord(c)),), origin) for c in written])


@lru_cache(maxsize=8192)
def character(ranges: Ranges, origin: Origin) -> Pattern:
    r"""Return how a JSON string writes one of these characters.

    As itself where JSON allows that; by the short escapes; control characters and those beyond ASCII also as `\uXXXX`,
    the ones beyond U+FFFF as a surrogate pair (RFC 8259, section 7). ASCII letters are not written as `\u0061`.
    """
    raw = overlap(ranges, _RAW)
    ways: list[Pattern] = [Chars(raw, origin)] if raw else []
    escaped: list[Pattern] = []
    letters = "".join(sorted(letter for c, letter in _SHORT.items() if overlap(ranges, ((ord(c), ord(c)),))))
    if letters:
        escaped.append(Chars(tuple((ord(c), ord(c)) for c in letters), origin))
    numbered = [pattern for low, high in _numbered(ranges) for pattern in hexadecimal(low, high, 4, origin)]
    numbered += [pattern for low, high in overlap(ranges, _ASTRAL) for pattern in _surrogates(low, high, origin)]
    if numbered:
        escaped.append(Concat((text("u", origin), alternatives(numbered))))
    if escaped:
        ways.append(Concat((text("\\", origin), alternatives(escaped))))
    return alternatives(ways) if ways else Chars((), origin)


def _numbered(ranges: Ranges) -> Ranges:
    return overlap(ranges, _CONTROLS) + overlap(ranges, _BEYOND_ASCII)


def hexadecimal(low: int, high: int, digits: int, origin: Origin) -> list[Pattern]:
    """Write the numbers from `low` to `high` in so many hexadecimal digits of either case."""
    if digits == 0:
        return [Concat(())]
    size = 16 ** (digits - 1)
    first, last = low // size, high // size
    if first == last:
        return _digit(first, last, hexadecimal(low - first * size, high - first * size, digits - 1, origin), origin)
    out: list[Pattern] = []
    if low % size:
        out += _digit(first, first, hexadecimal(low % size, size - 1, digits - 1, origin), origin)
        first += 1
    if (high + 1) % size:
        out += _digit(last, last, hexadecimal(0, high % size, digits - 1, origin), origin)
        last -= 1
    if first <= last:
        out += _digit(first, last, hexadecimal(0, size - 1, digits - 1, origin), origin)
    return out


def _digit(first: int, last: int, rest: list[Pattern], origin: Origin) -> list[Pattern]:
    ranges = [(0x30 + first, 0x30 + min(last, 9))] if first < 10 else []
    if last >= 10:
        ranges += [(base + max(first, 10) - 10, base + last - 10) for base in (0x41, 0x61)]
    return [Concat((Chars(tuple(ranges), origin), alternatives(rest)))]


def _surrogates(low: int, high: int, origin: Origin) -> list[Pattern]:
    r"""Write the characters from `low` to `high`, beyond U+FFFF, as pairs behind the first `\u`."""
    out: list[Pattern] = []

    def pairs(first: int, last: int, start: int, stop: int) -> None:
        lead, trail = hexadecimal(first, last, 4, origin), hexadecimal(start, stop, 4, origin)
        out.append(Concat((alternatives(lead), text("\\u", origin), alternatives(trail))))

    first, start = 0xD800 + ((low - 0x10000) >> 10), 0xDC00 + (low & 0x3FF)
    last, stop = 0xD800 + ((high - 0x10000) >> 10), 0xDC00 + (high & 0x3FF)
    if first == last:
        pairs(first, last, start, stop)
        return out
    if start > 0xDC00:
        pairs(first, first, start, 0xDFFF)
        first += 1
    if stop < 0xDFFF:
        pairs(last, last, 0xDC00, stop)
        last -= 1
    if first <= last:
        pairs(first, last, 0xDC00, 0xDFFF)
    return out


def string(content: str, origin: Origin) -> Pattern:
    """Return how JSON writes one string, quotes included."""
    effort.spend(5 + 3 * len(content))
    parts = [_written(c, origin) for c in content]
    return Concat((text('"', origin), *parts, text('"', origin)))


def _written(c: str, origin: Origin) -> Pattern:
    if "\ud800" <= c <= "\udfff":  # half a surrogate pair has no UTF-8; JSON can write it
        return text(json.dumps(c)[1:-1], origin)
    return character(((ord(c), ord(c)),), origin)


@dataclass(frozen=True)
class Layout:
    """Where blanks may stand.

    Attributes:
        whitespace: `optional` is none or one space behind ',' and ':'; `compact` none; `single-space` one;
            `free` up to `most` blanks of any kind wherever JSON allows them.
        most: for `free`.
    """

    whitespace: Whitespace = "optional"
    most: int = 20

    def comma(self, origin: Origin) -> Pattern:
        """Return what stands between two items."""
        return self._mark(",", origin)

    def colon(self, origin: Origin) -> Pattern:
        """Return what stands between a name and its value."""
        return self._mark(":", origin)

    def open(self, bracket: str, origin: Origin) -> Pattern:
        """Return an opening bracket with the blanks behind it."""
        return Concat((text(bracket, origin), *self._blanks(origin)))

    def close(self, bracket: str, origin: Origin) -> Pattern:
        """Return a closing bracket with the blanks before it."""
        return Concat((*self._blanks(origin), text(bracket, origin)))

    def whole(self, value: Pattern, origin: Origin) -> Pattern:
        """Return a whole text: a value with the blanks around it."""
        return Concat((*self._blanks(origin), value, *self._blanks(origin)))

    def _mark(self, mark: str, origin: Origin) -> Pattern:
        space = text(" ", origin)
        match self.whitespace:
            case "compact":
                return text(mark, origin)
            case "single-space":
                return Concat((text(mark, origin), space))
            case "optional":
                return Concat((text(mark, origin), Repeat(space, 0, 1, origin)))
            case _:
                return Concat((*self._blanks(origin), text(mark, origin), *self._blanks(origin)))

    def _blanks(self, origin: Origin) -> tuple[Pattern, ...]:
        if self.whitespace != "free" or not self.most:
            return ()
        return (Repeat(Chars(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)), origin), 0, self.most, origin),)


def union(parts: list[Pattern]) -> Pattern:
    """Unite patterns; no part is no text at all."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))
