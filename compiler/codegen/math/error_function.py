"""erf.

Up to about 1, erf x = x + x P(x^2). Beyond, 1 - erf x falls steeply; its square root is much easier for a polynomial,
and 1 - p^2 is one fma.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emitter import Emitter, V
from .formats import at_most
from .polynomial import hexadecimal, horner
from .sums_of_two import product


@dataclass(frozen=True)
class _Erf:
    """The constants of erf in one format; the polynomials are minimax in the relative error of erf x."""

    small: tuple[float, ...]  # P, for x <= split
    large: tuple[float, ...]  # sqrt(1 - erf x) in powers of x - centre, for split <= x <= upper
    split: float
    centre: float
    upper: float  # from it on erf x rounds to 1


_F32 = _Erf(
    # 2^-29.4
    small=hexadecimal(
        "0x1.06eba8p-3 -0x1.812740p-2 0x1.ce2ceep-4 -0x1.b7f71cp-6 0x1.53f234p-8 -0x1.a350dcp-11 0x1.476eaap-14"
    ),
    # 2^-28
    large=hexadecimal(
        "0x1.790c54p-3 -0x1.4abf2ep-2 0x1.9bfa7cp-3 -0x1.87b82cp-6 -0x1.f769c4p-6 0x1.9c9d8ep-7 0x1.afba3ep-10"
        " -0x1.0783e8p-9 0x1.53a086p-13 0x1.bbb510p-13 -0x1.384106p-14 0x1.0d0ad8p-17"
    ),
    split=1.0,
    centre=1.5,
    upper=3.9375,
)
_F64 = _Erf(
    # 2^-56
    small=hexadecimal(
        "0x1.06eba8214db68p-3 -0x1.812746b0379c0p-2 0x1.ce2f21a0417ffp-4 -0x1.b82ce31240d21p-6"
        " 0x1.565bcd0566321p-8 -0x1.c02db29939ea1p-11 0x1.f9a30229f4705p-14 -0x1.f4cfc9b2884c9p-17"
        " 0x1.b9c6f89693104p-20 -0x1.5e64aa75a6409p-23 0x1.f0871442c8695p-27 -0x1.241529b33a22ep-30"
        " 0x1.a47f7088e11f4p-35"
    ),
    # 2^-56.8
    large=hexadecimal(
        "0x1.d8e066ebad3a2p-4 -0x1.d41a0ff158d83p-3 0x1.63cd8b4e56e6cp-3 -0x1.7d03770e7a0cbp-5"
        " -0x1.da4563f64a471p-7 0x1.9e655d6ca3e2cp-7 -0x1.66f6203a469e0p-10 -0x1.5d5a65d7a9e71p-10"
        " 0x1.d5aebb363d227p-12 0x1.c0282d0c22ee5p-15 -0x1.b3fb283374120p-15 0x1.ec63e6052138ep-19"
        " 0x1.e381258fb4418p-19 -0x1.957ffe000120ap-21 -0x1.486e5b38a1e73p-23 0x1.1c4d9cebca6f0p-24"
        " 0x1.1c355d5ac5ac4p-29 -0x1.1021b6116c69ap-28 0x1.0b998b7eb6981p-32 0x1.968c037c90c39p-33"
        " -0x1.41182520b4a48p-36 -0x1.2021fa8aa8545p-36 0x1.d467002b40847p-38 -0x1.61f5c97c2a532p-40"
        " 0x1.37a8665eed999p-43 -0x1.3b02207b1a0dcp-47 0x1.2f7b546c1aa14p-52 -0x1.be362002a5ae6p-60"
    ),
    split=0.96875,
    centre=1.75,
    upper=6.0,
)


def erf_f32(e: Emitter[V], x: V) -> V:
    """The error function."""
    square = e.mul(x, x)
    p = e.fma(e.mul(square, square), horner(e, square, _F32.small[2:]), _linear(e, square, _F32))
    return _join(e, x, e.fma(p, x, x), _F32)


def erf_f64(e: Emitter[V], x: V) -> V:
    """The error function."""
    # There are too many doubles to try them all, so one rounding less: the square is a sum of two.
    square, square_low = product(e, x, x)
    slope = e.constant(_F64.small[1], x)
    rest = e.fma(e.mul(square, square), horner(e, square, _F64.small[2:]), e.mul(square_low, slope))
    return _join(e, x, e.fma(e.add(_linear(e, square, _F64), rest), x, x), _F64)


def _linear(e: Emitter[V], square: V, constants: _Erf) -> V:
    """The first two terms of P. Near 1, to round them and the rest separately loses less than Horner's last steps."""
    constant, slope = (e.constant(c, square) for c in constants.small[:2])
    return e.fma(square, slope, constant)


def _join(e: Emitter[V], x: V, small: V, constants: _Erf) -> V:
    """erf x from ``small``, which is right below the split."""
    magnitude = e.abs(x)
    t = e.sub(at_most(e, magnitude, constants.upper), e.constant(constants.centre, x))
    root = horner(e, t, constants.large)
    one = e.constant(1.0, x)
    large = e.copysign(e.fma(e.neg(root), root, one), x)
    return e.select(e.compare("olt", magnitude, e.constant(constants.split, x)), small, large)
