"""Random grids, block specs, aliases and scratch: interpreted and compiled kernels leave the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfulp.compiler import DType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

Array = npt.NDArray[Any]
DTYPES = tuple(DType)
MOST_PROGRAMS = 24


def same_bits(actual: Array, expected: Array) -> bool:
    """Equal bits, all NaNs counting as equal."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    both_nan = (actual != actual) & (expected != expected)
    word = f"u{actual.dtype.itemsize}"
    return bool(((actual.view(word) == expected.view(word)) | both_nan).all())


def random_array(seed: int, shape: Sequence[int], dtype: DType) -> Array:
    generator = np.random.default_rng(seed)
    numpy_dtype = dtype.to_numpy()
    if dtype is DType.bool:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integral:
        low, high = dtype.integer_range
        return generator.integers(max(low, -100), min(high, 100), shape).astype(numpy_dtype)
    return generator.normal(size=shape).astype(np.float32).astype(numpy_dtype)


@st.composite
def index_maps(draw: st.DrawFn, grid: Sequence[int], limits: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
    """Maps from a program id to one index in ``0 .. limit`` for each axis."""
    axes = []
    for limit in limits:
        axis = draw(st.integers(0, len(grid))) if grid else 0
        reverse = draw(st.booleans())
        constant = draw(st.integers(0, limit))
        axes.append((axis if axis < len(grid) else None, limit, reverse, constant))

    def index_map(*program: Any) -> tuple[Any, ...]:
        indices: list[Any] = []
        for axis, limit, reverse, constant in axes:
            if axis is None:
                indices.append(constant)
            else:
                index = program[axis] % (limit + 1)
                indices.append(limit - index if reverse else index)
        return tuple(indices)

    return index_map


@st.composite
def specs(draw: st.DrawFn, shape: Sequence[int], grid: Sequence[int]) -> pl.BlockSpec:
    """A spec of any kind whose blocks have at least one element in the array."""
    if draw(st.integers(0, 5)) == 0:
        return pl.BlockSpec()
    entries: list[Any] = []
    limits = []
    for size in shape:
        kind = draw(st.sampled_from(["blocked", "blocked", "squeezed", "element"]))
        if kind == "squeezed":
            entries.append(draw(st.sampled_from([None, pl.Squeezed()])))
            limits.append(size - 1)
        elif kind == "blocked":
            block = draw(st.integers(1, size + 2))
            entries.append(block)
            limits.append(pl.cdiv(size, block) - 1)
        else:
            low, high = draw(st.integers(0, 1)), draw(st.integers(0, 2))
            block = draw(st.integers(1 + low, size + 2))
            entries.append(pl.Element(block, (low, high)))
            limits.append(size - 1)
    return pl.BlockSpec(entries, draw(index_maps(grid, limits)))


@st.composite
def calls(draw: st.DrawFn) -> tuple[Callable[[bool], list[Array]], str]:
    """A call to make interpreted or not, and what it is."""
    dtype = draw(st.sampled_from(DTYPES))
    grid: list[int] = []
    for _ in range(draw(st.integers(0, 3))):
        grid.append(draw(st.integers(1, max(1, MOST_PROGRAMS // int(np.prod(grid, dtype=int)) // 4))))
    shapes = [draw(st.lists(st.integers(1, 7), max_size=4)) for _ in range(2)]
    aliased = draw(st.booleans())
    out_shape = shapes[0] if aliased else draw(st.lists(st.integers(1, 7), max_size=4))
    in_specs = [draw(specs(shape, grid)) for shape in shapes]
    out_spec = draw(specs(out_shape, grid))
    with_scratch, with_dot = draw(st.booleans()), draw(st.booleans())
    seed = draw(st.integers(0, 1000))

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, *scratch: Any) -> None:
        x, y = x_ref[...], y_ref[...]
        total = (jnp.max(x) if dtype is DType.bool else jnp.sum(x).astype(dtype)) if x.shape else x
        other = jnp.max(y) if y.shape else y
        value = jnp.where(jnp.equal(total, other), total, total + other)
        if with_dot and dtype is not DType.bool and x.ndim == 2:
            value = value + jnp.max(jnp.dot(x, x.T).astype(dtype))
        if scratch:
            scratch[0][...] = scratch[0][...] + jnp.full((3,), value)
            value = value + scratch[0][1]
        for axis in range(len(grid)):
            value = value + pl.program_id(axis).astype(dtype)
        o_ref[...] = jnp.maximum(o_ref[...], jnp.full(o_ref.shape, value))
        o_ref[...] = o_ref[...] + jnp.full(o_ref.shape, value)

    arrays = [random_array(seed + number, shape, dtype) for number, shape in enumerate(shapes)]
    scratch_shapes = [pl.MemorySpace.ANY((3,), dtype)] if with_scratch else []

    def run(interpret: bool) -> list[Array]:
        call = pl.pallas_call(
            kernel,
            pl.ShapeDtypeStruct(out_shape, dtype),
            grid=tuple(grid),
            in_specs=in_specs,
            out_specs=out_spec,
            scratch_shapes=scratch_shapes,
            input_output_aliases={0: 0} if aliased else {},
            interpret=interpret,
        )
        return [call(*arrays)]

    return run, f"{dtype} grid {grid} shapes {shapes} -> {out_shape} aliased {aliased} specs {in_specs} {out_spec}"


@settings(max_examples=examples(40))
@given(calls())
def test_random_specs(made: tuple[Callable[[bool], list[Array]], str]) -> None:
    run, description = made
    for expected, actual in zip(run(True), run(False), strict=True):
        assert same_bits(actual, expected), f"{description}: {actual} is not {expected}"


REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin", "cumsum")


@st.composite
def reductions(draw: st.DrawFn) -> tuple[str, DType, tuple[int, ...], int | None, int]:
    """A reduction, what it takes, along which axis, and a seed."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    axis = draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    return draw(st.sampled_from(REDUCTIONS)), draw(st.sampled_from(DTYPES)), shape, axis, draw(st.integers(0, 1000))


@settings(max_examples=examples(25))
@given(reductions())
def test_reductions_of_every_type(drawn: tuple[str, DType, tuple[int, ...], int | None, int]) -> None:
    name, dtype, shape, axis, seed = drawn
    x = random_array(seed, (*shape[:-1], 2 * shape[-1]), dtype)
    reduced = getattr(np, name)(np.zeros(shape), axis=axis).shape
    kind = {"any": DType.bool, "all": DType.bool, "argmax": DType.int32, "argmin": DType.int32}.get(name)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = getattr(jnp, name)(x_ref[...], axis=axis).astype(o_ref.dtype)

    half = pl.BlockSpec(shape, lambda i: (*[0] * (len(shape) - 1), i))
    own = pl.BlockSpec((None, *reduced), lambda i: (i, *[0] * len(reduced)))
    expected, actual = (
        pl.pallas_call(
            kernel,
            pl.ShapeDtypeStruct((2, *reduced), kind or dtype),
            grid=2,
            in_specs=[half],
            out_specs=own,
            interpret=interpret,
        )(x)
        for interpret in (True, False)
    )
    assert same_bits(actual, expected)
    if name in ("max", "min", "any", "all", "argmax", "argmin"):
        parts = np.split(x, 2, axis=-1)
        wanted = np.stack([np.asarray(getattr(np, name)(part, axis=axis)) for part in parts])
        np.testing.assert_array_equal(actual, wanted.astype(actual.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_blocks_of_every_type(dtype: DType) -> None:
    x = random_array(1, (5, 37), dtype)
    block = pl.BlockSpec((2, 16), lambda i, j: (i, j))

    def kernel(x_ref: Any, o_ref: Any) -> None:
        value = x_ref[...]
        o_ref[...] = value + value if dtype is DType.bool else value * value - jnp.full(value.shape, 3, dtype)

    results = [
        pl.pallas_call(
            kernel, pl.ShapeDtypeStruct(x.shape, dtype), grid=(3, 3), in_specs=[block], out_specs=block, interpret=mode
        )(x)
        for mode in (True, False)
    ]
    assert same_bits(*results)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8])
def test_tiled_matmul_accumulated_over_k(dtype: Any) -> None:
    given_type = DType.from_numpy(dtype)
    x, y = random_array(2, (20, 24), given_type), random_array(3, (24, 36), given_type)

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

        o_ref[...] += jnp.dot(x_ref[...], y_ref[...])

    results = [
        pl.pallas_call(
            kernel,
            pl.ShapeDtypeStruct((20, 36), dtype),
            grid=(3, 3, 3),
            in_specs=[pl.BlockSpec((8, 8), lambda i, j, k: (i, k)), pl.BlockSpec((8, 16), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((8, 16), lambda i, j, k: (i, j)),
            interpret=mode,
        )(x, y)
        for mode in (True, False)
    ]
    assert same_bits(*results)
    wide = np.int64 if given_type.is_integral else np.float64
    exact = (x.astype(wide) @ y.astype(wide)).astype(dtype if given_type.is_integral else np.float64)
    tolerance = 0 if given_type.is_integral else {2: 0.3, 4: 1e-4, 8: 1e-12}[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(results[0].astype(wide), exact.astype(wide), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_contraction_is_the_same_in_both_modes(mode: str) -> None:
    x = random_array(6, (17, 17), DType.float32)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.dot(x_ref[...], x_ref[...]) * 3.0 + x_ref[...]

    results = [
        pl.pallas_call(
            kernel,
            pl.ShapeDtypeStruct(x.shape, "float32"),
            interpret=interpret,
            compiler_params={"fp_contract": mode},
        )(x)
        for interpret in (True, False)
    ]
    assert same_bits(*results)
    chain = np.zeros_like(x)
    for k in range(17):
        chain += x[:, k, None] * x[None, k, :]
    assert same_bits(results[0], chain * np.float32(3) + x) == (mode == "off")


def test_threads_change_no_bit() -> None:
    x, y = random_array(4, (200, 210), DType.float32), random_array(5, (210, 190), DType.float32)

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, m_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)
            m_ref[...] = jnp.full(m_ref.shape, -jnp.inf)

        inside = pl.iota((32,)) + pl.program_id(2) * 32 < 210
        left = jnp.where(inside[None, :], x_ref[...], 0.0)
        o_ref[...] += jnp.dot(left, jnp.where(inside[:, None], y_ref[...], 0.0))
        m_ref[...] = jnp.maximum(m_ref[...], jnp.max(left, axis=1))

    def run(threads: int) -> list[Array]:
        call = pl.pallas_call(
            kernel,
            (pl.ShapeDtypeStruct((200, 190), "float32"), pl.ShapeDtypeStruct((200, 6), "float32")),
            grid=(7, 6, 7),
            in_specs=[pl.BlockSpec((32, 32), lambda i, j, k: (i, k)), pl.BlockSpec((32, 32), lambda i, j, k: (k, j))],
            out_specs=(
                pl.BlockSpec((32, 32), lambda i, j, k: (i, j)),
                pl.BlockSpec((32, None), lambda i, j, k: (i, j)),
            ),
            compiler_params={"threads": threads},
        )
        return list(call(x, y))

    alone = run(1)
    np.testing.assert_allclose(alone[0], x @ y, rtol=1e-4, atol=1e-4)
    largest = np.maximum(x.max(axis=1), 0.0)  # the last block has zeros beside the row
    np.testing.assert_array_equal(alone[1], np.repeat(largest[:, None], 6, axis=1))
    for _ in range(5):
        for expected, actual in zip(alone, run(4), strict=True):
            assert same_bits(actual, expected)
