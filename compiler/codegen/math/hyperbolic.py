"""tanh."""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F32, at_most, power_of_two, round_to_integer
from .polynomial import hexadecimal, horner

_TWO_LOG2_E_F32 = float.fromhex("0x1.715476p1")
_HALF_LN2_F32 = float.fromhex("0x1.62e430p-2")
# |r| <= ln 2 / 4; e^(2r) = 1 + r P(r), minimax in the relative error: 2^-26.
_EXP_F32 = hexadecimal("0x1p1 0x1.ffffacp0 0x1.5554aep0 0x1.559b4cp-1 0x1.122940p-2 0x1.3904aep-4")
_SMALL_F32 = hexadecimal(
    "-0x1.55553cp-2 0x1.110be4p-3 -0x1.b96238p-5 0x1.600988p-6 -0x1.045f56p-7 0x1.2d9d62p-9 -0x1.77c4a8p-12"
)


def tanh_f32(e: Emitter[V], x: V) -> V:
    """The hyperbolic tangent."""
    a = e.abs(x)
    square = e.mul(x, x)
    small = e.fma(e.mul(x, square), horner(e, square, _SMALL_F32), x)
    one = e.constant(1.0, x)
    limited = at_most(e, a, 10.0)
    k, shifted = round_to_integer(e, F32, limited, _TWO_LOG2_E_F32, F32.bias)
    s = power_of_two(e, F32, shifted)
    r = e.fma(k, e.constant(-_HALF_LN2_F32, x), limited)
    denominator = e.fma(e.mul(s, r), horner(e, r, _EXP_F32), e.add(s, one))
    large = e.sub(one, e.div(e.constant(2.0, x), denominator))
    return e.select(e.compare("olt", a, one), small, e.copysign(large, x))
