"""rsqrt, the reciprocal square root.

sqrt(1/x) has two roundings, but the square root halves the relative error of the quotient. x is first brought away from
both ends of the range by an even power of two, so that 1/x neither overflows nor becomes subnormal.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F32, F64, NAN, Format


def rsqrt_f32(e: Emitter[V], x: V) -> V:
    """1 / sqrt(x); ±0 gives ±inf, x < 0 gives NaN."""
    return _rsqrt(e, x, F32)


def rsqrt_f64(e: Emitter[V], x: V) -> V:
    """1 / sqrt(x); ±0 gives ±inf, x < 0 gives NaN."""
    return _rsqrt(e, x, F64)


def _rsqrt(e: Emitter[V], x: V, format: Format) -> V:
    shift = (format.bias + 1) // 4
    one = e.constant(1.0, x)
    below = e.compare("olt", e.abs(x), one)
    up, down = e.constant(2.0 ** (2 * shift), x), e.constant(2.0 ** (-2 * shift), x)
    quotient = e.div(one, e.mul(x, e.select(below, up, down)))
    back = e.select(below, e.constant(2.0**shift, x), e.constant(2.0**-shift, x))
    value = e.mul(e.sqrt(quotient), back)
    zero = e.constant(0.0, x)
    special = e.select(e.compare("oeq", x, zero), quotient, e.constant(NAN, x))
    return e.select(e.compare("ogt", x, zero), value, special)
