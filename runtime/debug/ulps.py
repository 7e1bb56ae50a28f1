"""How far apart floats are: in numbers between them, in ulp of a scale, and from an exact value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from halfulp.compiler.dtypes import DType

Array = npt.NDArray[Any]

_SIGNIFICAND_BITS = {DType.bfloat16: 8, DType.float16: 11, DType.float32: 24, DType.float64: 53}
_SMALLEST_EXPONENT = {DType.bfloat16: -126, DType.float16: -14, DType.float32: -126, DType.float64: -1022}


def bits_of(array: Array) -> Array:
    """The bits as unsigned integers."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def differing(one: Array, other: Array) -> Array:
    """Where two arrays of one type and shape differ in a bit; all NaN count as equal."""
    unequal = bits_of(one) != bits_of(other)
    if DType.from_numpy(one.dtype).is_float:
        unequal &= ~(np.isnan(one) & np.isnan(other))
    return np.asarray(unequal)


def ulp_distance(one: Array, other: Array) -> Array:
    """How many numbers of their type two floats are apart, as float64: 0 for equal ones, 1 for neighbours.

    -0 and +0 are the same number. NaN is infinitely far from every number, and 0 from NaN.
    """
    (sign, magnitude), (other_sign, other_magnitude) = _sign_and_magnitude(one), _sign_and_magnitude(other)
    larger, smaller = np.maximum(magnitude, other_magnitude), np.minimum(magnitude, other_magnitude)
    distance = np.where(sign == other_sign, larger - smaller, larger + smaller).astype(np.float64)
    one_nan, other_nan = np.isnan(one), np.isnan(other)
    return np.where(one_nan & other_nan, 0.0, np.where(one_nan | other_nan, np.inf, distance))


def _sign_and_magnitude(array: Array) -> tuple[Array, Array]:
    bits = bits_of(array).astype(np.uint64)
    sign = np.uint64(1 << (array.dtype.itemsize * 8 - 1))
    return bits & sign != 0, bits & ~sign


def ulp_size(scale: Array, dtype: DType) -> Array:
    """The distance between neighbouring numbers of ``dtype`` at ``scale`` (float64); of subnormals below those."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(scale))
        exponent = np.where(scale == 0, _SMALLEST_EXPONENT[dtype], np.maximum(exponent - 1, _SMALLEST_EXPONENT[dtype]))
        return np.asarray(np.ldexp(1.0, exponent - (_SIGNIFICAND_BITS[dtype] - 1)))


def absolute_error(got: Array, exact: Array) -> Array:
    """``|got - exact|`` in float64: 0 where both are NaN or the same infinity, infinite where only one is."""
    with np.errstate(all="ignore"):
        wide, exact = got.astype(np.float64), np.asarray(exact, np.float64)
        error = np.abs(wide - exact)
        same = (np.isnan(wide) & np.isnan(exact)) | (wide == exact)
        return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def root_mean_square(error: Array) -> float:
    """0 of no elements, infinite if an element is."""
    if not error.size:
        return 0.0
    largest = float(error.max())
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean(np.square(error / largest))))


def histogram(distance: Array) -> list[int]:
    """How many distances are 0, 1, 2 to 3, 4 to 7, ... up to ``2**31`` and more; the last counts the infinite ones.

    Entry 0 is distance 0, entry k the distances from ``2**(k - 1)`` up to below ``2**k``.
    """
    counts = [0] * 34
    finite = distance[np.isfinite(distance)]
    _, exponent = np.frexp(finite)
    places, numbers = np.unique(np.minimum(np.where(finite < 1, 0, exponent), 32), return_counts=True)
    for place, number in zip(places, numbers, strict=True):
        counts[int(place)] = int(number)
    counts[33] = int(distance.size - finite.size)
    return counts
