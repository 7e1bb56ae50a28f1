"""Operands for the ops of the library, and the comparison of their results with a reference of higher precision."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from halfulp.compiler import DType

Array = np.ndarray[Any, np.dtype[Any]]

SIGNIFICAND_BITS = {DType.bfloat16: 8, DType.float16: 11, DType.float32: 24, DType.float64: 53}
SMALLEST_EXPONENT = {DType.bfloat16: -126, DType.float16: -14, DType.float32: -126, DType.float64: -1022}
LARGEST = {
    dtype: (2 - 2.0 ** (1 - bits)) * 2.0 ** (1 - SMALLEST_EXPONENT[dtype]) for dtype, bits in SIGNIFICAND_BITS.items()
}


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number."""
    return 2.0 ** (1 - SIGNIFICAND_BITS[dtype])


def smallest(dtype: DType) -> float:
    """The smallest positive number, a subnormal."""
    return 2.0 ** (SMALLEST_EXPONENT[dtype] + 1 - SIGNIFICAND_BITS[dtype])


def special_values(dtype: DType) -> Array:
    """NaN, infinities, zeros, subnormals, extremes; of integers extremes, zero, ones and shift counts."""
    if dtype is DType.bool:
        return np.array([False, True])
    if dtype.is_integral:
        low, high = dtype.integer_range
        numbers = {low, low + 1, -3, -1, 0, 1, 2, 7, dtype.bits - 1, dtype.bits, high - 1, high, high // 2 + 1}
        return np.array(sorted(n for n in numbers if low <= n <= high), dtype.to_numpy())
    tiny = 2.0 ** (SMALLEST_EXPONENT[dtype] + 1 - SIGNIFICAND_BITS[dtype])
    normal = 2.0 ** SMALLEST_EXPONENT[dtype]
    half = [
        0.0,
        tiny,
        3 * tiny,
        normal - tiny,
        normal,
        1e-3,
        0.5,
        1.0,
        1 + epsilon(dtype),
        1.5,
        2.5,
        88.9,
        104.5,
        300.0,
    ]
    half += [2.0**31, 2.0**63, 1e30, LARGEST[dtype], np.inf]
    with np.errstate(over="ignore"):
        return np.array([*half, *(-n for n in half), np.nan]).astype(dtype.to_numpy())


def random_values(dtype: DType, count: int, seed: int) -> Array:
    """Numbers of every size that the type has; half of the floats between -4 and 4, where most functions bend."""
    generator = np.random.default_rng(seed)
    if dtype is DType.bool:
        return generator.integers(0, 2, count).astype(bool)
    if dtype.is_integral:
        low, high = dtype.integer_range
        return generator.integers(low, high, count, dtype=dtype.to_numpy(), endpoint=True)
    lowest, highest = SMALLEST_EXPONENT[dtype], -SMALLEST_EXPONENT[dtype]
    exponents = generator.uniform(lowest, highest, count)
    wide = 2.0**exponents * generator.choice([-1.0, 1.0], count)
    near = generator.uniform(-4, 4, count)
    return np.where(generator.integers(0, 2, count) == 0, wide, near).astype(dtype.to_numpy())


def element_operands(dtype: DType, operands: int, count: int) -> list[Array]:
    """``operands`` arrays of at least ``count`` elements: special values in all combinations, then random ones."""
    special = special_values(dtype)
    if operands == 3:
        special = special[:: max(len(special) // 9, 1)]
    grid = [axis.ravel() for axis in np.meshgrid(*[special] * operands, indexing="ij")]
    more = max(count - len(grid[0]), 64)
    return [np.concatenate([part, random_values(dtype, more, seed)]) for seed, part in enumerate(grid)]


def row_operand(dtype: DType, size: int) -> Array:
    """Rows of moderate numbers; of floats two with NaN or infinities, one of zeros of both signs."""
    generator = np.random.default_rng(size)
    if not dtype.is_float:
        return random_values(dtype, 4 * size, size).reshape(4, size)
    rows = generator.standard_normal((6, size)).astype(np.float32)
    rows[2:5] *= 0
    rows[2, ::2] *= -1
    rows[3, size // 2] = np.nan
    rows[4, size // 3] = np.inf
    return rows.astype(dtype.to_numpy())


def widened(array: Array, dtype: DType) -> Array:
    """The elements as references take them: float64, longdouble for f64, Python ints, bool."""
    if dtype is DType.bool:
        return array
    if dtype.is_integral:
        return array.astype(object)
    return array.astype(np.longdouble if dtype is DType.float64 else np.float64)


def distance_in_ulp(got: Array, exact: Array, dtype: DType) -> Array:
    """``|got - exact| / ulp(exact)``: 0 where both are NaN or the same infinity, infinity where only one is.

    A result beyond the largest number counts as infinite if rounding to nearest makes it so.
    """
    bits, lowest = SIGNIFICAND_BITS[dtype], SMALLEST_EXPONENT[dtype]
    given, wanted = got.astype(np.longdouble), np.asarray(exact, np.longdouble)
    with np.errstate(all="ignore"):
        magnitude = np.where(np.isfinite(wanted) & (wanted != 0), np.abs(wanted), 1)
        exponents = np.maximum(np.frexp(magnitude)[1] - 1, lowest)
        unit = np.ldexp(np.longdouble(1), exponents - (bits - 1))
        unit = np.where(wanted == 0, np.ldexp(np.longdouble(1), lowest - (bits - 1)), unit)
        edge = np.longdouble(LARGEST[dtype]) * (1 + np.longdouble(2.0) ** -(bits + 1))
        overflows = np.abs(wanted) >= edge
        apart = np.abs(given - wanted) / unit
    same = (np.isnan(given) & np.isnan(wanted)) | (overflows & np.isinf(given) & (np.sign(given) == np.sign(wanted)))
    apart = np.where(same, 0, apart)
    return np.where(np.isnan(apart), np.inf, apart)


def last_bit_is_set(got: Array, dtype: DType) -> Array:
    """Whether the last bit of each number is 1: what a tie must not round to."""
    word = f"u{dtype.size_in_bytes}"
    return np.asarray((np.ascontiguousarray(got).view(word) & 1) == 1)


def wrapped(exact: Array, dtype: DType) -> Array:
    """Python ints as an integer type holds them."""
    low, high = dtype.integer_range
    span = high - low + 1
    return np.array([(int(n) - low) % span + low for n in exact.ravel()], dtype.to_numpy()).reshape(exact.shape)


def refined(name: str, operands: list[Array], result: Array) -> Array:
    """A longdouble result with 200 bits of mpmath's ``name`` behind it, where operands and result are ordinary."""
    better = result.copy()
    with mpmath.workprec(200):
        for index in np.ndindex(result.shape):
            arguments = [float(operand[index]) for operand in operands]
            size = abs(float(result[index]))
            if np.isfinite(arguments).all() and 1e-290 < size < 1e300:
                value = getattr(mpmath, name)(*map(mpmath.mpf, arguments))
                high = float(value)
                better[index] = np.longdouble(high) + np.longdouble(float(value - high))
    return better
