"""A fast exact fma of f32: most sums of an exact product need one plain rounding from f64.

The product of two f32 is exact in f64; the sum with the addend is rounded there to 53 bits. Rounding that once more
to 24 bits gives what a single rounding would, unless the f64 lies exactly between two f32, since only then does the
part that was lost decide. Lanes for which that holds, or whose result is subnormal in f32 (where fewer bits are
kept), go through `exact.fma`.
"""

from __future__ import annotations

import numpy as np

from halfulp.compiler.interpreter import exact

from .types import F32, F64, S64, Array

_DROPPED = np.int64((1 << 29) - 1)  # the 53 - 24 bits that f32 does not keep
_HALFWAY = np.int64(1 << 28)
_SURELY_NORMAL = 2.0**-125


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of f32 arrays that broadcast, with one rounding."""
    total = a.astype(F64) * b.astype(F64) + c.astype(F64)
    result = total.astype(F32)
    doubtful = (total.view(S64) & _DROPPED) == _HALFWAY
    small = np.abs(total) < _SURELY_NORMAL
    if np.count_nonzero(small):
        doubtful |= small & (total != 0)  # zero is exact: f64 does not underflow here
    if np.count_nonzero(doubtful):
        a, b, c = (np.broadcast_to(operand, total.shape)[doubtful] for operand in (a, b, c))
        result[doubtful] = exact.fma(a, b, c)
    return result
