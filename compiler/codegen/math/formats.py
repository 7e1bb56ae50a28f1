"""The two binary formats, and the steps on their bits that the expansions share."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

from .emitter import ElementType, Emitter, V

INFINITY = inf
NAN = nan


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format."""

    type: ElementType
    integer: ElementType
    fraction_bits: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2^fraction_bits. Where |x| <= 2^(fraction_bits - 2), x + magic is magic + round(x), ties to even, and
        the low fraction_bits - 1 bits of the sum hold round(x) in two's complement."""
        return 1.5 * 2.0**self.fraction_bits

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def exponent_mask(self) -> int:
        return (2 * self.bias + 1) << self.fraction_bits


F32 = Format("f32", "i32", 23, 127)
F64 = Format("f64", "i64", 52, 1023)

_SQRT_HALF_BITS = 0x3FE6A09E00000000  # of a double just below sqrt(1/2)
_ONE_BITS = 0x3FF0000000000000


def at_least(e: Emitter[V], x: V, bound: float) -> V:
    """max(x, bound); NaN stays NaN."""
    limit = e.constant(bound, x)
    return e.select(e.compare("ogt", limit, x), limit, x)


def at_most(e: Emitter[V], x: V, bound: float) -> V:
    """min(x, bound); NaN stays NaN."""
    limit = e.constant(bound, x)
    return e.select(e.compare("olt", limit, x), limit, x)


def round_to_integer(e: Emitter[V], format: Format, x: V, factor: float, offset: int) -> tuple[V, V]:
    """k = round(factor * x), and a float whose low bits are k + offset.

    Requires |k + offset| <= 2^(fraction_bits - 2). If x is NaN both are NaN.
    """
    magic = e.constant(format.magic + offset, x)
    shifted = e.add(x, magic) if factor == 1.0 else e.fma(x, e.constant(factor, x), magic)
    return e.sub(shifted, magic), shifted


def power_of_two(e: Emitter[V], format: Format, shifted: V) -> V:
    """2^k from ``shifted`` of :func:`round_to_integer` made with offset ``bias``, for normal 2^k."""
    bits = e.bitcast(shifted, format.integer)
    return e.bitcast(e.shl(bits, format.fraction_bits), format.type)


def scale_in_two_steps(e: Emitter[V], format: Format, value: V, shifted: V) -> V:
    """value * 2^k, rounded once, from ``shifted`` made with offset ``2 * bias``.

    value is in [1/2, 2] or NaN; -2 bias + 2 <= k <= 2 bias. 2^k is split into the powers of floor(k/2) and ceil(k/2):
    both are normal, and the first product is exact.
    """
    bits = e.bitcast(shifted, format.integer)
    exponent = e.shl(bits, format.fraction_bits)
    mask = e.constant(format.exponent_mask, bits)
    half = e.iand(e.shl(bits, format.fraction_bits - 1), mask)
    rest = e.isub(exponent, half)
    return e.mul(e.mul(value, e.bitcast(half, format.type)), e.bitcast(rest, format.type))


def decompose_f64(e: Emitter[V], x: V) -> tuple[V, V]:
    """k and m in [sqrt(1/2), sqrt(2)) with x = 2^k m, for finite normal x > 0; some finite numbers for other x."""
    bits = e.bitcast(x, "i64")
    raised = e.iadd(bits, e.constant(_ONE_BITS - _SQRT_HALF_BITS, bits))
    fraction = e.iand(raised, e.constant((1 << F64.fraction_bits) - 1, bits))
    m = e.bitcast(e.iadd(fraction, e.constant(_SQRT_HALF_BITS, bits)), "f64")
    return unbiased_exponent_f64(e, raised, x), m


def unbiased_exponent_f64(e: Emitter[V], bits: V, like: V) -> V:
    """The exponent in the bits of a non-negative double, less the bias, as a double.

    The biased exponent becomes the low bits of 2^52: unlike an integer conversion, every target has these operations.
    """
    shift = 2.0**F64.fraction_bits
    biased = e.ior(e.lshr(bits, F64.fraction_bits), e.bitcast(e.constant(shift, like), "i64"))
    return e.sub(e.bitcast(biased, "f64"), e.constant(shift + F64.bias, like))
