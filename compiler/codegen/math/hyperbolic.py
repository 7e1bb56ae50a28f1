"""tanh.

Below 1, tanh x = x + x^3 P(x^2). From there on tanh x = 1 - 2 / (e^(2x) + 1): the quotient is at most 0.24, so that its
rounding errors count little.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emitter import Emitter, V
from .formats import F32, F64, Format, at_most, power_of_two, round_to_integer
from .polynomial import hexadecimal, horner


@dataclass(frozen=True)
class _Tanh:
    """The constants of tanh in one format."""

    format: Format
    small: tuple[float, ...]  # P, minimax in the relative error of tanh x for x <= 1
    exponential: tuple[float, ...]  # e^(2r) = 1 + r Q(r), minimax in the relative error for |r| <= ln(2) / 4
    factor: float  # 2 / ln 2
    half_ln2: tuple[float, ...]  # subtracted k times, in this order
    upper: float  # from it on tanh x rounds to 1


_F32 = _Tanh(
    format=F32,
    # 2^-27.7
    small=hexadecimal(
        "-0x1.55553cp-2 0x1.110be4p-3 -0x1.b96238p-5 0x1.600988p-6 -0x1.045f56p-7 0x1.2d9d62p-9 -0x1.77c4a8p-12"
    ),
    # 2^-26.2
    exponential=hexadecimal("0x1p1 0x1.ffffacp0 0x1.5554aep0 0x1.559b4cp-1 0x1.122940p-2 0x1.3904aep-4"),
    factor=float.fromhex("0x1.715476p1"),
    half_ln2=hexadecimal("0x1.62e430p-2"),
    upper=10.0,
)
_F64 = _Tanh(
    format=F64,
    # 2^-57.5
    small=hexadecimal(
        "-0x1.555555555554fp-2 0x1.1111111110b21p-3 -0x1.ba1ba1b9dd851p-5 0x1.664f487873ce9p-6 -0x1.226e3458c6db4p-7"
        " 0x1.d6d3aed3fea30p-9 -0x1.7da1da38b23a2p-10 0x1.354b4971ee19bp-11 -0x1.f4de933907a9dp-13"
        " 0x1.939b5ad9d5fd9p-14 -0x1.3f4b6df8f0f2ep-15 0x1.df1d228eec92dp-17 -0x1.3f3f6b7d8ec84p-18"
        " 0x1.552af850251d0p-20 -0x1.f4313a042611ep-23 0x1.6dd93dd895036p-26"
    ),
    # 2^-56.1
    exponential=hexadecimal(
        "0x1p+1 0x1.000000000000fp+1 0x1.555555555558ap+0 0x1.555555554ea08p-1 0x1.11111110fe685p-2"
        " 0x1.6c16c18a68d06p-4 0x1.a01a0223e4840p-6 0x1.a01989e816388p-8 0x1.71dcc54ad7f9fp-10"
        " 0x1.28bbc7350b669p-12 0x1.b1889852d96cfp-15"
    ),
    factor=float.fromhex("0x1.71547652b82fep1"),
    half_ln2=hexadecimal("0x1.62e42fefa39efp-2 0x1.abc9e3b39803fp-57"),
    upper=22.0,
)


def tanh_f32(e: Emitter[V], x: V) -> V:
    """The hyperbolic tangent."""
    return _tanh(e, x, _F32)


def tanh_f64(e: Emitter[V], x: V) -> V:
    """The hyperbolic tangent."""
    return _tanh(e, x, _F64)


def _tanh(e: Emitter[V], x: V, constants: _Tanh) -> V:
    format = constants.format
    magnitude = e.abs(x)
    square = e.mul(x, x)
    small = e.fma(e.mul(x, square), horner(e, square, constants.small), x)
    one = e.constant(1.0, x)
    r = limited = at_most(e, magnitude, constants.upper)
    k, shifted = round_to_integer(e, format, limited, constants.factor, format.bias)
    for part in constants.half_ln2:
        r = e.fma(k, e.constant(-part, x), r)
    # e^(2x) + 1 = s (1 + r Q(r)) + 1 with s = 2^k >= 4 and s + 1 exact, or lost in rounding.
    s = power_of_two(e, format, shifted)
    denominator = e.fma(e.mul(s, r), horner(e, r, constants.exponential), e.add(s, one))
    large = e.sub(one, e.div(e.constant(2.0, x), denominator))
    return e.copysign(e.select(e.compare("olt", magnitude, one), small, large), x)  # small(-0.0) is +0.0
