"""erf.

Up to 1, erf x = x + x P(x^2). Beyond, 1 - erf x falls steeply; its square root is much easier for a polynomial, and
1 - p^2 is one fma.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emitter import Emitter, V
from .formats import at_most
from .polynomial import hexadecimal, horner


@dataclass(frozen=True)
class _Erf:
    """The constants of erf in one format; the polynomials are minimax in the relative error of erf x."""

    small: tuple[float, ...]  # P, for x <= 1
    large: tuple[float, ...]  # sqrt(1 - erf x) in powers of x - centre, for 1 <= x <= upper
    centre: float
    upper: float  # from it on erf x rounds to 1


_F32 = _Erf(
    # 2^-29.4
    small=hexadecimal(
        "0x1.06eba6p-3 -0x1.81273ep-2 0x1.ce2ceap-4 -0x1.b7f71cp-6 0x1.53f224p-8 -0x1.a350e4p-11 0x1.4770e4p-14"
    ),
    # 2^-28
    large=hexadecimal(
        "0x1.790c54p-3 -0x1.4abf2ep-2 0x1.9bfa7cp-3 -0x1.87b82cp-6 -0x1.f769c4p-6 0x1.9c9d8ep-7 0x1.afba3ep-10"
        " -0x1.0783e8p-9 0x1.53a086p-13 0x1.bbb510p-13 -0x1.384106p-14 0x1.0d0ad8p-17"
    ),
    centre=1.5,
    upper=3.9375,
)
_F64 = _Erf(
    # 2^-55.3
    small=hexadecimal(
        "0x1.06eba8214db68p-3 -0x1.812746b03799dp-2 0x1.ce2f21a03f8bep-4 -0x1.b82ce311a9aa3p-6 0x1.565bcceee3152p-8"
        " -0x1.c02daeb8d2d15p-11 0x1.f9a296eb6b4d9p-14 -0x1.f4c83303316edp-17 0x1.b96b85db75aa5p-20"
        " -0x1.5b8db2c267313p-23 0x1.d3e7946f61097p-27 -0x1.a25ed624d0b1dp-31"
    ),
    # 2^-56.8
    large=hexadecimal(
        "0x1.d8e066ebad3a3p-4 -0x1.d41a0ff158d85p-3 0x1.63cd8b4e56e16p-3 -0x1.7d03770e7a08bp-5"
        " -0x1.da4563f642053p-7 0x1.9e655d6ca1a86p-7 -0x1.66f6203cc86e1p-10 -0x1.5d5a65d6119a3p-10"
        " 0x1.d5aebb65aa0f3p-12 0x1.c0282b69827eap-15 -0x1.b3fb2b8f89f67p-15 0x1.ec6447cbfc9d9p-19"
        " 0x1.e38144a91f7c8p-19 -0x1.9582ab6225f5cp-21 -0x1.486888ee8d3fbp-23 0x1.1c5a1f94856dep-24"
        " 0x1.19b9e4a05ecdcp-29 -0x1.0fa434239720fp-28 0x1.103e144c8d022p-32 0x1.873e0af4e173ep-33"
        " -0x1.e532fc73674b2p-37 -0x1.3f9e654ee2aefp-36 0x1.f71761951a3e9p-38 -0x1.7cc52913f3cb0p-40"
        " 0x1.545984dfea5c6p-43 -0x1.63932a90411bbp-47 0x1.73a41731858cbp-52 -0x1.ace8254f8a8f8p-59"
    ),
    centre=1.75,
    upper=6.0,
)


def erf_f32(e: Emitter[V], x: V) -> V:
    """The error function."""
    return _erf(e, x, _F32)


def erf_f64(e: Emitter[V], x: V) -> V:
    """The error function."""
    return _erf(e, x, _F64)


def _erf(e: Emitter[V], x: V, constants: _Erf) -> V:
    magnitude = e.abs(x)
    small = e.fma(horner(e, e.mul(x, x), constants.small), x, x)
    t = e.sub(at_most(e, magnitude, constants.upper), e.constant(constants.centre, x))
    root = horner(e, t, constants.large)
    one = e.constant(1.0, x)
    large = e.copysign(e.fma(e.neg(root), root, one), x)
    return e.select(e.compare("olt", magnitude, one), small, large)
