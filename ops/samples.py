"""Numbers for the examples of contracts, the same at each call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler import DType

from .contract import Array, Example

_SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0)


def moderate(dtype: DType, shape: Sequence[int], seed: int = 0) -> Array:
    """Numbers of a few units, both signs where the type has them; none is special."""
    generator = np.random.default_rng([seed, *shape])
    if dtype is DType.bool:
        return generator.integers(0, 2, tuple(shape)).astype(bool)
    numbers = 3 * generator.standard_normal(tuple(shape))
    if dtype.is_float:
        return numbers.astype(dtype.to_numpy())
    whole = np.rint(numbers).astype(np.int64)
    return (whole if dtype.is_signed else np.abs(whole)).astype(dtype.to_numpy())


def anything(dtype: DType, shape: Sequence[int], seed: int = 0) -> Array:
    """Numbers of the whole type, with equal ones, and of floats NaN, infinities and zeros of both signs."""
    if dtype is DType.bool:
        return moderate(dtype, shape, seed)
    generator = np.random.default_rng([seed, *shape])
    numbers = moderate(dtype, shape, seed)
    if dtype.is_float:
        chosen = generator.integers(0, 4, tuple(shape)) == 0
        special = np.array(_SPECIAL).astype(dtype.to_numpy())
        return np.where(chosen, special[generator.integers(0, len(special), tuple(shape))], numbers)
    low, high = dtype.integer_range
    wide = generator.integers(low, high, tuple(shape), dtype=dtype.to_numpy(), endpoint=True)
    return np.where(generator.integers(0, 2, tuple(shape)) == 0, wide, numbers)


def places(shape: Sequence[int], size: int, seed: int = 0, dtype: DType = DType.int64) -> Array:
    """Indices into an axis of ``size`` elements, some counted from the end."""
    return np.random.default_rng([seed, size, *shape]).integers(-size, size, tuple(shape)).astype(dtype.to_numpy())


def of_shape(shape: Sequence[int], *parameters: Mapping[str, Any]) -> Callable[[DType], list[Example]]:
    """Examples with one operand of this shape, for each of the parameters."""
    return lambda dtype: [Example((anything(dtype, shape),), given) for given in parameters]
