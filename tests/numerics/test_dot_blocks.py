"""Matrix products of blocks: every element is one chain over k, however rows and columns are held in registers."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check_both_ways
from tile_programs import DTYPES, build, random_array
from xdsl.dialects.builtin import bf16, f16, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute

from halfulp.compiler.tile_builder import KernelBuilder, Value

SHAPES = [(1, 1, 1), (1, 9, 70), (25, 33, 65), (13, 4, 16), (50, 3, 1), (3, 0, 8)]
TYPES = [(f32, f32), (f64, f64), (bf16, f32), (f16, f32), (f32, f64), (i8, i32), (i16, i16), (i64, i64)]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("operand", "total"), TYPES, ids=lambda attribute: str(attribute))
def test_products_of_many_shapes(operand: Attribute, total: Attribute, fused: bool) -> None:
    rng = np.random.default_rng(7)
    for m, k, n in SHAPES:
        left, right = random_array(rng, (m, k), operand), random_array(rng, (k, n), operand)
        start = random_array(rng, (m, n), total)

        def body(b: KernelBuilder, m: int = m, k: int = k, n: int = n) -> None:
            def whole(ref: Value, rows: int, columns: int) -> Value:
                return b.window(ref, [0, 0], [rows, columns])

            x, y, acc, out = b.arguments
            operands = [b.load(whole(x, m, k)), b.load(whole(y, k, n)), b.load(whole(acc, m, n))]
            b.store(b.dot(*operands, fused=fused), whole(out, m, n))

        arrays = [left, right, start, np.zeros((m, n), DTYPES[total])]
        check_both_ways(build(arrays, [1], body), arrays)
