"""Exponential, logarithm and maximum in a form that LLVM turns into vector instructions.

`math.exp` is a call for each number; a polynomial without branches runs over 8 or 16 numbers at a time. Each has a
relative error below 2 units in the last place of its type, which the tests measure.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

FAST = {"reassoc", "contract", "nsz", "nnan"}
"""Sums may be reordered, which vectors need. No NaN may come in; infinities may."""
LEAST = -87.0
"""Smallest argument of `exp`: what is below counts as this. `e^-87` is still a normal float32."""
_LOG2E = 1.0 / math.log(2.0)
# ln 2 in two parts; small integers times the first are exact in float32.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.1219444005469058e-4
_E = tuple(1.0 / math.factorial(n) for n in range(14))
_A = tuple(2.0 / (2 * n + 1) for n in range(12))


def exp(x):
    """Return `e^x` for x from `LEAST` (float32) or -700 (float64) to 88."""
    return math.exp(x)


@overload(exp, jit_options={"fastmath": {"contract"}})
def _exp_by_type(x):
    return _exp32 if x == types.float32 else _exp64


def _exp32(x):
    n = np.floor(x * np.float32(_LOG2E) + np.float32(0.5))
    r = (x - n * np.float32(_LN2_HIGH)) - n * np.float32(_LN2_LOW)
    p = np.float32(_E[7])
    p = p * r + np.float32(_E[6])
    p = p * r + np.float32(_E[5])
    p = p * r + np.float32(_E[4])
    p = p * r + np.float32(_E[3])
    p = p * r + np.float32(_E[2])
    p = p * r * r + r + np.float32(1.0)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


def _exp64(x):
    n = np.floor(x * _LOG2E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _E[13]
    p = p * r + _E[12]
    p = p * r + _E[11]
    p = p * r + _E[10]
    p = p * r + _E[9]
    p = p * r + _E[8]
    p = p * r + _E[7]
    p = p * r + _E[6]
    p = p * r + _E[5]
    p = p * r + _E[4]
    p = p * r + _E[3]
    p = p * r + _E[2]
    p = p * r * r + r + 1.0
    return p * np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def log(x):
    """Return the natural logarithm of a positive normal float64.

    With `x = f · 2^n` and f near 1, `log f = 2 atanh((f − 1) / (f + 1))`.
    """
    bits = np.float64(x).view(np.int64)
    # Adding the difference of 1 and √½ moves the border of the exponents there.
    n = (bits + 0x95F619980C433) >> 52
    f = np.int64(bits - (n << 52) + (1023 << 52)).view(np.float64)
    n -= 1023
    s = (f - 1.0) / (f + 1.0)
    z = s * s
    p = _A[11]
    p = p * z + _A[10]
    p = p * z + _A[9]
    p = p * z + _A[8]
    p = p * z + _A[7]
    p = p * z + _A[6]
    p = p * z + _A[5]
    p = p * z + _A[4]
    p = p * z + _A[3]
    p = p * z + _A[2]
    p = p * z + _A[1]
    return n * _LN2_HIGH + (s * z * p + (n * _LN2_LOW + 2.0 * s))


def _larger(_context, x, y):
    """Return the larger of two numbers, told to LLVM in the one form that it vectorises."""

    def build(_target, builder, _signature, arguments):
        kind = arguments[0].type
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(maximum, arguments, fastmath=("nnan", "nsz"))

    return x(x, x), build


larger: Any = intrinsic(_larger)


@njit(cache=True, fastmath=FAST)
def largest_of(values):
    """Return the largest of some numbers; there is at least one."""
    most = values[0]
    for n in range(1, values.size):
        most = larger(most, values[n])
    return most
