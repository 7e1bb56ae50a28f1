"""Correctly rounded float arithmetic on numpy arrays, in f64, f32, f16 and bf16.

Numpy is trusted with what IEEE 754 makes exact and its loops do element by element: ``+ - * /`` and ``sqrt`` in f32 and
f64, comparisons, and conversions that round once. Everything else is built from those.

f16 and bf16 compute in f32 and round the result. Two roundings to nearest even are the same as one when the wider
format has at least ``2 p + 2`` bits for operands of ``p`` bits (Figueroa, "When is double rounding innocuous?", 1995;
with subnormals Roux, "Innocuous double rounding of basic arithmetic operations", 2014): f32 has 24, f16 needs
2 * 11 + 2 = 24, bf16 2 * 8 + 2 = 18. The theorem says nothing about fma, hence the way through round-to-odd below.

Infinities and NaN are ordinary results here: run these functions under ``np.errstate(all="ignore")``, as
`interpret` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

from .exact_integers import fma_through_integers

Array: TypeAlias = npt.NDArray[Any]
"""A value: a block, or a scalar as an array of rank 0 or a numpy scalar."""

F16, BF16 = np.dtype(np.float16), np.dtype(bfloat16)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NARROW = (F16, BF16)
BITS: dict[np.dtype[Any], np.dtype[Any]] = {
    F16: np.dtype(np.int16),
    BF16: np.dtype(np.int16),
    F32: np.dtype(np.int32),
    F64: np.dtype(np.int64),
}
"""The integer type that holds the bits of each float type."""

# Where the error-free transforms of the f64 fma are exact: no product, error term or sum leaves the normal range.
_FACTOR_RANGE = (2.0**-400, 2.0**400)
_ADDEND_RANGE = (2.0**-800, 2.0**900)
_SPLITTER = 2.0**27 + 1.0


def as_bits(a: Array) -> Array:
    """The bits of a float array as signed integers."""
    array = np.asarray(a)
    return np.asarray(array.view(BITS[array.dtype]))


def _computed_in_f32(a: Array) -> Array:
    return a.astype(F32) if a.dtype in NARROW else a


def add(a: Array, b: Array) -> Array:
    """``a + b``, correctly rounded."""
    return (_computed_in_f32(a) + _computed_in_f32(b)).astype(a.dtype)


def subtract(a: Array, b: Array) -> Array:
    """``a - b``, correctly rounded."""
    return (_computed_in_f32(a) - _computed_in_f32(b)).astype(a.dtype)


def multiply(a: Array, b: Array) -> Array:
    """``a * b``, correctly rounded."""
    return (_computed_in_f32(a) * _computed_in_f32(b)).astype(a.dtype)


def divide(a: Array, b: Array) -> Array:
    """``a / b``, correctly rounded; x / 0 is an infinity, 0 / 0 NaN."""
    return np.true_divide(_computed_in_f32(a), _computed_in_f32(b)).astype(a.dtype)


def square_root(a: Array) -> Array:
    """The square root, correctly rounded; NaN below -0."""
    return np.sqrt(_computed_in_f32(a)).astype(a.dtype)


def narrow_to_odd(x: Array) -> Array:
    """f64 to f32, rounded to odd: an inexact result is the one of its two neighbours whose last bit is 1.

    A second rounding, to a format of at least two bits less, then gives what one rounding of ``x`` would.
    """
    nearest = x.astype(F32)
    back = nearest.astype(F64)
    bits = as_bits(nearest)
    move = np.isfinite(x) & (back != x) & ((bits & 1) == 0)
    outwards = np.abs(x) > np.abs(back)
    return np.asarray(bits + np.where(move, np.where(outwards, 1, -1), 0).astype(np.int32)).view(F32)


def narrow(x: Array, dtype: np.dtype[Any]) -> Array:
    """A float array in ``dtype``, rounded once, to nearest even; NaN stays NaN."""
    if dtype == BF16 and x.dtype == F64:
        return narrow_to_odd(x).astype(BF16)
    return x.astype(dtype)


def _sum_to_odd(p: Array, c: Array) -> Array:
    """``p + c`` in f64, rounded to odd; TwoSum gives the error of the sum, exactly unless it overflows."""
    total, error = _two_sum(p, c)
    bits = as_bits(total)
    move = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    outwards = (error > 0) == (total > 0)
    return np.asarray(bits + np.where(move, np.where(outwards, 1, -1), 0)).view(F64)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _split(a: Array) -> tuple[Array, Array]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product and its error, both exact (Dekker, with Veltkamp's split)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def fma(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` with one rounding, in the type of the operands.

    Up to f32 a product is exact in f64; the sum is rounded to odd there, then to the type.
    """
    if a.dtype == F64:
        return _fma_f64(a, b, c)
    return narrow(_sum_to_odd(a.astype(F64) * b.astype(F64), c.astype(F64)), a.dtype)


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    """By error-free transforms where nothing over- or underflows, through integers or by one plain op elsewhere."""
    a, b, c = np.broadcast_arrays(a, b, c)
    fast = _in_range(a, _FACTOR_RANGE) & _in_range(b, _FACTOR_RANGE) & ((c == 0) | _in_range(c, _ADDEND_RANGE))
    result = _fma_by_transforms(a, b, c)
    if fast.all():
        return result
    # A sum with an exact product (0, an infinity or NaN) is rounded once. If only the addend is infinite or NaN, it
    # alone counts, since the product of the factors may overflow. Adding zero to a product changes nothing.
    finite = np.isfinite(a) & np.isfinite(b)
    zero = (a == 0) | (b == 0)
    product = a * b
    simple = np.where(finite & ~np.isfinite(c), c, np.where(finite & (c == 0) & ~zero, product, product + c))
    result = np.array(np.where(fast, result, simple))
    hard = finite & np.isfinite(c) & ~zero & (c != 0) & ~fast
    for place in zip(*np.nonzero(np.atleast_1d(hard)), strict=True):
        at = place if hard.ndim else ()
        result[at] = fma_through_integers(float(a[at]), float(b[at]), float(c[at]))
    return result


