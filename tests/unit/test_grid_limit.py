"""Grids whose number of programs no launch can run, or no 64-bit integer can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from halfulp.compiler import CompileOptions, DType, Graph, GraphError, TensorType
from halfulp.ops import pallas as pl
from halfulp.runtime import ExecutionError, InferenceSession, Model


def first_program_only(x: Any, y: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        y[...] = x[...] + 1


def load(grid: Any, threads: int = 1) -> Model:
    """x + 1, by the first program of the grid. ``grid`` makes it from two scalar inputs."""

    def forward(x: Any, m: Any, n: Any) -> Any:
        spec = pl.BlockSpec((4,), lambda *_: (0,))
        return pl.pallas_call(
            first_program_only,
            out_shape=pl.ShapeDtypeStruct((4,), np.float32),
            grid=grid(m, n),
            in_specs=[spec],
            out_specs=spec,
            name="first",
        )(x)

    scalar = TensorType(DType.int64, [])
    types = [TensorType(DType.float32, [4]), scalar, scalar]
    return InferenceSession().load(Graph("limit", forward, types), CompileOptions(threads=threads))


def run(model: Model, m: int, n: int) -> list[float]:
    values: list[float] = model(np.ones(4, np.float32), np.int64(m), np.int64(n))[0].to_numpy().tolist()
    return values


@pytest.mark.parametrize(("m", "n"), [(2**31 + 5, 1), (3, 2**30), (1, 2**31 + 5)])
def test_more_than_two_to_the_31_programs_run(m: int, n: int) -> None:
    assert run(load(lambda m, n: (m, n)), m, n) == [2.0] * 4


@pytest.mark.parametrize(
    ("m", "n"), [(2**32, 2**32), (2**40, 2**24), (2**62, 4), (2**62, 2**62), (2**24, 2**24 + 1), (3, 2**62)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_too_many_programs_are_an_error(m: int, n: int, threads: int) -> None:
    model = load(lambda m, n: (m, n), threads)
    for _ in range(2):
        with pytest.raises(ExecutionError) as caught:
            run(model, m, n)
        assert str(caught.value) == (
            f"model 'limit': the grid {m} x {n} has more than 2**48 programs; let each program do more "
            "(kernel 'first', program 0)"
        )
    assert run(model, 2, 3) == [2.0] * 4


def test_one_axis_and_many_axes() -> None:
    with pytest.raises(ExecutionError, match=r"the grid 281474976710657 has more than 2\*\*48 programs"):
        run(load(lambda m, n: (m,)), 2**48 + 1, 0)
    with pytest.raises(ExecutionError, match=r"the grid has more than 2\*\*48 programs"):
        run(load(lambda m, n: (m, n, m, n, m)), 2**10, 2**10)


def test_static_grid() -> None:
    with pytest.raises(ExecutionError, match=r"the grid 4294967296 x 4294967296 has more than 2\*\*48 programs"):
        run(load(lambda m, n: (2**32, 2**32)), 0, 0)


@pytest.mark.parametrize("size", [2**63, np.uint64(2**63), np.array(2**63, np.uint64)])
def test_size_that_is_no_index(size: Any) -> None:
    with pytest.raises(GraphError) as caught:
        load(lambda m, n: (2, size))
    # the place in the source, then the rule
    assert f"Grid sizes must be less than 2**63, got {(2, size)!r}; let each program do more" in str(caught.value)


def test_no_programs_however_large_the_other_axes() -> None:
    run(load(lambda m, n: (m, m, n)), 2**62, 0)
