"""Conversions between number types, as ``tile.cast`` defines them: every input has a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from .exact import F32, F64, NARROW, Array, narrow
from .integers import BOOL, as_signed, as_unsigned, width

_F64_BITS = 53


def cast(a: Array, dtype: np.dtype[Any], *, unsigned_source: bool = False, unsigned_result: bool = False) -> Array:
    """The numbers of ``a`` as values of ``dtype``.

    A float becomes a float by one rounding to nearest even; an integer by truncation, then saturation, NaN giving 0.
    An integer becomes a float by one rounding to nearest even, a wider integer by extension, a narrower one by
    wrapping. To i1 every value but zero, so NaN too, is 1; i1 holds 0 and 1.
    """
    array = np.asarray(a)
    if dtype == BOOL:
        return np.asarray(array != 0)
    if array.dtype == BOOL:
        return array.view(np.uint8).astype(F32).astype(dtype) if is_float(dtype) else array.astype(dtype)
    if is_float(array.dtype):
        if is_float(dtype):
            return narrow(array, dtype)
        return float_to_integer(array, dtype, unsigned=unsigned_result)
    source = as_unsigned(array) if unsigned_source else array
    return _integer_to_float(source, dtype) if is_float(dtype) else source.astype(dtype)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is one of the four float types."""
    return dtype.kind == "f" or dtype in NARROW


def float_to_integer(a: Array, dtype: np.dtype[Any], *, unsigned: bool) -> Array:
    """Truncation, then saturation to the range of the integer type; NaN gives 0. So it is to i1, unlike in `cast`."""
    value = np.trunc(a.astype(F64))  # wide enough for every float type
    if dtype == BOOL:
        return np.asarray(value >= 1 if unsigned else value <= -1)
    bits = width(dtype)
    target = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    lower, upper = (0.0, 2.0**bits) if unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    inside = (value >= lower) & (value < upper)
    limits = np.iinfo(target)
    saturated = np.where(value < lower, target.type(limits.min), np.where(value >= upper, target.type(limits.max), 0))
    return np.where(inside, np.where(inside, value, 0.0).astype(target), saturated.astype(target)).view(dtype)


def _integer_to_float(a: Array, dtype: np.dtype[Any]) -> Array:
    """One rounding: through f64 where that holds the integer, else with its low bits first or-ed into one.

    Numpy itself takes integers to f16 and bf16 through f32, that is, with two roundings.
    """
    if dtype in (F32, F64):
        return a.astype(dtype)
    if width(a.dtype) < _F64_BITS:
        return narrow(a.astype(F64), dtype)
    negative = a < 0
    magnitude = np.where(negative, np.zeros_like(a) - a, a).view(np.uint64)
    high, low = magnitude >> np.uint64(32), magnitude & np.uint64(0xFFFFFFFF)
    # A sticky bit far below the last bit kept decides ties as all the bits it stands for would.
    large = ((high << np.uint64(1)) | (low != 0)).astype(F64) * 2.0**31
    exact = np.where(high >> np.uint64(20) != 0, large, magnitude.astype(F64))
    return narrow(np.where(negative, -exact, exact), dtype)


def signed_to_float(a: Array, dtype: np.dtype[Any]) -> Array:
    """One rounding of the signed value; i1 gives 0 and -1."""
    return cast(as_signed(a), dtype)


def resize_signed(a: Array, dtype: np.dtype[Any]) -> Array:
    """A wider integer of the same signed value, or the low bits."""
    value = as_signed(a)
    return (value & 1).astype(BOOL) if dtype == BOOL else value.astype(dtype)


def extend_unsigned(a: Array, dtype: np.dtype[Any]) -> Array:
    """A wider integer of the same unsigned value."""
    return as_unsigned(a).astype(dtype)
