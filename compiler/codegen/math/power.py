"""pow.

x^y = 2^(y log2|x|), with the sign of x^y. The logarithm's relative error counts y log2|x| times, so an f32 is
computed in double arithmetic and rounded once at the end; an f64 carries the logarithm as a sum of two.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import (
    F64,
    INFINITY,
    NAN,
    at_least,
    at_most,
    decompose_f64,
    power_of_two,
    round_to_integer,
    scale_in_two_steps,
)
from .polynomial import hexadecimal, horner
from .sums_of_two import fast_two_sum, product

# sqrt(1/2) - 1 <= f <= sqrt(2) - 1; log2(1 + f) = f P(f), minimax in the relative error: 2^-36.8.
_LOG2_F32 = hexadecimal(
    "0x1.71547652b58cdp+0 -0x1.71547651b6f76p-1 0x1.ec709de34ebb7p-2 -0x1.7154788849645p-2 0x1.2776b6c4b1f36p-2"
    " -0x1.ec6f2df796a8bp-3 0x1.a61b80a3b3320p-3 -0x1.7188d56d99352p-3 0x1.481f74a147e2ep-3 -0x1.23d60fb1f5571p-3"
    " 0x1.0ad01a60e3831p-3 -0x1.13be5133b7f3cp-3 0x1.0f60e3d22a98ep-3 -0x1.1d8ac5287854ep-4"
)
# |r| <= 1/2; minimax in the relative error of 2^r: 2^-29.0.
_EXP2_F32 = hexadecimal(
    "0x1.0000000260840p+0 0x1.62e430c7f8faep-1 0x1.ebfbdade3c3ccp-3 0x1.c6aed4af0cf3ep-5 0x1.3b2dbb26630fbp-7"
    " 0x1.5f45701d798ebp-10 0x1.41d3987823474p-13"
)

_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_THIRD = hexadecimal("0x1.5555555555555p-2 0x1.5555555555555p-56")
_TWO_LOG2_E = hexadecimal("0x1.71547652b82fep+1 0x1.777d0ffda0d24p-55")
# z <= 0.0295; atanh(s)/s = 1 + z/3 + z^2 P(z) with z = s^2, minimax: 2^-73.3.
_ATANH = hexadecimal(
    "0x1.9999999999995p-3 0x1.2492492493192p-3 0x1.c71c71c557438p-4 0x1.745d1845e5491p-4 0x1.3b135d88d1270p-4"
    " 0x1.11217b480d2bep-4 0x1.de1455ac5319bp-5 0x1.ec122f0b7c250p-5"
)
# |r| <= 1/2; 2^r = 1 + r P(r), minimax in the relative error: 2^-57.0.
_EXP2_F64 = hexadecimal(
    "0x1.62e42fefa39efp-1 0x1.ebfbdff82c5b3p-3 0x1.c6b08d704a26fp-5 0x1.3b2ab6fb9daf2p-7 0x1.5d87fe78458dap-10"
    " 0x1.4309131672dd4p-13 0x1.ffcbfe662cf91p-17 0x1.62bfb4bc9b736p-20 0x1.b520831a50f89p-24"
    " 0x1.e63b5c4c7f8c4p-28 0x1.f0e7d7e6f8c0bp-32"
)


def pow_f32(e: Emitter[V], x: V, y: V) -> V:
    """x^y."""
    base, exponent = e.cast(x, "f64"), e.cast(y, "f64")
    magnitude = e.abs(base)
    # From 2^40 on, every y gives the same: 0, 1 or infinity.
    limited = at_least(e, at_most(e, exponent, 2.0**40), -(2.0**40))
    result = e.mul(limited, _log2_f32(e, magnitude))
    result = at_least(e, at_most(e, result, 160.0), -160.0)
    k, shifted = round_to_integer(e, F64, result, 1.0, F64.bias)
    value = e.mul(horner(e, e.sub(result, k), _EXP2_F32), power_of_two(e, F64, shifted))
    return e.cast(_pow_specials(e, base, exponent, value), "f32")


def pow_f64(e: Emitter[V], x: V, y: V) -> V:
    """x^y."""
    magnitude = e.abs(x)
    log_high, log_low = _log2_f64(e, magnitude)
    # From 2^64 on, every y gives the same: 0, 1 or infinity.
    limited = at_least(e, at_most(e, y, 2.0**64), -(2.0**64))
    high = e.mul(limited, log_high)
    low = e.fma(limited, log_low, e.fma(limited, log_high, e.neg(high)))
    # Beyond the range of finite results the low part, which may be NaN, does not matter.
    small = e.compare("olt", e.abs(high), e.constant(1100.0, x))
    low = e.select(small, low, e.constant(0.0, x))
    high = at_least(e, at_most(e, high, 1100.0), -1100.0)
    k, shifted = round_to_integer(e, F64, high, 1.0, 2 * F64.bias)
    # 2^(r + low) = 2^r (1 + low ln 2), with 2^r as a sum of two.
    r = e.sub(high, k)
    p = horner(e, r, _EXP2_F64)
    one = e.constant(1.0, x)
    value = e.fma(r, p, one)
    rest = e.fma(r, p, e.sub(one, value))
    value = e.add(value, e.fma(e.mul(low, e.constant(_LN2, x)), value, rest))
    value = scale_in_two_steps(e, F64, value, shifted)
    return _pow_specials(e, x, y, value)


def _log2_f64(e: Emitter[V], x: V) -> tuple[V, V]:
    """log2 x, x >= 0, as a sum of two that is right to about 2^-65: -inf at 0; infinity and NaN unchanged.

    With x = 2^k m and s = (m - 1) / (m + 1): log2 x = k + 2 log2(e) (s + s^3/3 + s^5/5 + ...).
    """
    one, zero = e.constant(1.0, x), e.constant(0.0, x)
    raise_by = F64.fraction_bits + 2
    subnormal = e.compare("olt", x, e.constant(F64.smallest_normal, x))
    k, m = decompose_f64(e, e.select(subnormal, e.mul(x, e.constant(2.0**raise_by, x)), x))
    k = e.sub(k, e.select(subnormal, e.constant(raise_by, x), zero))
    # s as a sum of two; m - 1 is exact, m + 1 rounds.
    f, sum_ = e.sub(m, one), e.add(m, one)
    s = e.div(f, sum_)
    remainder = e.fma(e.neg(s), e.sub(m, e.sub(sum_, one)), e.fma(e.neg(s), sum_, f))
    s_low = e.div(remainder, sum_)
    # z = s^2, and z/3 + z^2 (1/5 + z/7 + ...), as sums of two.
    z, z_low = product(e, s, s)
    z_low = e.fma(e.add(s, s), s_low, z_low)
    third, third_low = (e.constant(part, x) for part in _THIRD)
    a, a_low = product(e, z, third)
    a_low = e.fma(z, third_low, e.fma(z_low, third, a_low))
    series, series_low = fast_two_sum(e, a, e.mul(e.mul(z, z), horner(e, z, _ATANH)))
    series_low = e.add(series_low, a_low)
    # s (1 + series)
    w, w_low = product(e, s, series)
    w_low = e.fma(s, series_low, e.fma(s_low, series, w_low))
    v, v_low = fast_two_sum(e, s, w)
    v_low = e.add(v_low, e.add(w_low, s_low))
    factor, factor_low = (e.constant(part, x) for part in _TWO_LOG2_E)
    g, g_low = product(e, v, factor)
    g_low = e.fma(v, factor_low, e.fma(v_low, factor, g_low))
    high, low = fast_two_sum(e, k, g)
    low = e.add(low, g_low)
    high = e.select(e.compare("olt", x, e.constant(INFINITY, x)), high, x)
    return e.select(e.compare("oeq", x, zero), e.constant(-INFINITY, x), high), low


def _log2_f32(e: Emitter[V], x: V) -> V:
    """log2 x of an f64 that was an f32, x >= 0: -inf at 0; infinity and NaN unchanged."""
    k, m = decompose_f64(e, x)
    f = e.sub(m, e.constant(1.0, x))
    value = e.fma(f, horner(e, f, _LOG2_F32), k)
    value = e.select(e.compare("olt", x, e.constant(INFINITY, x)), value, x)
    return e.select(e.compare("oeq", x, e.constant(0.0, x)), e.constant(-INFINITY, x), value)


def _pow_specials(e: Emitter[V], x: V, y: V, value: V) -> V:
    """x^y from ``value`` = |x|^y: the sign; NaN for x < 0 and fractional y; 1 for x = 1 or y = 0."""
    zero, one = e.constant(0.0, x), e.constant(1.0, x)
    # From 2^52 to 2^53 a double has no fraction, and its last bit tells whether it is odd; beyond, all are even.
    magnitude = at_most(e, e.abs(y), 2.0**53)
    offset = e.constant(2.0**52, x)
    fractional = e.compare("olt", magnitude, offset)
    raised = e.select(fractional, e.add(magnitude, offset), magnitude)
    integral = e.select(fractional, e.sub(raised, offset), magnitude)
    bits = e.bitcast(raised, "i64")
    sign_bit = e.constant(1 << 63, bits)
    odd_and_negative = e.iand(e.shl(bits, 63), e.iand(e.bitcast(x, "i64"), sign_bit))
    signed = e.bitcast(e.ixor(e.bitcast(value, "i64"), odd_and_negative), "f64")
    value = e.select(e.compare("oeq", integral, magnitude), signed, value)
    undefined = e.iand(
        e.iand(e.compare("olt", x, zero), e.compare("ogt", x, e.constant(-INFINITY, x))),
        e.compare("one", integral, magnitude),
    )
    value = e.select(undefined, e.constant(NAN, x), value)
    always_one = e.ior(e.compare("oeq", x, one), e.compare("oeq", y, zero))
    return e.select(always_one, one, value)
