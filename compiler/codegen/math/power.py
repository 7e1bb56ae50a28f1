"""pow.

x^y = 2^(y log2|x|), with the sign of x^y. The logarithm's relative error counts y log2|x| times, so an f32 is
computed in double arithmetic and rounded once at the end.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F64, INFINITY, NAN, at_least, at_most, decompose_f64, power_of_two, round_to_integer
from .polynomial import hexadecimal, horner

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


def pow_f32(e: Emitter[V], x: V, y: V) -> V:
    """x^y."""
    base, exponent = e.cast(x, "f64"), e.cast(y, "f64")
    magnitude = e.abs(base)
    # From 2^40 on, every y gives the same: 0, 1 or infinity, and the sign of an even y.
    exponent = at_least(e, at_most(e, exponent, 2.0**40), -(2.0**40))
    product = e.mul(exponent, _log2_f32(e, magnitude))
    product = at_least(e, at_most(e, product, 160.0), -160.0)
    k, shifted = round_to_integer(e, F64, product, 1.0, F64.bias)
    value = e.mul(horner(e, e.sub(product, k), _EXP2_F32), power_of_two(e, F64, shifted))
    return e.cast(_pow_specials(e, base, exponent, value), "f32")


def _log2_f32(e: Emitter[V], x: V) -> V:
    """log2 x of an f64 that was an f32, x >= 0: -inf at 0; infinity and NaN unchanged."""
    k, m = decompose_f64(e, x)
    f = e.sub(m, e.constant(1.0, x))
    value = e.fma(f, horner(e, f, _LOG2_F32), k)
    value = e.select(e.compare("olt", x, e.constant(INFINITY, x)), value, x)
    return e.select(e.compare("oeq", x, e.constant(0.0, x)), e.constant(-INFINITY, x), value)


def _pow_specials(e: Emitter[V], x: V, y: V, value: V) -> V:
    """x^y from ``value`` = |x|^y: the sign; NaN for x < 0 and fractional y; 1 for x = 1 or y = 0. |y| <= 2^51."""
    zero, one = e.constant(0.0, x), e.constant(1.0, x)
    integral, shifted = round_to_integer(e, F64, y, 1.0, 0)
    bits = e.bitcast(shifted, "i64")
    # Where y is integral, bit 0 of shifted tells whether it is odd.
    is_integer = e.compare("oeq", integral, y)
    sign_bit = e.constant(1 << 63, bits)
    x_sign = e.iand(e.bitcast(x, "i64"), sign_bit)
    odd = e.iand(e.shl(bits, 63), x_sign)
    signed = e.bitcast(e.ixor(e.bitcast(value, "i64"), odd), "f64")
    value = e.select(is_integer, signed, value)
    undefined = e.iand(
        e.iand(e.compare("olt", x, zero), e.compare("ogt", x, e.constant(-INFINITY, x))),
        e.compare("one", integral, y),
    )
    value = e.select(undefined, e.constant(NAN, x), value)
    always_one = e.ior(e.compare("oeq", x, one), e.compare("oeq", y, zero))
    return e.select(always_one, one, value)
