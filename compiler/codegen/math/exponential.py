"""exp, exp2 and expm1.

exp: x = k ln 2 + r with k = round(x / ln 2), then e^x = 2^k e^r. k comes from adding 1.5 * 2^fraction_bits, whose
low bits then hold k as an integer. ln 2 is subtracted in two parts; the first leaves no rounding error. A minimax
polynomial gives e^r. 2^k is applied in two steps, the first of which is exact, so a subnormal result is rounded once
more only.

The argument is first limited to a range somewhat wider than that of finite results other than 0: that keeps k small,
and the scaling then gives 0 and infinity by itself. NaN passes through the limits, the polynomial and the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emitter import Emitter, V
from .formats import F32, F64, Format, at_least, at_most, power_of_two, round_to_integer, scale_in_two_steps
from .polynomial import hexadecimal, horner


@dataclass(frozen=True)
class _Exponential:
    """The constants of exp or exp2 in one format."""

    format: Format
    factor: float  # 1 / ln 2, or 1 for exp2
    ln2: tuple[float, ...]  # subtracted k times, in this order
    polynomial: tuple[float, ...]  # of e^r or 2^r, lowest power first
    upper: float  # above it the result overflows


_EXP_F32 = _Exponential(
    format=F32,
    factor=float.fromhex("0x1.715476p0"),
    ln2=hexadecimal("0x1.62e430p-1 -0x1.05c610p-29"),
    # |r| <= 0.3467; minimax in the relative error of e^r: 2^-28.2.
    polynomial=hexadecimal("0x1p0 0x1p0 0x1.fffffcp-2 0x1.555478p-3 0x1.555858p-5 0x1.124930p-7 0x1.6ab99ep-10"),
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
    upper=129.0,
)


_EXP_F64 = _Exponential(
    format=F64,
    factor=float.fromhex("0x1.71547652b82fep+0"),
    ln2=hexadecimal("0x1.62e42fefa39efp-1 0x1.abc9e3b39803fp-56"),
    # |r| <= 0.3467; minimax in the relative error of e^r: 2^-57.7.
    polynomial=hexadecimal(
        "0x1p0 0x1p0 0x1.000000000000ap-1 0x1.5555555555502p-3 0x1.55555555505fep-5 0x1.1111111125328p-7"
        " 0x1.6c16c184b8507p-10 0x1.a01a013b26cc4p-13 0x1.a019988256c91p-16 0x1.71def92c0b09bp-19"
        " 0x1.28aee6c85b57bp-22 0x1.adcf925f2c408p-26"
    ),
    upper=710.0,
)
_EXP2_F64 = _Exponential(
    format=F64,
    factor=1.0,
    ln2=(1.0,),
    # |r| <= 1/2; minimax in the relative error of 2^r: 2^-57.0.
    polynomial=hexadecimal(
        "0x1p0 0x1.62e42fefa39efp-1 0x1.ebfbdff82c5b3p-3 0x1.c6b08d704a26fp-5 0x1.3b2ab6fb9daf2p-7"
        " 0x1.5d87fe78458dap-10 0x1.4309131672dd4p-13 0x1.ffcbfe662cf91p-17 0x1.62bfb4bc9b736p-20"
        " 0x1.b520831a50f89p-24 0x1.e63b5c4c7f8c4p-28 0x1.f0e7d7e6f8c0bp-32"
    ),
    upper=1025.0,
)

# |r| <= 0.3467; e^r - 1 = r + r^2 P(r), minimax in the relative error: 2^-28.2 and 2^-61.1.
_EXPM1_F32 = hexadecimal("0x1.000000p-1 0x1.555514p-3 0x1.55551ap-5 0x1.115fdap-7 0x1.6d02c2p-10 0x1.408d12p-13")
_EXPM1_F64 = hexadecimal(
    "0x1.0000000000000p-1 0x1.5555555555559p-3 0x1.5555555555558p-5 0x1.111111110f713p-7"
    " 0x1.6c16c16c16e7dp-10 0x1.a01a01af94b04p-13 0x1.a01a019b5ae11p-16 0x1.71ddf94f527bfp-19"
    " 0x1.27e500ac98109p-22 0x1.af5ce1167ff66p-26 0x1.1f2aff58d0d26p-29"
)


def exp_f32(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """e^x. ``upper_bounded``: x <= 64 (or NaN) is promised, which saves four operations; the bits are the same."""
    return _exponential(e, x, _EXP_F32, upper_bounded)


def exp2_f32(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """2^x. ``upper_bounded``: x <= 64 (or NaN) is promised, which saves four operations; the bits are the same."""
    return _exponential(e, x, _EXP2_F32, upper_bounded)


def exp_f64(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """As :func:`exp_f32`."""
    return _exponential(e, x, _EXP_F64, upper_bounded)


def exp2_f64(e: Emitter[V], x: V, *, upper_bounded: bool = False) -> V:
    """As :func:`exp2_f32`."""
    return _exponential(e, x, _EXP2_F64, upper_bounded)


def expm1_f32(e: Emitter[V], x: V) -> V:
    """e^x - 1."""
    return _expm1(e, x, _EXP_F32, _EXPM1_F32, lower=-18.0)


def expm1_f64(e: Emitter[V], x: V) -> V:
    """e^x - 1."""
    return _expm1(e, x, _EXP_F64, _EXPM1_F64, lower=-40.0)


def _exponential(e: Emitter[V], x: V, constants: _Exponential, upper_bounded: bool) -> V:
    format = constants.format
    # With x <= 64, 2^k raised by 2^lift is normal over the whole range.
    lift = format.fraction_bits + 1
    if upper_bounded:
        offset = format.bias + lift
    else:
        offset = 2 * format.bias
        x = at_most(e, x, constants.upper)
    # At the lower limit k + offset is 0, a power of two with these bits is 0.0, and 0 comes from a product with it.
    # Products that underflow give the same 0, but x86 CPUs take some 150 cycles for each.
    x = at_least(e, x, -float(round(offset / constants.factor)))
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


def _expm1(e: Emitter[V], x: V, exp: _Exponential, polynomial: tuple[float, ...], lower: float) -> V:
    """e^x - 1; below ``lower`` it rounds to -1."""
    format = exp.format
    half = e.constant(0.5, x)
    limited = at_most(e, at_least(e, x, lower), exp.upper)
    # s = 2^(k-1), for 2^k may overflow where the result does not.
    k, shifted = round_to_integer(e, format, limited, exp.factor, format.bias - 1)
    s = power_of_two(e, format, shifted)
    high, low = exp.ln2
    r = e.fma(k, e.constant(-high, x), limited)
    r_low = e.mul(k, e.constant(-low, x))
    # e^x - 1 = 2 [(s r + s - 1/2) + s (r^2 P(r) + r_low e^r)]; the first bracket as a sum of two.
    square, p = e.mul(r, r), horner(e, r, polynomial)
    rest = e.fma(square, p, e.fma(r_low, e.fma(square, p, r), r_low))
    start = e.sub(s, half)
    head = e.fma(s, r, start)
    tail = e.fma(s, rest, e.fma(s, r, e.sub(start, head)))
    tail = e.add(tail, e.sub(e.sub(s, start), half))  # what start lost to rounding, if k = fraction_bits + 2
    value = e.add(head, tail)
    value = e.add(value, value)
    tiny = e.compare("olt", e.abs(x), e.constant(2.0 ** -(format.fraction_bits + 2), x))
    return e.select(tiny, x, value)
