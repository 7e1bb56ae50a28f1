"""Ops that move, choose and order elements, against numpy: several element types, sizes bound when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from op_samples import Array, random_values

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType
from halfulp.runtime import InferenceSession
from halfulp.runtime.errors import ExecutionError

F32, I64, BOOL = DType.float32, DType.int64, DType.bool
MOVED = (DType.float32, DType.float64, DType.float16, DType.int8, DType.uint64, DType.bool)
Build = Callable[..., Any]


def load(build: Build, *specs: tuple[DType, Sequence[Any]]) -> Callable[..., list[Array]]:
    graph = Graph("g", build, [TensorType(dtype, shape) for dtype, shape in specs])
    model = InferenceSession().load(graph)
    return lambda *arrays: [buffer.to_numpy() for buffer in model.execute(*arrays)]


def moves(x: Any) -> list[Any]:
    return [
        ops.permute(x, [2, 0, 1]),
        x.transpose(0, 1),
        x[1:-1],
        x[::-1],
        x[:, ::2, ::-3],
        x[:, 1],
        x[..., -2:],
        ops.unsqueeze(x, 1),
        x.reshape([x.shape[0] * 5, 7]),
        x.flatten(),
        ops.concat([x, x[1:], x], 0),
        ops.stack([x, x], -1),
        ops.pad(x, [1, 2, 0, 1, 3, 0], value=1),
        ops.tile(x, [2, 1, 3]),
        ops.repeat_interleave(x, 2, axis=1),
        ops.broadcast_to(ops.unsqueeze(x, 0), [3, *x.shape]),
        *ops.split(x, [2, 3], 1),
        *ops.chunk(ops.concat([x, x], 0), 2, 0),
        ops.band_part(x, 1, 0),
    ]


def moved(x: Array) -> list[Array]:
    band = np.subtract.outer(np.arange(5), np.arange(7))
    return [
        x.transpose(2, 0, 1),
        x.swapaxes(0, 1),
        x[1:-1],
        x[::-1],
        x[:, ::2, ::-3],
        x[:, 1],
        x[..., -2:],
        x[:, None],
        x.reshape(-1, 7),
        x.ravel(),
        np.concatenate([x, x[1:], x]),
        np.stack([x, x], -1),
        np.pad(x, [(1, 2), (0, 1), (3, 0)], constant_values=1),
        np.tile(x, [2, 1, 3]),
        np.repeat(x, 2, 1),
        np.broadcast_to(x, (3, *x.shape)),
        x[:, :2],
        x[:, 2:],
        x,
        x,
        np.where((band <= 1) & (band >= 0), x, np.zeros_like(x)),
    ]


def test_moves() -> None:
    program = load(lambda *values: [y for x in values for y in moves(x)], *[(dtype, ["n", 5, 7]) for dtype in MOVED])
    for size in (2, 3, 9):
        arrays = [random_values(dtype, size * 35, size).reshape(size, 5, 7) for dtype in MOVED]
        expected = [y for x in arrays for y in moved(x)]
        results = program(*arrays)
        assert len(results) == len(expected)
        for number, (got, wanted) in enumerate(zip(results, expected, strict=True)):
            assert got.dtype == wanted.dtype
            assert np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"), f"output {number} of size {size}"


SPECIAL = np.array([[1, np.nan, 5, -np.inf, 0.0], [-0.0, 0.0, 5, np.inf, 5], [np.nan, np.nan, 1, 2, 3]], np.float32)


def test_order_of_special_values() -> None:
    program = load(
        lambda x: [*ops.top_k(x, 5), *ops.bottom_k(x, 3), ops.argsort(x), ops.argmax(x), ops.argmin(x)], (F32, ["n", 5])
    )
    top, top_at, bottom, bottom_at, order, largest, smallest = program(SPECIAL)
    assert top_at.tolist() == [[1, 2, 0, 4, 3], [3, 2, 4, 0, 1], [0, 1, 4, 3, 2]]
    assert bottom_at.tolist() == [[3, 4, 0], [0, 1, 2], [2, 3, 4]]
    assert np.array_equal(top, np.take_along_axis(SPECIAL, top_at, 1), equal_nan=True)
    assert np.array_equal(bottom, np.take_along_axis(SPECIAL, bottom_at, 1), equal_nan=True)
    assert np.array_equal(order, np.argsort(SPECIAL, kind="stable"))
    assert np.array_equal(largest[:, 0], SPECIAL.argmax(1))
    assert np.array_equal(smallest[:, 0], SPECIAL.argmin(1))


@pytest.mark.parametrize("dtype", [DType.float32, DType.bfloat16, DType.int8, DType.uint64, DType.float64])
def test_order(dtype: DType) -> None:
    program = load(lambda x: [*ops.top_k(x, 3, axis=0), ops.argmax(x, 0), ops.argmin(x, 1)], (dtype, ["n", "m"]))
    for rows, columns in ((3, 1), (7, 5), (4, 5000)):
        x = random_values(dtype, rows * columns, rows).reshape(rows, columns)
        values, at, largest, smallest = program(x)
        # numpy knows no bfloat16 order of its own; f64 holds it, and u64 needs its own
        wide: Array = x if dtype.is_integral else x.astype(np.float64)
        order = np.argsort(np.invert(wide) if dtype.is_integral else -wide, axis=0, kind="stable")[:3]
        assert np.array_equal(at, order)
        assert np.array_equal(values, np.take_along_axis(x, order, 0))
        assert np.array_equal(largest[0], wide.argmax(0))
        assert np.array_equal(smallest[:, 0], wide.argmin(1))


def test_cumsum_is_a_chain() -> None:
    program = load(lambda x: [ops.cumsum(x, 1), ops.cumsum(x, 1, exclusive=True, reverse=True)], (F32, ["n", "m", 2]))
    x = np.random.default_rng(1).standard_normal((2, 300, 2)).astype(np.float32)
    forward, backward = program(x)
    assert np.array_equal(forward, np.cumsum(x, 1, dtype=np.float32))
    behind = np.cumsum(x[:, ::-1], 1, dtype=np.float32)[:, ::-1]
    assert np.array_equal(backward[:, :-1], behind[:, 1:])
    assert not backward[:, -1].any()


def test_gather_and_scatter() -> None:
    def build(x: Any, i: Any, u: Any) -> list[Any]:
        return [
            ops.gather(x, i, 0),
            ops.gather(x, i, 1),
            ops.scatter_add(x, u, ops.broadcast_to(ops.unsqueeze(i, 1), [3, 4]), axis=0),
            ops.scatter_nd(x, u, ops.unsqueeze(i, 1)),
            ops.scatter_nd_max(x, u, ops.unsqueeze(i, 1)),
            x[i[0]],
        ]

    program = load(build, (F32, ["n", 4]), (I64, [3]), (F32, [3, 4]))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    i, u = np.array([2, -1, 2]), np.arange(12, dtype=np.float32).reshape(3, 4) * 3
    rows, columns, added, placed, larger, chosen = program(x, i, u)
    assert np.array_equal(rows, x[i])
    assert np.array_equal(columns, x[:, i])
    wanted = x.copy()
    np.add.at(wanted, i, u)
    assert np.array_equal(added, wanted)
    wanted = x.copy()
    wanted[[2, -1]] = u[[2, 1]]
    assert np.array_equal(placed, wanted)
    wanted = x.copy()
    np.maximum.at(wanted, i, u)
    assert np.array_equal(larger, wanted)
    assert np.array_equal(chosen, x[2])


@pytest.mark.parametrize("index", [5, -6])
def test_gather_outside_fails(index: int) -> None:
    program = load(lambda x, i: ops.gather(x, i, 0), (F32, ["n", 4]), (I64, ["k"]))
    with pytest.raises(ExecutionError, match=rf"ops.gather: index {index} is outside of an axis of size 5"):
        program(np.zeros((5, 4), np.float32), np.array([0, index]))


def test_sizes_from_data() -> None:
    def build(x: Any, mask: Any, new: Any) -> list[Any]:
        found = ops.nonzero(x, "found")
        return [found, found + 1, ops.masked_scatter(x, mask, new, "chosen")]

    program = load(build, (F32, ["n", 3]), (BOOL, ["n", 3]), (F32, ["m"]))
    for rows in (0, 1, 5):
        x = random_values(F32, rows * 3, rows).reshape(rows, 3) * (np.arange(3) != 1)
        mask = np.arange(rows * 3).reshape(rows, 3) % 2 == 0
        found, more, replaced = program(x, mask, np.arange(20, dtype=np.float32))
        assert np.array_equal(found, np.argwhere(x))
        assert np.array_equal(more, found + 1)
        wanted = x.copy()
        wanted[mask] = np.arange(mask.sum())
        assert np.array_equal(replaced, wanted)


def test_rebind() -> None:
    program = load(
        lambda x, y: [x.rebind(["m", 2], "one row each") + y, x.rebind(["k", 2]) * 2], (F32, ["n", 2]), (F32, ["m", 2])
    )
    x = np.ones((3, 2), np.float32)
    assert np.array_equal(program(x, x)[0], x + x)
    message = r"axis 0 has size 'n', which is 3, but is rebound to 'm', which is 1: one row each"
    with pytest.raises(ExecutionError, match=message):
        program(x, x[:1])


def test_stated_slice_is_checked() -> None:
    program = load(lambda x: [ops.slice_tensor(x, [(slice(1, 4), 3)]), x[0]], (F32, ["n"]))
    part, first = program(np.arange(5, dtype=np.float32))
    assert (part.tolist(), first.tolist()) == ([1, 2, 3], 0)
    with pytest.raises(ExecutionError, match="elements 1 to 3 of axis 0 are wanted, but it has size 3"):
        program(np.arange(3, dtype=np.float32))


def test_range() -> None:
    def build(x: Any, step: Any) -> list[Any]:
        size = x.shape[0]
        return [
            ops.range(3, size, 2),
            ops.range(0.5, 2.5, 0.25, dtype=F32),
            ops.range(10, 0, -3, dtype=DType.int8),
            ops.range(0, step * 4, step, out_dim=4, dtype=F32),
            ops.shape_to_tensor([size, size * 2 + 1, 7]),
        ]

    program = load(build, (F32, ["n"]), (F32, []))
    odd, floats, down, stepped, sizes = program(np.zeros(9, np.float32), np.float32(0.1))
    assert odd.tolist() == list(range(3, 9, 2))
    assert floats.tolist() == np.arange(0.5, 2.5, 0.25).tolist()
    assert down.tolist() == list(range(10, 0, -3))
    assert np.array_equal(stepped, (np.arange(4) * float(np.float32(0.1))).astype(np.float32))
    assert sizes.tolist() == [9, 19, 7]


def test_pools() -> None:
    def build(x: Any) -> list[Any]:
        return [
            ops.max_pool2d(x, 2, 2),
            ops.avg_pool2d(x, 2, 2),
            ops.avg_pool2d(x, 3, 1, padding=1, count_boundary=False),
        ]

    program = load(build, (F32, ["n", 4, 6, 3]))
    x = np.random.default_rng(0).standard_normal((2, 4, 6, 3)).astype(np.float32)
    x[0, 0, 0, 0] = np.nan
    largest, average, inner = program(x)
    blocks = x.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 3, 3, 4)
    assert np.array_equal(largest, blocks.max(-1), equal_nan=True)
    np.testing.assert_allclose(average, blocks.mean(-1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(inner[1, 0, 0], x[1, :2, :2].mean((0, 1)), rtol=1e-6, atol=1e-6)


def test_attention_with_groups_and_mask() -> None:
    program = load(
        lambda q, k, v, mask: ops.attention(q, k, v, causal=True, mask=mask),
        (F32, ["b", 6, "s", 4]),
        (F32, ["b", 2, "t", 4]),
        (F32, ["b", 2, "t", 5]),
        (F32, ["s", "t"]),
    )
    generator = np.random.default_rng(0)
    q, k, v, mask = (
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 5), (3, 5))
    )
    wide_k, wide_v = (np.repeat(x.astype(np.float64), 3, 1) for x in (k, v))
    scores = q.astype(np.float64) @ wide_k.swapaxes(2, 3) / 2 + mask
    scores = np.where(np.arange(5) <= np.arange(3)[:, None] + 2, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ wide_v
    np.testing.assert_allclose(program(q, k, v, mask)[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", ["n", 0])
@pytest.mark.parametrize("axis", [0, -1])
def test_reductions_along_nothing(size: str | int, axis: int) -> None:
    program = load(
        lambda x: [op(x, axis=axis) for op in (ops.sum, ops.prod, ops.max, ops.mean)],
        (F32, [size, "m"] if axis == 0 else ["m", size]),
    )
    found = program(np.zeros((0, 3) if axis == 0 else (3, 0), np.float32))
    assert [set(result.ravel().tolist()) for result in found[:3]] == [{0.0}, {1.0}, {-np.inf}]
    assert np.isnan(found[3]).all()


def test_values_of_rows_without_elements() -> None:
    """A value for each row and what it becomes along the row are computed in one kernel, whose rows may be empty."""

    def build(x: Any, y: Any) -> list[Any]:
        rows = ops.negate(x)
        return [rows, rows + y]

    program = load(build, (F32, ["m", 1]), (F32, ["m", "n"]))
    given = [np.full((3, 1), value, np.float32) for value in (5.0, 6.0)]
    # both results are alive at the end, so neither can be what the other has left in memory
    found = [program(x, np.zeros((3, 0), np.float32)) for x in given]
    assert [rows.tolist() for rows, _ in found] == [(-x).tolist() for x in given]
    assert [whole.shape for _, whole in found] == [(3, 0), (3, 0)]
