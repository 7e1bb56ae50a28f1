"""Matrix products of blocks: every element is one chain over k, however rows and columns are held in registers."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check_both_ways
from tile_programs import DTYPES, build, random_array
from xdsl.dialects.builtin import IndexType, bf16, f16, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute

from halfulp.compiler.tile_builder import KernelBuilder, Value

SHAPES = [(1, 1, 1), (1, 9, 70), (17, 8, 65), (25, 33, 33), (31, 4, 16), (50, 3, 1), (3, 0, 8), (18, 0, 8)]
"""Up to 16 rows the right operand is read where it is; more rows go in bands, and the operand in panels."""
TYPES = [(f32, f32), (f64, f64), (bf16, f32), (f16, f32), (f32, f64), (i8, i32), (i16, i16), (i64, i64)]


def whole(b: KernelBuilder, ref: Value, rows: int, columns: int) -> Value:
    return b.window(ref, [0, 0], [rows, columns])


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("operand", "total"), TYPES, ids=lambda attribute: str(attribute))
def test_products_of_many_shapes(operand: Attribute, total: Attribute, fused: bool) -> None:
    rng = np.random.default_rng(7)
    for m, k, n in SHAPES:
        left, right = random_array(rng, (m, k), operand), random_array(rng, (k, n), operand)
        start = random_array(rng, (m, n), total)

        def body(b: KernelBuilder, m: int = m, k: int = k, n: int = n) -> None:
            x, y, acc, out = b.arguments
            operands = [b.load(whole(b, x, m, k)), b.load(whole(b, y, k, n)), b.load(whole(b, acc, m, n))]
            b.store(b.dot(*operands, fused=fused), whole(b, out, m, n))

        arrays = [left, right, start, np.zeros((m, n), DTYPES[total])]
        check_both_ways(build(arrays, [1], body), arrays)


@pytest.mark.parametrize("rows", [5, 40])
def test_counts_leave_the_rest_of_the_sums_alone(rows: int) -> None:
    rng = np.random.default_rng(8)
    left, right = random_array(rng, (rows, 20), f32), random_array(rng, (20, 70), f32)
    start = random_array(rng, (rows, 70), f32)
    right[13:] = np.nan  # k beyond the count must not touch a sum

    def body(b: KernelBuilder) -> None:
        x, y, acc, counts, out = b.arguments
        parts = [b.cast(b.read(counts, 0, axis), IndexType()) for axis in range(3)]
        operands = [b.load(whole(b, x, rows, 20)), b.load(whole(b, y, 20, 70)), b.load(whole(b, acc, rows, 70))]
        b.store(b.dot(*operands, counts=parts), whole(b, out, rows, 70))

    for counts in [
        (rows, 70, 13),
        (rows - 3, 33, 13),
        (-4, 70, 13),
        (99, 99, 0),
    ]:
        arrays = [left, right, start, np.asarray([counts], np.int64), np.zeros((rows, 70), np.float32)]
        result = check_both_ways(build(arrays, [1], body), arrays).arrays[-1]
        m, n = (max(min(count, size), 0) for count, size in zip(counts, (rows, 70), strict=False))
        assert np.array_equal(result[m:], start[m:], equal_nan=True)
        assert np.array_equal(result[:, n:], start[:, n:], equal_nan=True)


@pytest.mark.parametrize("rows", [4, 33])
def test_sums_that_a_loop_carries(rows: int) -> None:
    """They stay in one place over the loop; what the loop started with, and other readers, must not see it."""
    rng = np.random.default_rng(9)
    left, right = random_array(rng, (rows, 24), f32), random_array(rng, (24, 40), f32)

    def body(b: KernelBuilder) -> None:
        x, y, out, old, twice = b.arguments
        start = b.exp(b.load(whole(b, out, rows, 40)))

        def step(part: Value, total: Value) -> list[Value]:
            left, right = b.load(b.window(x, [0, part], [rows, 8])), b.load(b.window(y, [part, 0], [8, 40]))
            return [b.dot(left, right, total)]

        def step_twice(part: Value, total: Value) -> list[Value]:
            left, right = b.load(b.window(x, [0, part], [rows, 8])), b.load(b.window(y, [part, 0], [8, 40]))
            return [b.binary("add", b.dot(left, right, total), total)]

        (total,) = b.for_loop(0, 3, [start], step)
        (other,) = b.for_loop(0, 3, [total], step_twice)
        b.store(start, whole(b, old, rows, 40))
        b.store(total, whole(b, out, rows, 40))
        b.store(other, whole(b, twice, rows, 40))

    arrays = [left, right, *(np.zeros((rows, 40), np.float32) for _ in range(3))]
    check_both_ways(build(arrays, [1], body), arrays)


@pytest.mark.parametrize("rows", [6, 20])
def test_operands_computed_on_the_way(rows: int) -> None:
    """Windows beyond the buffers, broadcasts and transposes as operands of a product."""
    rng = np.random.default_rng(10)
    left, right, bias = (random_array(rng, shape, f32) for shape in ((rows - 2, 10), (9, 45), (9, 1)))

    def body(b: KernelBuilder) -> None:
        x, y, z, out = b.arguments
        a = b.load(b.window(x, [-1, 2], [rows, 11], indexing="element"))
        column = b.broadcast(b.load(b.window(z, [1, 0], [11, 1], indexing="element")), [11, 45])
        c = b.binary("add", b.load(b.window(y, [1, -3], [11, 45], indexing="element")), column)
        product = b.dot(a, c, b.splat(b.constant(0.0, f32), [rows, 45]))
        b.store(product, whole(b, out, rows, 45))
        b.store(
            b.dot(product, b.transpose(product, [1, 0]), b.splat(b.constant(1.0, f32), [rows, rows])),
            b.window(out, [0, 45], [rows, rows], indexing="element"),
        )

    arrays = [left, right, bias, np.zeros((rows, 80), np.float32)]
    check_both_ways(build(arrays, [1], body), arrays)
