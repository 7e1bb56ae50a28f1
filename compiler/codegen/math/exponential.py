"""exp, exp2 and expm1.

exp: x = k ln 2 + r with k = round(x / ln 2), then e^x = 2^k e^r. k comes from adding 1.5 * 2^fraction_bits, whose
low bits then hold k as an integer. ln 2 is subtracted in two parts; the first leaves no rounding error. A minimax
polynomial gives e^r. 2^k is applied in two steps, the first of which is exact, so a subnormal result is rounded once
more only.

The argument is first limited to where the result is neither 0 nor infinite by a wide margin: that keeps k small, and
the scaling then gives 0 and infinity by itself. NaN passes through the limits, the polynomial and the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emitter import Emitter, V
from .formats import F32, Format, at_least, at_most, power_of_two, round_to_integer, scale_in_two_steps
from .polynomial import hexadecimal, horner


@dataclass(frozen=True)
class _Exponential:
    """The constants of exp or exp2 in one format."""

    format: Format
    factor: float  # 1 / ln 2, or 1 for exp2
    ln2: tuple[float, ...]  # subtracted k times, in this order
    polynomial: tuple[float, ...]  # of e^r or 2^r, lowest power first
    lower: float  # below it the result rounds to 0
    upper: float  # above it the result overflows


_EXP_F32 = _Exponential(
    format=F32,
    factor=float.fromhex("0x1.715476p0"),
    ln2=hexadecimal("0x1.62e430p-1 -0x1.05c610p-29"),
    # |r| <= 0.3467; minimax in the relative error of e^r: 2^-28.2.
    polynomial=hexadecimal("0x1p0 0x1p0 0x1.fffffcp-2 0x1.555478p-3 0x1.555858p-5 0x1.124930p-7 0x1.6ab99ep-10"),
    lower=-104.0,
    upper=89.0,
)
_EXP2_F32 = _Exponential(
    format=F32,
    factor=1.0,
    ln2=(1.0,),
    # |r| <= 1/2; minimax in the relative error of 2^r: 2^-26.9.
    polynomial=hexadecimal(
        "0x1p0 0x1.62e430p-1 0x1.ebfbe0p-3 0x1.c6afa0p-5 0x1.3b290ep-7 0x1.5f0242p-10 0x1.465b10p-13"
    ),
    lower=-151.0,
    upper=129.0,
)


def exp_f32(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """e^x. ``upper_bounded``: x <= 64 (or NaN) is promised, which saves four operations; the bits are the same."""
    return _exponential(e, x, _EXP_F32, upper_bounded)


def exp2_f32(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """2^x. ``upper_bounded``: x <= 64 (or NaN) is promised, which saves four operations; the bits are the same."""
    return _exponential(e, x, _EXP2_F32, upper_bounded)


def _exponential(e: Emitter[V], x: V, constants: _Exponential, upper_bounded: bool) -> V:
    format = constants.format
    x = at_least(e, x, constants.lower)
    # With x <= 64, 2^k raised by 2^lift is normal over the whole range.
    lift = format.fraction_bits + 1
    if upper_bounded:
        offset = format.bias + lift
    else:
        offset = 2 * format.bias
        x = at_most(e, x, constants.upper)
    k, shifted = round_to_integer(e, format, x, constants.factor, offset)
    r = x
    for part in constants.ln2:
        r = e.fma(k, e.constant(-part, x), r) if part != 1.0 else e.sub(r, k)
    value = horner(e, r, constants.polynomial)
    scaled = e.scale(value, k)
    if scaled is not None:
        return scaled
    if upper_bounded:
        raised = e.mul(value, power_of_two(e, format, shifted))
        return e.mul(raised, e.constant(2.0**-lift, x))
    return scale_in_two_steps(e, format, value, shifted)


_EXPM1_F32 = hexadecimal("0x1.fffffep-2 0x1.555484p-3 0x1.55576cp-5 0x1.1242acp-7 0x1.6b2190p-10")


def expm1_f32(e: Emitter[V], x: V) -> V:
    """e^x - 1."""
    format = F32
    half = e.constant(0.5, x)
    limited = at_most(e, at_least(e, x, -18.0), _EXP_F32.upper)
    # s = 2^(k-1), for 2^k may overflow where the result does not.
    k, shifted = round_to_integer(e, format, limited, _EXP_F32.factor, format.bias - 1)
    s = power_of_two(e, format, shifted)
    high, low = (e.constant(-part, x) for part in _EXP_F32.ln2)
    r_high = e.fma(k, high, limited)
    r = e.fma(k, low, r_high)
    # e^x - 1 = 2 [(s r_high + s - 1/2) + s (k low + r^2 P(r))]; the first bracket as a sum of two.
    rest = e.fma(e.mul(r, r), horner(e, r, _EXPM1_F32), e.mul(k, low))
    start = e.sub(s, half)
    head = e.fma(s, r_high, start)
    tail = e.fma(s, rest, e.fma(s, r_high, e.sub(start, head)))
    tail = e.add(tail, e.sub(e.sub(s, start), half))  # what start lost to rounding: k = 25 only
    value = e.add(head, tail)
    value = e.add(value, value)
    tiny = e.compare("olt", e.abs(x), e.constant(2.0**-25, x))
    return e.select(tiny, x, value)