def _in_range(a: Array, limits: tuple[float, float]) -> Array:
    magnitude = np.abs(a)
    return np.asarray((magnitude >= limits[0]) & (magnitude <= limits[1]))


def _fma_by_transforms(a: Array, b: Array, c: Array) -> Array:
    """Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008."""
    product, product_error = _two_product(a, b)
    partial, partial_error = _two_sum(c, product_error)
    total, total_error = _two_sum(product, partial)
    return np.asarray(total + _sum_to_odd(partial_error, total_error))


def maximum(a: Array, b: Array) -> Array:
    """The larger one; NaN if either is NaN; -0 lies below +0."""
    return _extreme(a, b, a > b, as_bits(a) & as_bits(b))


def minimum(a: Array, b: Array) -> Array:
    """The smaller one; NaN if either is NaN; -0 lies below +0."""
    return _extreme(a, b, a < b, as_bits(a) | as_bits(b))


def _extreme(a: Array, b: Array, a_wins: Array, equal_bits: Array) -> Array:
    """Equal floats have equal bits, zeros excepted, whose signs ``equal_bits`` joins."""
    of_numbers = np.where(a_wins, a, np.where(a == b, equal_bits.view(a.dtype), b))
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, of_numbers))


def maximum_number(a: Array, b: Array) -> Array:
    """The larger one, a NaN beside a number ignored; the second of equal ones, zeros of either sign among them."""
    return np.where((a > b) | np.isnan(b), a, b)


def minimum_number(a: Array, b: Array) -> Array:
    """The smaller one, a NaN beside a number ignored; the second of equal ones, zeros of either sign among them."""
    return np.where((a < b) | np.isnan(b), a, b)


def negate(a: Array) -> Array:
    """The sign bit inverted, of NaN too."""
    return _from_bits(as_bits(a) ^ _sign_bit(a), a)


def absolute(a: Array) -> Array:
    """The sign bit cleared, of NaN too."""
    return _from_bits(as_bits(a) & ~_sign_bit(a), a)


def copy_sign(magnitude: Array, sign: Array) -> Array:
    """``magnitude`` with the sign bit of ``sign``."""
    bit = _sign_bit(sign)
    return _from_bits((as_bits(magnitude) & ~bit) | (as_bits(sign) & bit), magnitude)


def _sign_bit(a: Array) -> Array:
    bits = BITS[a.dtype]
    return np.array(np.iinfo(bits).min, bits)


def _from_bits(bits: Array, like: Array) -> Array:
    # numpy scalars have no view of bfloat16
    floats: Array = np.asarray(bits).view(like.dtype)
    return floats


def round_half_away(a: Array) -> Array:
    """To the nearest integer, halves away from zero; the sign is kept, also of zero."""
    wide = _computed_in_f32(a)
    towards_zero = np.trunc(wide)
    # The difference is exact, unlike wide + 0.5.
    away = np.abs(wide - towards_zero) >= 0.5
    rounded: Array = np.copysign(np.abs(towards_zero) + away, wide)
    return rounded.astype(a.dtype)


def rounded_by(operation: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that rounds to integers, exact in every float format, with the sign of zero kept."""
    return lambda a: np.copysign(operation(_computed_in_f32(a)), _computed_in_f32(a)).astype(a.dtype)
