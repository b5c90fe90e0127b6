"""Sets of numbers as sets of their decimal spellings, closed under writing the same number another way.

A spelling is an optional '-', an integer part without leading zeros, and an optional fraction; no exponent. Every
spelling of a number is in a set or none is, so intersection and complement of spellings are those of numbers, and all
bounds are exact.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from engine.pattern import Chars, Concat, Graph, Origin, Pattern, Ranges, Repeat, Union, alternatives, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

Number = int | float | Decimal

DIVISOR_LIMIT = 2_000
"""Remainders that `multipleOf` may tell apart."""
_DIGIT: Ranges = ((0x30, 0x39),)


def _digits(low: int, high: int, origin: Origin) -> Chars:
    return Chars(((0x30 + low, 0x30 + high),) if low <= high else (), origin)


def _many(origin: Origin, least: int = 0, most: int | None = None, *, high: int = 9) -> Pattern:
    return Repeat(_digits(0, high, origin), least, most, origin)


def _optional(body: Pattern, origin: Origin) -> Pattern:
    return Repeat(body, 0, 1, origin)


def _text(written: str, origin: Origin) -> Pattern:
    return sequence([Chars(((ord(c), ord(c)),), origin) for c in written]) if written else Concat(())


def _fraction(origin: Origin) -> Pattern:
    return _optional(Concat((_text(".", origin), _many(origin, 1))), origin)


def _zeros(origin: Origin) -> Pattern:
    """Return a fraction of zeros, or none."""
    return _optional(Concat((_text(".", origin), _many(origin, 1, high=0))), origin)


def _whole(origin: Origin) -> Pattern:
    return Union((_text("0", origin), Concat((_digits(1, 9, origin), _many(origin)))))


def numbers(origin: Origin) -> Pattern:
    """Return all numbers."""
    return Concat((_optional(_text("-", origin), origin), _whole(origin), _fraction(origin)))


def integers(origin: Origin) -> Pattern:
    """Return all integers; `1.0` is one (JSON Schema, section 4.2.3)."""
    return Concat((_optional(_text("-", origin), origin), _whole(origin), _zeros(origin)))


def plain_integers(origin: Origin) -> Pattern:
    """Return the integers without a point."""
    return Concat((_optional(_text("-", origin), origin), _whole(origin)))


def with_exponent(origin: Origin) -> Pattern:
    """Return the spellings with an exponent, of whatever number."""
    sign = _optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D)), origin), origin)
    mark = Chars(((0x45, 0x45), (0x65, 0x65)), origin)
    return Concat((numbers(origin), mark, sign, _many(origin, 1)))


def scaled_integers(origin: Origin) -> Pattern:
    """Return integers with an exponent that is not negative; each of them is an integer."""
    mark = Chars(((0x45, 0x45), (0x65, 0x65)), origin)
    return Concat((plain_integers(origin), mark, _optional(_text("+", origin), origin), _many(origin, 1)))


def one(value: Number, origin: Origin) -> Pattern:
    """Return the spellings of one number."""
    exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if exact == 0:
        return Concat((_optional(_text("-", origin), origin), _text("0", origin), _zeros(origin)))
    whole, fraction = _parts(abs(exact))
    sign = _text("-" if exact < 0 else "", origin)
    tail = Concat((_text(f".{fraction}", origin), _many(origin, high=0))) if fraction else _zeros(origin)
    return Concat((sign, _text(whole, origin), tail))


def _parts(magnitude: Decimal) -> tuple[str, str]:
    """Return the digits before and behind the point, without zeros that say nothing."""
    whole, _, fraction = f"{magnitude:f}".partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def at_least(bound: Number, origin: Origin, *, strict: bool = False) -> Pattern:
    """Return the numbers from a bound on, or under `strict` those beyond it."""
    exact = Decimal(str(bound)) if isinstance(bound, float) else Decimal(bound)
    if exact > 0:
        return _above(*_parts(exact), origin, strict)
    positive = _above("0", "", origin, strict=False)
    zero = Concat((_text("-", origin), one(0, origin).parts[1], _zeros(origin)))  # type: ignore[union-attr]
    if exact == 0:
        return _above("0", "", origin, strict=True) if strict else Union((positive, zero))
    return Union((positive, Concat((_text("-", origin), _below(*_parts(-exact), origin, strict)))))


def at_most(bound: Number, origin: Origin, *, strict: bool = False) -> Pattern:
    """Return the numbers up to a bound, or under `strict` those before it."""
    exact = Decimal(str(bound)) if isinstance(bound, float) else Decimal(bound)
    minus = _text("-", origin)
    if exact < 0:
        return Concat((minus, _above(*_parts(-exact), origin, strict)))
    if exact == 0:
        negative = Concat((minus, _above("0", "", origin, strict=True)))
        return negative if strict else Union((negative, one(0, origin)))
    return Union((_below(*_parts(exact), origin, strict), Concat((minus, _above("0", "", origin, strict=False)))))


def _above(whole: str, fraction: str, origin: Origin, strict: bool) -> Pattern:
    """Return the magnitudes from `whole.fraction` on."""
    ways: list[Pattern] = [Concat((_digits(1, 9, origin), _many(origin, len(whole)), _fraction(origin)))]
    lowest = 1 if len(whole) > 1 else 0
    for i, digit in enumerate(whole):
        higher = _digits(max(int(digit) + 1, lowest if i == 0 else 0), 9, origin)
        rest = _many(origin, len(whole) - i - 1, len(whole) - i - 1)
        ways.append(Concat((_text(whole[:i], origin), higher, rest, _fraction(origin))))
    ways += [Concat((_text(whole, origin), way)) for way in _fraction_above(fraction, origin, strict)]
    return alternatives(ways)


def _fraction_above(fraction: str, origin: Origin, strict: bool) -> Iterator[Pattern]:
    """Yield the fractions from `.fraction` on, the point included; none is nought."""
    for i, digit in enumerate(fraction):
        yield Concat((_text(f".{fraction[:i]}", origin), _digits(int(digit) + 1, 9, origin), _many(origin)))
    point = _text(f".{fraction}", origin)
    if strict:
        yield Concat((point, _many(origin, high=0), _digits(1, 9, origin), _many(origin)))
    elif fraction:
        yield Concat((point, _many(origin)))
    else:
        yield _fraction(origin)


def _below(whole: str, fraction: str, origin: Origin, strict: bool) -> Pattern:
    """Return the magnitudes up to `whole.fraction`."""
    ways: list[Pattern] = []
    if len(whole) > 1:
        ways.append(Concat((_text("0", origin), _fraction(origin))))
        ways.append(Concat((_digits(1, 9, origin), _many(origin, 0, len(whole) - 2), _fraction(origin))))
    lowest = 1 if len(whole) > 1 else 0
    for i, digit in enumerate(whole):
        lower = _digits(lowest if i == 0 else 0, int(digit) - 1, origin)
        rest = _many(origin, len(whole) - i - 1, len(whole) - i - 1)
        ways.append(Concat((_text(whole[:i], origin), lower, rest, _fraction(origin))))
    ways += [Concat((_text(whole, origin), way)) for way in _fraction_below(fraction, origin, strict)]
    return alternatives(ways)


def _fraction_below(fraction: str, origin: Origin, strict: bool) -> Iterator[Pattern]:
    if not fraction:
        if not strict:
            yield _zeros(origin)
        return
    yield Concat(())
    for i, digit in enumerate(fraction):
        before = _text(f".{fraction[:i]}", origin)
        if i:
            yield before
        yield Concat((before, _digits(0, int(digit) - 1, origin), _many(origin)))
    if not strict:
        yield Concat((_text(f".{fraction}", origin), _many(origin, high=0)))


def divisor(value: Number) -> tuple[int, int]:
    """Return `(p, k)` with `value = p / 10**k`, `k` as small as it can be."""
    exact = Fraction(Decimal(str(value)) if isinstance(value, float) else Decimal(value))
    k = 0
    while (exact * 10**k).denominator != 1:
        k += 1
    return int(exact * 10**k), k


def multiples(value: Number, origin: Origin) -> Graph:
    """Return the multiples of a number: an automaton that keeps the remainder of what it has read.

    Raises:
        OverflowError: more than `DIVISOR_LIMIT` remainders would have to be told apart.
    """
    p, k = divisor(value)
    if p * (k + 2) > DIVISOR_LIMIT:
        raise OverflowError
    # Node 0 the start, 1 behind '-', then one for each remainder and each number of digits read behind the point, -1
    # being before it. A spelling that ends after fewer than k digits of fraction has noughts there.
    number = {key: n + 2 for n, key in enumerate((r, j) for j in range(-1, k + 1) for r in range(p))}
    zero = max(number.values()) + 1  # a leading nought, that no digit follows
    behind = zero + 1  # the point behind which a digit has to follow, one for each remainder
    minus = _text("-", origin)
    arcs: list[tuple[int, Pattern, int]] = [(0, minus, 1)]
    for start in (0, 1):
        arcs.append((start, _text("0", origin), zero))
        arcs += [(start, _digits(d, d, origin), number[d % p, -1]) for d in range(1, 10)]
    for r in range(p):
        arcs += [(number[r, -1], _digits(d, d, origin), number[(10 * r + d) % p, -1]) for d in range(10)]
        arcs.append((number[r, -1], _text(".", origin), behind + r))
        arcs += _fraction_arcs(p, k, r, number, behind + r, origin)
    arcs.append((zero, _text(".", origin), behind))
    finals = {n for (r, j), n in number.items() if r * 10 ** (k - max(j, 0)) % p == 0}
    return Graph(tuple(arcs), frozenset(finals | {zero}))


def _fraction_arcs(
    p: int, k: int, r: int, number: dict[tuple[int, int], int], behind: int, origin: Origin
) -> Iterator[tuple[int, Pattern, int]]:
    """Yield what follows the point, and every number of digits behind it, at remainder `r`."""
    for source, j in ((behind, 0), *((number[r, j], j) for j in range(min(k, 1), k + 1))):
        if j == k:  # further digits are noughts, or the number is no multiple
            yield source, _digits(0, 0, origin), number[r, k]
        else:
            for d in range(10):
                yield source, _digits(d, d, origin), number[(10 * r + d) % p, j + 1]
