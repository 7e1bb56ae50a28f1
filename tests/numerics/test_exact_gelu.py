"""gelu without approximation in f32: its bound between the samples of the sweep, and the same bits at every width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from differential import WIDTHS

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.runtime import InferenceSession

Floats = np.ndarray[Any, np.dtype[np.float32]]
STEP = 5003
"""A prime: every 5003rd f32 between the least normal number and 15 is tried, with both signs."""
LEFT_ENDS = (0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 9, 11, 13)
"""Where another polynomial is taken."""
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38], np.float32)


def inputs() -> Floats:
    first, last = (int(np.float32(x).view(np.uint32)) for x in (2.0**-126, 15))
    spread = np.arange(first, last, STEP, dtype=np.uint32).view(np.float32)
    ends = [int(np.float32(end).view(np.uint32)) + np.arange(-500, 500) for end in LEFT_ENDS]
    magnitudes = np.concatenate([spread, *(bits.astype(np.uint32).view(np.float32) for bits in ends)])
    return np.concatenate([magnitudes, -magnitudes, SPECIAL])


def gelu(x: Floats, vector_bits: int | None = None) -> Floats:
    graph = Graph("gelu", lambda v: ops.gelu(v, "none"), [TensorType(DType.float32, ["n"])])
    (result,) = InferenceSession().load(graph, options=CompileOptions(vector_bits=vector_bits)).execute(x)
    return np.asarray(result.to_numpy(), np.float32)


def test_error_is_below_two_ulp() -> None:
    x = inputs()[: -len(SPECIAL)]
    exact = np.array([0.5 * value * math.erfc(-value / math.sqrt(2)) for value in x.astype(np.float64)])
    _, exponent = np.frexp(exact)
    ulp = np.ldexp(1.0, np.maximum(exponent - 24, -149))
    error = np.abs(gelu(x) - exact) / ulp
    assert error.max() < 2.0, f"{error.max()} ulp at {x[error.argmax()]}"


def test_special_values() -> None:
    expected = np.array([0.0, -0.0, np.inf, -0.0, np.nan, 0.0, -0.0, 3e38, -0.0], np.float32)
    found = gelu(SPECIAL)
    assert np.array_equal(found, expected, equal_nan=True)
    number = ~np.isnan(found)
    assert (np.signbit(found) == np.signbit(expected))[number].all()


@pytest.mark.parametrize("vector_bits", WIDTHS[1:])
def test_bits_do_not_depend_on_the_width(vector_bits: int) -> None:
    x = inputs()
    assert gelu(x, vector_bits).tobytes() == gelu(x, WIDTHS[0]).tobytes()
