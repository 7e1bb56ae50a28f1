"""sin and cos of f64.

The method of :mod:`.trigonometric`, except that no wider type is at hand: x/(2 pi) is a sum of products of x and
53-bit pieces of 1/(2 pi), each product as a sum of two doubles. An f64 may come as close as 2^-61 to a multiple of
pi/2, so its distance is needed to about 2^-120; five pieces give 2^-157.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F64, at_least, round_to_integer, unbiased_exponent_f64
from .polynomial import hexadecimal, horner
from .sums_of_two import fast_two_sum, product, two_sum
from .two_over_pi import two_over_pi

# Window j begins at bit 53 j of 1/(2 pi). It is right for 2^(53 j + 54) <= |x| < 2^(53 j + 107), window 0 also below:
# the bits before it then give whole turns.
_PIECE_BITS = 53
_WINDOWS = 19
_PIECES = 5
# Pieces are stored 2^256 times too large and x is taken 2^256 times too small, since the last pieces are subnormal.
_SCALE = 256
_TABLE = tuple(two_over_pi(_PIECE_BITS * i, _PIECE_BITS, _SCALE - 2) for i in range(_WINDOWS + _PIECES - 1))

_TWO_PI = hexadecimal("0x1.921fb54442d18p+2 0x1.1a62633145c07p-52")
# x^2 <= 0.6175; sin x = x + x^3 P(x^2) and cos x = 1 - x^2/2 + x^4 Q(x^2), minimax in the relative error: 2^-57.8
# and 2^-63.9.
_SIN = hexadecimal(
    "-0x1.5555555555548p-3 0x1.111111110f730p-7 -0x1.a01a019be91ffp-13 0x1.71de355528c74p-19 -0x1.ae5e4b81045f9p-26"
    " 0x1.5d8b547f3f01ep-33"
)
_COS = hexadecimal(
    "0x1.555555555554bp-5 -0x1.6c16c16c1500dp-10 0x1.a01a019c8dcefp-16 -0x1.27e4f7f04b55ap-22 0x1.1ee9dac66a6dbp-29"
    " -0x1.8fa5e8f2401c5p-37"
)


def sin_f64(e: Emitter[V], x: V) -> V:
    """The sine of x radians, for any finite x."""
    value = _sine_of_quadrant(e, *_reduce(e, x))
    # Where x would vanish in the scaling it is its own sine.
    tiny = e.compare("olt", e.abs(x), e.constant(2.0**-27, x))
    return e.select(tiny, x, value)


def cos_f64(e: Emitter[V], x: V) -> V:
    """The cosine of x radians, for any finite x."""
    high, low, quadrant = _reduce(e, x)
    return _sine_of_quadrant(e, high, low, e.iadd(quadrant, e.constant(1, quadrant)))


def _reduce(e: Emitter[V], x: V) -> tuple[V, V, V]:
    """x less the nearest multiple of pi/2, as a sum of two, and an i64 whose two low bits are those of the multiple."""
    pieces = _choose_pieces(e, x)
    x = e.mul(x, e.constant(2.0**-_SCALE, x))
    (h0, l0), (h1, l1), (h2, l2), (h3, l3) = (product(e, x, piece) for piece in pieces[:4])
    # Whole turns go: |h0| < 2^105, |l0| <= 2^52 and |h1| < 2^52. What remains is at most 2 each.
    h0 = _modulo(e, _modulo(e, h0, 2.0**54), 4.0)
    l0, h1 = _modulo(e, l0, 2.0), _modulo(e, h1, 4.0)
    # Each of these sums is below the last bit of the one before it, or nearly so.
    s1, e1 = two_sum(e, l0, h1)
    s2, e2 = two_sum(e, l1, h2)
    s2, e3 = two_sum(e, s2, e1)
    s3 = e.add(e.add(e2, e3), e.add(l2, e.add(h3, e.fma(x, pieces[4], l3))))
    quarters, shifted = round_to_integer(e, F64, e.add(e.add(h0, s1), s2), 4.0, 0)
    s0 = e.fma(quarters, e.constant(-0.25, x), h0)
    high, e4 = two_sum(e, s0, s1)
    high, e5 = two_sum(e, high, s2)
    low = e.add(e.add(e4, e5), s3)
    # From turns to radians.
    c_high, c_low = (e.constant(part, x) for part in _TWO_PI)
    radians, error = product(e, high, c_high)
    low = e.add(e.fma(high, c_low, e.mul(low, c_high)), error)
    return *fast_two_sum(e, radians, low), e.bitcast(shifted, "i64")


def _choose_pieces(e: Emitter[V], x: V) -> list[V]:
    """The five pieces of the window that |x| calls for."""
    exponent = at_least(e, unbiased_exponent_f64(e, e.bitcast(e.abs(x), "i64"), x), 80.0)
    # floor((exponent - 54) / 53) = round((exponent - 80) / 53)
    _, shifted = round_to_integer(e, F64, e.sub(exponent, e.constant(80.0, x)), 1 / 53, 0)
    window = e.bitcast(shifted, "i64")
    zero = e.constant(0, window)
    chosen = [e.constant(piece, x) for piece in _TABLE]
    # By the window's bits from the highest on: the table shifts down, and its length to what can still be asked for.
    for shift in (16, 8, 4, 2, 1):
        bit = e.compare("ne", e.iand(window, e.constant(shift, window)), zero)
        chosen = [
            e.select(bit, chosen[i + shift], chosen[i]) if i + shift < len(chosen) else chosen[i]
            for i in range(min(len(chosen), shift - 1 + _PIECES))
        ]
    return chosen


def _modulo(e: Emitter[V], x: V, modulus: float) -> V:
    """x less a multiple of ``modulus``, a power of two, exactly; at most modulus / 2. |x| <= 2^51 modulus."""
    magic = e.constant(F64.magic * modulus, x)
    return e.sub(x, e.sub(e.add(x, magic), magic))


def _sine_of_quadrant(e: Emitter[V], x: V, low: V, quadrant: V) -> V:
    """sin(x + low + quadrant pi/2)."""
    square = e.mul(x, x)
    half = e.mul(square, e.constant(-0.5, x))
    sine = e.add(x, e.fma(e.mul(square, x), horner(e, square, _SIN), e.fma(half, low, low)))
    one = e.constant(1.0, x)
    head = e.add(one, half)
    tail = e.add(e.sub(one, head), half)
    tail = e.add(tail, e.fma(e.mul(square, square), horner(e, square, _COS), e.neg(e.mul(x, low))))
    cosine = e.add(head, tail)
    odd = e.compare("ne", e.iand(quadrant, e.constant(1, quadrant)), e.constant(0, quadrant))
    bits = e.bitcast(e.select(odd, cosine, sine), "i64")
    sign = e.iand(e.shl(quadrant, 62), e.constant(1 << 63, quadrant))
    return e.bitcast(e.ixor(bits, sign), "f64")
