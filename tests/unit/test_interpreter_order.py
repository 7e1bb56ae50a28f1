"""Reductions in order R, dot products and top_merge against scalar loops that follow the definitions word for word."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.dialects.tile import KernelOp
from halfulp.compiler.dialects.tile.compute import FLOAT_REDUCTIONS, INTEGER_REDUCTIONS
from halfulp.compiler.interpreter import interpret_kernel
from halfulp.compiler.interpreter.exact_integers import fma_through_integers
from halfulp.compiler.interpreter.reduction import dot, reduce_in_order, reduction, top_merge

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def scalar_maximum(a: Any, b: Any) -> Any:
    if math.isnan(a) or math.isnan(b):
        return type(a)(math.nan)
    if a == b == 0:
        return a if not np.signbit(a) else b
    return max(a, b)


def scalar_minimum(a: Any, b: Any) -> Any:
    return -scalar_maximum(-a, -b)


FLOAT_SCALARS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda a, b: a + b, -0.0),
    "mul": (lambda a, b: a * b, 1.0),
    "maximum": (scalar_maximum, -math.inf),
    "minimum": (scalar_minimum, math.inf),
}


def order_r(elements: list[Any], operation: Callable[[Any, Any], Any], identity: Any, lanes: int) -> Any:
    """One row of the definition in ``tile.reduce``."""
    total = None
    for start in range(0, len(elements), 4096):
        state = [identity] * lanes
        for i, element in enumerate(elements[start : start + 4096]):
            state[i % lanes] = operation(state[i % lanes], element)
        n = lanes
        while n > 1:
            n //= 2
            for i in range(n):
                state[i] = operation(state[i], state[i + n])
        total = state[0] if total is None else operation(total, state[0])
    return total


def identical(actual: Any, expected: Any) -> bool:
    if math.isnan(expected):
        return math.isnan(actual)
    return bool(actual == expected) and bool(np.signbit(actual) == np.signbit(expected))


@pytest.mark.parametrize("kind", FLOAT_REDUCTIONS)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_float_reduction_follows_order_r(kind: str, n: int, dtype: type) -> None:
    generator = np.random.default_rng(n)
    # products stay in range, sums round at every step
    values = generator.choice([0.5, 1.5, -1.25, 0.9, -1.1], n) if kind == "mul" else generator.standard_normal(n) * 1e3
    row: Array = values.astype(dtype)
    operation, identity = FLOAT_SCALARS[kind]
    for lanes in (1, 8, 64):
        got = reduce_in_order(kind, row, 0, lanes)
        assert got.dtype == dtype
        assert identical(got, order_r(list(row), operation, dtype(identity), lanes)), lanes


def test_lanes_and_chunks_matter() -> None:
    rows = np.random.default_rng(5).random((9, 5000)).astype(np.float32)
    one, eight, sixty_four = (reduce_in_order("add", rows, 1, lanes) for lanes in (1, 8, 64))
    assert (one != eight).any()
    assert (eight != sixty_four).any()
    in_one_chain = rows[:, 0]
    for column in range(1, 5000):
        in_one_chain = in_one_chain + rows[:, column]
    assert (one != in_one_chain).any()


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(bfloat16)], ids=str)
def test_narrow_sum_rounds_at_every_step(dtype: np.dtype[Any]) -> None:
    row = np.random.default_rng(6).standard_normal(300).astype(dtype)

    def add(a: Any, b: Any) -> Any:
        return dtype.type(np.float64(a) + np.float64(b))  # exact in f64, then one rounding

    assert identical(reduce_in_order("add", row, 0, 64), order_r(list(row), add, dtype.type(-0.0), 64))


@pytest.mark.parametrize("kind", INTEGER_REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.int64], ids=str)
def test_integer_reduction_wraps(kind: str, dtype: type) -> None:
    generator = np.random.default_rng(7)
    bits = 1 if dtype is np.bool_ else np.dtype(dtype).itemsize * 8
    limit = 1 << bits - 1
    raw = [int(n) for n in generator.integers(-limit, limit, 200, np.int64)]
    row = np.array([n & 1 == 1 for n in raw]) if bits == 1 else np.array(raw, dtype)
    patterns = [n & (1 << bits) - 1 for n in raw]
    expected = {
        "add": sum(raw),
        "mul": math.prod(raw),
        "maxs": max(raw),
        "mins": min(raw),
        "maxu": max(patterns),
        "minu": min(patterns),
        "and": np.bitwise_and.reduce(np.array(raw)),
        "or": np.bitwise_or.reduce(np.array(raw)),
        "xor": np.bitwise_xor.reduce(np.array(raw)),
    }
    got = int(reduce_in_order(kind, row, 0, 64))
    assert got & (1 << bits) - 1 == int(expected[kind]) & (1 << bits) - 1


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("lanes", [1, 64])
def test_every_row_along_any_axis_is_reduced_alone(axis: int, lanes: int) -> None:
    block = np.random.default_rng(8).standard_normal((3, 70, 5)).astype(np.float32)
    got = reduce_in_order("add", block, axis, lanes)
    rows = np.moveaxis(block, axis, -1)
    assert got.shape == rows.shape[:-1]
    for place in np.ndindex(got.shape):
        assert identical(got[place], order_r(list(rows[place]), lambda a, b: a + b, np.float32(-0.0), lanes))


def test_zeros_nan_and_infinities() -> None:
    def of(kind: str, *values: float) -> float:
        return float(reduce_in_order(kind, np.array(values, np.float32), 0, 64))

    assert math.copysign(1, of("add", -0.0, -0.0)) == -1  # the identity of add is -0.0
    assert math.copysign(1, of("add", -0.0, 0.0)) == 1
    assert math.copysign(1, of("maximum", -0.0, 0.0)) == 1
    assert math.copysign(1, of("minimum", 0.0, -0.0)) == -1
    assert of("maximum", -math.inf) == -math.inf
    for kind in FLOAT_REDUCTIONS:
        assert math.isnan(of(kind, 1.0, math.nan, 2.0))
    assert math.isnan(of("add", math.inf, -math.inf))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float32], ids=str)
def test_an_empty_axis_gives_the_identity(dtype: type) -> None:
    for kind in FLOAT_REDUCTIONS if dtype is np.float32 else INTEGER_REDUCTIONS:
        combine, identity = reduction(kind, np.dtype(dtype))
        assert reduce_in_order(kind, np.zeros((2, 0), dtype), 1, 64).tolist() == [identity] * 2
        samples: Array = np.array([0, 1, 2, 5, 127], dtype)
        assert (combine(np.full(samples.shape, identity), samples) == samples).all()


# -- dot


@pytest.mark.parametrize("fused", [True, False])
def test_dot_is_one_chain_over_ascending_k(fused: bool) -> None:
    generator = np.random.default_rng(9)
    a, b, acc = (generator.standard_normal(shape) for shape in ((3, 17), (17, 4), (3, 4)))
    got = dot(a, b, acc, fused=fused)
    for i, j in np.ndindex(3, 4):
        total = float(acc[i, j])
        for k in range(17):
            product = a[i, k] * b[k, j]
            total = fma_through_integers(a[i, k], b[k, j], total) if fused else total + product
        assert got[i, j] == total


def test_dot_fused_and_not_fused_differ() -> None:
    a, b = np.random.default_rng(10).standard_normal((2, 4, 32, 32)).astype(np.float32)[:, 0]
    acc = np.zeros((32, 32), np.float32)
    assert (dot(a, b, acc, fused=True) != dot(a, b, acc, fused=False)).any()


@pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=str)
def test_dot_widens_narrow_operands(dtype: Any) -> None:
    generator = np.random.default_rng(11)
    a, b = generator.standard_normal((2, 8, 8)).astype(dtype)
    acc = np.zeros((8, 8), np.float32)
    got = dot(a, b, acc, fused=True)
    assert got.dtype == np.float32
    for fused in (True, False):  # products of 11 bits by 11 are exact in f32
        assert (got == dot(a.astype(np.float32), b.astype(np.float32), acc, fused=fused)).all()


def test_dot_of_integers_wraps() -> None:
    a, b = np.array([[100, 100]], np.int8), np.array([[100], [27]], np.int8)
    assert dot(a, b, np.zeros((1, 1), np.int32), fused=True).tolist() == [[12700]]
    assert dot(a, b, np.zeros((1, 1), np.int8), fused=True).tolist() == [[12700 % 256 - 256]]


# -- top_merge


def merged(pairs: list[tuple[Any, int]], k: int) -> list[tuple[Any, int]]:
    return sorted((p for p in pairs if not math.isnan(p[0])), key=lambda p: (-p[0], p[1]))[:k]


@settings(deadline=None)
@given(st.data())
def test_top_merge_keeps_the_largest_then_the_lowest_index(data: st.DataObject) -> None:
    values = st.sampled_from([-math.inf, -1.0, 0.0, 2.0, math.inf, math.nan])
    k = data.draw(st.integers(1, 5))
    candidates = data.draw(st.lists(values, max_size=12))
    top: list[tuple[Any, int]] = [(-math.inf, 2**31 - 1)] * k
    got = np.array([v for v, _ in top], np.float32), np.array([i for _, i in top], np.int32)
    offset = 0
    while offset < len(candidates):  # in parts: the order of merging cannot matter
        size = data.draw(st.integers(1, len(candidates)))
        part = np.array(candidates[offset : offset + size], np.float32)
        got = top_merge(*got, part, np.arange(offset, offset + len(part), dtype=np.int32))
        offset += size
    expected = merged([*top, *((v, i) for i, v in enumerate(candidates))], k)
    assert list(zip(got[0].tolist(), got[1].tolist(), strict=True)) == expected


def test_top_merge_of_integers_and_signed_indices() -> None:
    top = np.array([-(2**31)], np.int32), np.array([5], np.int64)
    values, indices = np.array([-(2**31), 2**31 - 1], np.int32), np.array([-1, 0], np.int64)
    assert [x.tolist() for x in top_merge(*top, values[:1], indices[:1])] == [[-(2**31)], [-1]]
    assert [x.tolist() for x in top_merge(*top, values, indices)] == [[2**31 - 1], [0]]


def test_top_merge_of_bf16_in_a_kernel(parse_tile: Callable[[str], ModuleOp]) -> None:
    module = parse_tile("""
    tile.kernel @merge(%tv: !tile.ref<[2], bf16, global>, %ti: !tile.ref<[2], i32, global>,
                       %v: !tile.ref<[4], bf16, global>) grid() axes [] {
      %a = tile.load %tv : !tile.ref<[2], bf16, global> -> tensor<2xbf16>
      %b = tile.load %ti : !tile.ref<[2], i32, global> -> tensor<2xi32>
      %c = tile.load %v : !tile.ref<[4], bf16, global> -> tensor<4xbf16>
      %i = tile.iota 0 : tensor<4xi32>
      %mv, %mi = tile.top_merge %a, %b with %c, %i
        : tensor<2xbf16>, tensor<2xi32>, tensor<4xbf16>, tensor<4xi32> -> tensor<2xbf16>, tensor<2xi32>
      tile.store %mv, %tv : tensor<2xbf16>, !tile.ref<[2], bf16, global>
      tile.store %mi, %ti : tensor<2xi32>, !tile.ref<[2], i32, global>
      tile.return
    }""")
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    values, indices = np.array([3.0, -np.inf], bfloat16), np.array([9, 99], np.int32)
    interpret_kernel(kernel, [], [values, indices, np.array([1.0, 3.0, np.nan, 2.0], bfloat16)])
    assert (values.astype(float).tolist(), indices.tolist()) == ([3.0, 3.0], [1, 9])
