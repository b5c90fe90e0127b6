"""Noise as a pure function of (seed, step, stream, index), not of how much was drawn before.

Therefore a run replays, a fork without edits is its parent, and two runs that share a seed share their noise. The hash
is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), chained over the four numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STATE = 0
"""Stream of the states: index = position for `chain`, boundary for `tree` and `midpoint`.

Draw `n` of many has the indices from `n · length` on, here and in `TOKEN`.
"""
TOKEN = 1
"""Stream of the tokens, index = position."""
REMASKING = 2
"""Stream of the `random` confidence, index = position."""
PATHS = 2**32
"""Stream of what the correction of paths keeps, index = draw; behind every try of `reject`."""
GUMBEL = 3
"""First stream of independent draws; try `n` of `reject` uses `GUMBEL + n`, index = position · vocab + token."""


@njit(cache=True, inline="always")
def _mix(h):
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True)
def uniform(seed, step, stream, index):
    """Return one number of the open interval (0, 1) with 52 random bits."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    h = _mix(np.uint64(seed) + golden)
    h = _mix((h ^ np.uint64(step)) + golden)
    h = _mix((h ^ np.uint64(stream)) + golden)
    h = _mix((h ^ np.uint64(index)) + golden)
    return (np.float64(h >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(cache=True)
def uniforms(seed, step, stream, start, count):
    """Return float64 `[count]`: the numbers of the indices `start … start + count − 1`."""
    out = np.empty(count)
    for n in range(count):
        out[n] = uniform(seed, step, stream, start + n)
    return out
