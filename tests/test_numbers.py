"""The numbers `(m, k)` of the engine against exact rational arithmetic, at and across the borders of their exponents."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from engine.inference import wide

EDGE = 2.0**128
MANTISSAS = [2.0**-128, 1.5 * 2.0**-128, 2.0**-60, 0.7, 1.0, 3.0**40, EDGE / 2, np.nextafter(EDGE, 0.0)]
NUMBERS = list(itertools.product(MANTISSAS, [-3, -1, 0, 1, 2]))
PAIRS = list(itertools.product(NUMBERS, NUMBERS))


def exact(m: float, k: int) -> Fraction:
    return Fraction(float(m)) * Fraction(2) ** (256 * int(k))


def close(found: tuple[float, int], expected: Fraction) -> bool:
    m, k = found
    return 2.0**-128 <= m < EDGE and abs(exact(m, k) / expected - 1) < Fraction(1, 2**51)


def test_sums_are_exact_to_the_last_digit_and_keep_their_form() -> None:
    wrong = [(a, b) for a, b in PAIRS if not close(wide.add(*a, *b), exact(*a) + exact(*b))]
    assert wrong == []


def test_zero_is_neutral_in_sums() -> None:
    for number in NUMBERS:
        assert wide.add(0.0, wide.NEVER, *number) == number
        assert wide.add(*number, 0.0, wide.NEVER) == number


def test_products_are_exact_to_the_last_digit_and_keep_their_form() -> None:
    wrong = [(a, b) for a, b in PAIRS if not close(wide.times(*a, *b), exact(*a) * exact(*b))]
    assert wrong == []


def test_quotients_that_a_float_holds_are_right_and_smaller_ones_vanish() -> None:
    for a, b in PAIRS:
        quotient = exact(*a) / exact(*b)
        if quotient <= 1:
            found = wide.ratio(*a, *b)
            assert found == pytest.approx(float(quotient), rel=1e-15, abs=1e-300)


def test_logarithms_are_those_of_the_numbers() -> None:
    for x in [-1e5, -177.5, -88.72, -1.0, 0.0, 1e-9, 88.0, 177.4, 1e4]:
        k = round(x / wide.BASE_LOG)
        m = math.exp(x - k * wide.BASE_LOG)
        assert 2.0**-128 <= m < EDGE
        assert wide.to_log(np.asarray([m]), np.asarray([k]))[0] == pytest.approx(x, rel=1e-14, abs=1e-15)
    assert np.isneginf(wide.to_log(np.zeros(1), np.full(1, wide.NEVER)))[0]
