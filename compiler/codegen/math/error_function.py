"""erf.

Up to 1, erf x = x + x P(x^2). Beyond, 1 - erf x falls steeply; its square root is much easier for a polynomial, and
1 - p^2 is one fma.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import at_most
from .polynomial import hexadecimal, horner

# 0 <= x <= 1, minimax in the relative error of erf x: 2^-29.4.
_SMALL_F32 = hexadecimal(
    "0x1.06eba6p-3 -0x1.81273ep-2 0x1.ce2ceap-4 -0x1.b7f71cp-6 0x1.53f224p-8 -0x1.a350e4p-11 0x1.4770e4p-14"
)
# sqrt(1 - erf x) in powers of x - 3/2, 1 <= x <= 3.9375, minimax in the relative error of erf x: 2^-28.
_CENTRE_F32 = 1.5
_LARGE_F32 = hexadecimal(
    "0x1.790c54p-3 -0x1.4abf2ep-2 0x1.9bfa7cp-3 -0x1.87b82cp-6 -0x1.f769c4p-6 0x1.9c9d8ep-7 0x1.afba3ep-10"
    " -0x1.0783e8p-9 0x1.53a086p-13 0x1.bbb510p-13 -0x1.384106p-14 0x1.0d0ad8p-17"
)


def erf_f32(e: Emitter[V], x: V) -> V:
    """The error function."""
    a = e.abs(x)
    small = e.fma(horner(e, e.mul(x, x), _SMALL_F32), x, x)
    t = e.sub(at_most(e, a, 3.9375), e.constant(_CENTRE_F32, x))
    root = horner(e, t, _LARGE_F32)
    one = e.constant(1.0, x)
    large = e.copysign(e.fma(e.neg(root), root, one), x)
    return e.select(e.compare("olt", a, one), small, large)
