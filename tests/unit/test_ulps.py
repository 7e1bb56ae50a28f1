"""Distances between floats."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.compiler import DType
from halfulp.runtime.debug.ulps import absolute_error, differing, histogram, root_mean_square, ulp_distance, ulp_size

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_distance_counts_numbers_across_zero(dtype: type) -> None:
    smallest = np.nextafter(np.array(0, dtype), np.array(1, dtype))
    one: Array = np.array([0.0, -0.0, smallest, 1.0], dtype)
    other: Array = np.array([-0.0, 0.0, -smallest, np.nextafter(np.array(1, dtype), np.array(2, dtype))], dtype)
    assert ulp_distance(one, other).tolist() == [0, 0, 2, 1]


def test_nan_is_far_from_numbers_and_at_other_nan() -> None:
    nan, other_nan = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    one, other = np.array([nan, nan, 1], np.float32), np.array([other_nan, 1, nan], np.float32)
    assert ulp_distance(one, other).tolist() == [0, math.inf, math.inf]
    assert differing(one, other).tolist() == [False, True, True]


def test_zeros_of_both_signs_differ_in_a_bit_only() -> None:
    zeros = np.array([0.0], np.float32), np.array([-0.0], np.float32)
    assert differing(*zeros).tolist() == [True]
    assert ulp_distance(*zeros).tolist() == [0]


@pytest.mark.parametrize(
    ("dtype", "scale", "size"),
    [
        (DType.float32, 1.0, 2.0**-23),
        (DType.float32, 1.5, 2.0**-23),
        (DType.float32, 0.0, 2.0**-149),
        (DType.float16, 2.0, 2.0**-9),
        (DType.bfloat16, 1.0, 2.0**-7),
        (DType.float64, 1.0, 2.0**-52),
    ],
)
def test_ulp_of_a_scale(dtype: DType, scale: float, size: float) -> None:
    assert float(ulp_size(np.array(scale), dtype)) == size


def test_error_of_special_values() -> None:
    got = np.array([math.inf, math.nan, math.inf, 1.0], np.float32)
    exact = np.array([math.inf, math.nan, 1.0, 1.5])
    assert absolute_error(got, exact).tolist() == [0, 0, math.inf, 0.5]


def test_root_mean_square_neither_over_nor_underflows() -> None:
    assert root_mean_square(np.array([3e200, 4e200])) == pytest.approx(math.sqrt(12.5) * 1e200)
    assert root_mean_square(np.array([3e-200, 4e-200])) == pytest.approx(math.sqrt(12.5) * 1e-200)
    assert root_mean_square(np.zeros(3)) == 0
    assert root_mean_square(np.zeros(0)) == 0
    assert root_mean_square(np.array([1, math.inf])) == math.inf


def test_histogram_by_powers_of_two() -> None:
    counts = histogram(np.array([0, 0, 1, 2, 3, 4, 7, 8, 2.0**40, math.inf]))
    assert {place: count for place, count in enumerate(counts) if count} == {0: 2, 1: 1, 2: 2, 3: 2, 4: 1, 32: 1, 33: 1}
