"""sin and cos.

x is measured in quarter turns: x * 2/pi = k + f with integral k and |f| <= 1/2. The two low bits of k choose
between the polynomials of sin(pi/2 f) and cos(pi/2 f) and the sign.

However large x is, only the bits of 2/pi from about its exponent on matter (Payne and Hanek): those before give
multiples of four quarter turns. The bits are cut into pieces, so few that their products with x are exact, and the
pieces are chosen by comparing |x| with a few bounds, without memory accesses.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F64
from .polynomial import hexadecimal, horner
from .two_over_pi import two_over_pi

# f32: in double arithmetic, where products of 24 and 29 bits are exact. With |x| up to a window's end, the products are
# below 2^53, 2^24 and 2^-5; the bits before the window give multiples of 4, and those after it less than 2^-58.
# The closest an f32 comes to a multiple of pi/2 is 2^-31 or so.
_WINDOWS_F32 = ((2.0**53, 0), (2.0**80, 28), (2.0**107, 55), (2.0**128, 82))  # end, first bit

# |f| <= 1/2; sin(pi/2 f) = f P(f^2) and cos(pi/2 f) = 1 + f^2 Q(f^2), minimax: 2^-37 and 2^-33.
_SIN_F32 = hexadecimal(
    "0x1.921fb5443af22p+0 -0x1.4abbce5647de2p-1 0x1.466bba884d028p-4 -0x1.32ca8399b843fp-8 0x1.4bc1da3b528acp-13"
)
_COS_F32 = hexadecimal("0x1p0 -0x1.3bd3cc7b75234p+0 0x1.03c1dd8fc1e1fp-2 -0x1.55c5dca32e49ep-6 0x1.d9d49758dad5fp-11")


def sin_f32(e: Emitter[V], x: V) -> V:
    """The sine of x radians, for any finite x."""
    f, quadrant = _reduce_f32(e, x)
    return _sine_of_quadrant_f32(e, f, quadrant)


def cos_f32(e: Emitter[V], x: V) -> V:
    """The cosine of x radians, for any finite x."""
    f, quadrant = _reduce_f32(e, x)
    return _sine_of_quadrant_f32(e, f, e.iadd(quadrant, e.constant(1, quadrant)))


def _reduce_f32(e: Emitter[V], narrow: V) -> tuple[V, V]:
    """f, an f64, and an i64 whose two low bits are those of k."""
    x = e.cast(narrow, "f64")
    magic = e.constant(F64.magic, x)
    pieces = _choose_pieces_f32(e, x)
    first = e.mul(x, pieces[0])
    fours = e.sub(e.fma(first, e.constant(0.25, x), magic), magic)
    first = e.fma(fours, e.constant(-4.0, x), first)
    second = e.mul(x, pieces[1])
    shifted = e.add(e.add(first, second), magic)
    k = e.sub(shifted, magic)
    f = e.fma(x, pieces[2], e.add(e.sub(first, k), second))
    return f, e.bitcast(shifted, "i64")


def _choose_pieces_f32(e: Emitter[V], x: V) -> list[V]:
    """The bits of 2/pi for x: the window's first 29 bits, the next 29, and 53 more."""
    magnitude = e.abs(x)
    *windows, (_, last) = _WINDOWS_F32
    chosen = [e.constant(piece, x) for piece in _pieces_f32(last)]
    for end, first_bit in reversed(windows):
        inside = e.compare("olt", magnitude, e.constant(end, x))
        pieces = _pieces_f32(first_bit)
        chosen = [e.select(inside, e.constant(a, x), b) for a, b in zip(pieces, chosen, strict=True)]
    return chosen


def _pieces_f32(first_bit: int) -> tuple[float, float, float]:
    return two_over_pi(first_bit, 29), two_over_pi(first_bit + 29, 29), two_over_pi(first_bit + 58, 53)


def _sine_of_quadrant_f32(e: Emitter[V], f: V, quadrant: V) -> V:
    """sin(pi/2 (quadrant + f)) as an f32."""
    square = e.mul(f, f)
    sine = e.mul(f, horner(e, square, _SIN_F32))
    cosine = horner(e, square, _COS_F32)
    odd = e.compare("ne", e.iand(quadrant, e.constant(1, quadrant)), e.constant(0, quadrant))
    value = e.select(odd, cosine, sine)
    sign = e.iand(e.shl(quadrant, 62), e.constant(1 << 63, quadrant))
    return e.cast(e.bitcast(e.ixor(e.bitcast(value, "i64"), sign), "f64"), "f32")
