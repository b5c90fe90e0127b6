"""The vector forms of exp, log and max against extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from engine.inference import vector_math
from engine.inference.vector_math import exp, larger, log


@njit(fastmath=vector_math.FAST)
def _exp_all(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@njit(fastmath=vector_math.FAST)
def _log_all(x, out):
    for i in range(x.size):
        out[i] = log(x[i])


@njit(fastmath=vector_math.FAST)
def _largest(x):
    most = x[0]
    for i in range(1, x.size):
        most = larger(most, x[i])
    return most


@pytest.mark.parametrize(("kind", "least"), [(np.float32, vector_math.LEAST), (np.float64, -700.0)])
def test_exp_is_right_to_two_units_in_the_last_place(kind: type, least: float) -> None:
    x = np.concatenate([np.linspace(least, 88.0, 200_001), [0.0, -1e-9, 1e-9]]).astype(kind)
    found = np.empty_like(x)
    _exp_all(x, found)
    expected = np.exp(x.astype(np.longdouble))
    assert float(np.abs(found / expected - 1).max()) < 2 * np.finfo(kind).eps


def test_log_is_right_to_two_units_in_the_last_place_also_near_one() -> None:
    near = 1 + np.linspace(-0.4, 0.6, 100_001)
    x = np.concatenate([np.exp(np.linspace(-700, 700, 100_000)), near[near != 1], [2.0**-1022, 0.5**0.5]])
    found = np.empty_like(x)
    _log_all(x, found)
    expected = np.log(x.astype(np.longdouble))
    assert float(np.abs(found / expected - 1).max()) < 2 * np.finfo(float).eps
    one = np.empty(1)
    _log_all(np.ones(1), one)
    assert one[0] == 0.0


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_largest_of_many_is_found_wherever_it_stands(kind: type) -> None:
    for at in (0, 1, 15, 16, 63, 99):
        x = np.full(100, -np.inf, kind)
        x[at] = -1e30
        assert _largest(x) == kind(-1e30)
