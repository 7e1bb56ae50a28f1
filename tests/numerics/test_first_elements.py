"""top_k and bottom_k keep the first few elements in one pass, or sort the whole row: the same elements either way."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType
from halfulp.ops import ordering
from halfulp.runtime import InferenceSession, Model
from halfulp.runtime.errors import ExecutionError

Array = np.ndarray[Any, np.dtype[Any]]
TYPES: dict[DType, Any] = {
    DType.float32: np.float32,
    DType.float64: np.float64,
    DType.float16: np.float16,
    DType.bfloat16: ml_dtypes.bfloat16,
    DType.int8: np.int8,
    DType.int64: np.int64,
    DType.uint8: np.uint8,
    DType.uint32: np.uint32,
    DType.uint64: np.uint64,
}


def load(dtype: DType, count: int, ascending: bool) -> Model:
    with Graph("first", input_types=[TensorType(dtype, ["rows", "n"])]) as graph:
        function = ops.bottom_k if ascending else ops.top_k
        graph.output(*function(graph.inputs[0], count))
    return InferenceSession().load(graph)


def rows_of(dtype: DType, n: int) -> Array:
    """Many equal elements, both zeros, NaN, the extremes of the type, a row of nothing but the last in order."""
    rng, kind = np.random.default_rng(n), TYPES[dtype]
    if dtype.is_float:
        x: Array = (rng.integers(-20, 20, size=(4, n)) / 4).astype(kind)
        x[0, :6] = [np.nan, 1, -0.0, 0.0, np.nan, -0.0]
        x[1, :2] = [np.inf, -np.inf]
        x[2], x[3] = np.nan, -np.inf
        return x
    limits = np.iinfo(kind)
    x = rng.integers(limits.min, limits.max, size=(4, n), dtype=kind, endpoint=True)
    x[1], x[2], x[3] = rng.integers(0, 4, size=n), limits.min, limits.max
    return x


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_first_elements_are_those_of_the_stable_order(dtype: DType, ascending: bool) -> None:
    model = load(dtype, 7, ascending)
    for n in (7, 100, ordering.BLOCK, ordering.BLOCK + 904):
        x = rows_of(dtype, n)
        values, indices = (result.to_numpy() for result in model.execute(x))
        order = stable_order(x, dtype, ascending)[:, :7]
        assert np.array_equal(indices, order), n
        assert values.tobytes() == np.take_along_axis(x, order, 1).tobytes(), n


def stable_order(x: Array, dtype: DType, ascending: bool) -> Array:
    """NaN is larger than every number."""
    if not dtype.is_float:
        return np.argsort(x.astype(object) * (1 if ascending else -1), axis=-1, kind="stable")
    wide = x.astype(np.float64)
    nan, numbers = np.isnan(wide), np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.lexsort((numbers, nan) if ascending else (-numbers, ~nan))


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    x = rows_of(DType.float32, 300)
    expected = [result.to_numpy() for result in load(DType.float32, 20, False).execute(x)]
    monkeypatch.setattr(ordering, "MOST_MERGED", 0)
    monkeypatch.setenv("HALFULP_CACHE", "0")
    for result, wanted in zip(load(DType.float32, 20, False).execute(x), expected, strict=True):
        assert result.to_numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("count", "ascending"), [(5, False), (300, True)])
@pytest.mark.parametrize("rows", [0, 2])
def test_an_axis_of_fewer_elements_fails_the_execution(count: int, ascending: bool, rows: int) -> None:
    """One pass or a sort, and without rows too; the model goes on to work."""
    model = load(DType.float32, count, ascending)
    name = "bottom_k" if ascending else "top_k"
    for n in (0, 3, count - 1):
        with pytest.raises(ExecutionError) as caught:
            model.execute(np.ones((rows, n), np.float32))
        assert str(caught.value).startswith(
            f"model 'first': ops.{name}: k is {count}, but the axis has size 'n', which is {n}; take fewer, or pad x"
        )
    values, indices = (result.to_numpy() for result in model.execute(np.ones((rows, count), np.float32)))
    assert values.shape == (rows, count)
    assert np.array_equal(indices, np.broadcast_to(np.arange(count), (rows, count)))
