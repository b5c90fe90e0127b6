"""Sets of numbers as sets of their decimal spellings, closed under writing the same number another way.

A spelling is an optional '-', an integer part without leading zeros, and an optional fraction; no exponent. Every
spelling of a number is in a set or none is, so intersection and complement of spellings are those of numbers, and all
bounds are exact.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from engine.pattern import Chars, Concat, Graph, Origin, Pattern, Ranges, Repeat, Union, sequence

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
    exact = _exact(value)
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
    exact = _exact(bound)
    if exact > 0:
        return _magnitudes(exact, origin, above=True, strict=strict)
    positive = _magnitudes(Decimal(0), origin, above=True, strict=strict and exact == 0)
    if exact == 0:
        return positive if strict else Union((positive, one(0, origin)))
    return Union((positive, Concat((_text("-", origin), _magnitudes(-exact, origin, above=False, strict=strict)))))


def at_most(bound: Number, origin: Origin, *, strict: bool = False) -> Pattern:
    """Return the numbers up to a bound, or under `strict` those before it."""
    exact = _exact(bound)
    minus = _text("-", origin)
    if exact < 0:
        return Concat((minus, _magnitudes(-exact, origin, above=True, strict=strict)))
    negative = Concat((minus, _magnitudes(Decimal(0), origin, above=True, strict=strict and exact == 0)))
    if exact == 0:
        return negative if strict else Union((negative, one(0, origin)))
    return Union((_magnitudes(exact, origin, above=False, strict=strict), negative))


def _exact(value: Number) -> Decimal:
    return Decimal(str(value)) if isinstance(value, float) else Decimal(value)


Node = tuple[str, int, int]


def _magnitudes(bound: Decimal, origin: Origin, *, above: bool, strict: bool) -> Graph:
    """Return the numbers without a sign on one side of a bound: an automaton that compares digit by digit.

    Behind digits the sign of the comparison so far is kept, and how many there were, as far as the bound has some: an
    integer part with fewer is less whatever its digits are.
    """
    whole, fraction = _parts(bound)
    wanted = {1 if above else -1, *([] if strict else [0])}
    number: dict[Node, int] = {("start", 0, 0): 0}
    finals: set[int] = set()
    arcs: list[tuple[int, Pattern, int]] = []
    for node in (queue := [("start", 0, 0)]):
        if _sign(node, len(whole), len(fraction)) in wanted:
            finals.add(number[node])
        for written, following in _steps(node, whole, fraction, origin):
            if following not in number:
                number[following] = len(number)
                queue.append(following)
            arcs.append((number[node], written, number[following]))
    return Graph(tuple(arcs), frozenset(finals), origin)


def _sign(node: Node, whole: int, fraction: int) -> int | None:
    """Return how the number that ends at a node compares with the bound, of so many digits; None where none can end."""
    part, count, sign = node
    if part in ("start", "point"):
        return None
    if part == "fraction":
        return sign or (-1 if count < fraction else 0)
    return -1 if count < whole else sign or (-1 if fraction else 0)


def _steps(node: Node, whole: str, fraction: str, origin: Origin) -> Iterator[tuple[Pattern, Node]]:
    """Yield what may follow, with the node behind it."""
    part, count, sign = node
    if part in ("start", "whole"):
        for written, now in _compared(sign, whole[count : count + 1], origin, least=part == "start"):
            yield written, ("whole", min(count + 1, len(whole)), 1 if count == len(whole) else now)
    if part == "start":
        yield _text("0", origin), ("nought", 1, 0 if whole == "0" else -1)
    elif part in ("whole", "nought"):
        yield _text(".", origin), ("point", 0, _sign(node, len(whole), 0) or 0)
    else:
        for written, now in _compared(sign, fraction[count : count + 1] or "0", origin):
            yield written, ("fraction", min(count + 1, len(fraction)) if not now else 0, now)


def _compared(sign: int, digit: str, origin: Origin, *, least: int = 0) -> Iterator[tuple[Pattern, int]]:
    """Yield the digits from `least` on by the sign of the comparison behind them; without a digit all are alike."""
    if sign or not digit:
        yield _digits(least, 9, origin), sign
        return
    at = int(digit)
    for low, high, now in ((least, at - 1, -1), (max(least, at), at, 0), (max(least, at + 1), 9, 1)):
        if low <= high:
            yield _digits(low, high, origin), now


def divisor(value: Number) -> tuple[int, int]:
    """Return `(p, k)` with `value = p / 10**k`, `p` without noughts at its end; `k` is negative for round numbers."""
    _, digits, exponent = _exact(value).as_tuple()
    written = "".join(map(str, digits)).rstrip("0")
    return int(written), len(written) - len(digits) - int(exponent)


def multiples(value: Number, origin: Origin) -> Pattern:
    """Return the multiples of a number: an automaton that keeps the remainder of what it has read.

    Raises:
        OverflowError: more than `DIVISOR_LIMIT` remainders would have to be told apart.
    """
    p, k = divisor(value)
    if p * (max(k, 0) + 2) > DIVISOR_LIMIT:
        raise OverflowError
    # Node 0 the start, 1 behind '-', then one for each remainder and each number of digits read behind the point, -1
    # being before it. A spelling that ends after fewer than k digits of fraction has noughts there.
    number = {key: n + 2 for n, key in enumerate((r, j) for j in range(-1, max(k, 0) + 1) for r in range(p))}
    arcs: list[tuple[int, Pattern, int]] = [(0, _text("-", origin), 1)]
    for start in (0, 1):
        arcs += [(start, _digits(d, d, origin), number[d % p, -1]) for d in range(1, 10)]
    for r in range(p):
        arcs += [(number[r, -1], _digits(d, d, origin), number[(10 * r + d) % p, -1]) for d in range(10)]
    if k < 0:  # the multiples of p, but nought, with noughts behind
        round_ones = Graph(tuple(arcs), frozenset({number[0, -1]}))
        return Union((one(0, origin), Concat((round_ones, _text("0" * -k, origin), _zeros(origin)))))
    zero = max(number.values()) + 1  # a leading nought, that no digit follows
    behind = zero + 1  # the point behind which a digit has to follow, one for each remainder
    arcs += [(start, _text("0", origin), zero) for start in (0, 1)]
    for r in range(p):
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
