"""Float arithmetic on Python's unbounded integers, one element at a time: slow, and right for every input."""

from __future__ import annotations

import math

_PRECISION = 53
_SMALLEST_EXPONENT = -1074  # of the unit of a subnormal f64


def _as_integer(x: float) -> tuple[int, int]:
    """``(n, e)`` with ``x == n * 2**e``."""
    mantissa, exponent = math.frexp(x)
    return int(math.ldexp(mantissa, _PRECISION)), exponent - _PRECISION


def fma_through_integers(a: float, b: float, c: float) -> float:
    """``a * b + c`` with one rounding to f64, for finite operands of which ``a``, ``b`` and ``c`` are not zero."""
    (a_int, a_exp), (b_int, b_exp), (c_int, c_exp) = _as_integer(a), _as_integer(b), _as_integer(c)
    exponent = min(a_exp + b_exp, c_exp)
    total = (a_int * b_int << a_exp + b_exp - exponent) + (c_int << c_exp - exponent)
    # Nonzero terms that cancel give +0 in round to nearest, which is what round_integer makes of 0.
    return round_integer(total, exponent)


def round_integer(n: int, exponent: int) -> float:
    """``n * 2**exponent`` as f64: to nearest even, subnormals kept, an infinity on overflow."""
    magnitude = abs(n)
    dropped = max(magnitude.bit_length() - _PRECISION, _SMALLEST_EXPONENT - exponent)
    if dropped > 0:
        kept, rest = magnitude >> dropped, magnitude & ((1 << dropped) - 1)
        half = 1 << dropped - 1
        magnitude = kept + (rest > half or (rest == half and kept & 1))
        exponent += dropped
    try:
        value = math.ldexp(magnitude, exponent)
    except OverflowError:
        value = math.inf
    return -value if n < 0 else value
