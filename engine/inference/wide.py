"""Non-negative numbers that neither underflow nor overflow.

A message of a real JSON automaton spans more than a thousand decades over its live states, which no scaling of float64
holds. Here a number is a pair `(m, k)` standing for `m · 2^(256 k)` with `2^-128 ≤ m < 2^128`, or `m = 0`. Sums and
products need a comparison and a multiplication, no exponential, and nothing underflows: zero means impossible, and
nothing else does. Terms more than 256 binary digits apart can't change a 53-bit sum and are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

BASE_LOG = 256.0 * math.log(2.0)
"""Natural logarithm of 2^256."""
BIG = 2.0**128
SMALL = 2.0**-128
UP = 2.0**256
DOWN = 2.0**-256
NEVER = -(2**30)
"""Exponent of zero: below every other, so that a comparison of exponents needs no special case."""


@njit(cache=True, inline="always")
def add(m, k, n, j):
    """`(m, k) + (n, j)`."""
    if j == k:
        m += n
    elif j == k + 1:
        m, k = n + m * DOWN, j
    elif j > k:
        m, k = n, j
    elif j == k - 1:
        m += n * DOWN
    if m >= BIG:
        m, k = m * DOWN, k + 1
    return m, k


@njit(cache=True, inline="always")
def times(m, k, n, j):
    """`(m, k) · (n, j)`, both positive."""
    m *= n
    k += j
    if m >= BIG:
        m, k = m * DOWN, k + 1
    elif m < SMALL:
        m, k = m * UP, k - 1
    return m, k


@njit(cache=True, inline="always")
def normal(m, k):
    """Bring a positive float64 times `2^(256 k)` into the form of a number."""
    while m >= BIG:
        m, k = m * DOWN, k + 1
    while m < SMALL:
        m, k = m * UP, k - 1
    return m, k


@njit(cache=True, inline="always")
def ratio(m, k, n, j):
    """`(m, k) / (n, j)` as a float64, for quotients that are at most about 1; below 1e-300 they may vanish."""
    if m == 0.0:
        return 0.0
    q = m / n
    for _ in range(min(j - k, 5)):
        q *= DOWN
    for _ in range(min(k - j, 5)):
        q *= UP
    return q


def to_log(m: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of numbers `(m, k)`; `-inf` for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(m) + np.where(m > 0, k, 0) * BASE_LOG)
