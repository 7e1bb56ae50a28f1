"""Rows that two loops read, so that the second one prefetches the row behind it, even behind the end of the buffer."""

from __future__ import annotations

import numpy as np
import pytest
from differential import Array, check_both_ways
from tile_programs import build
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

from halfulp.compiler.options import CompileOptions
from halfulp.compiler.tile_builder import KernelBuilder

ROW = 4096


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("tail", [0, 1, 37, 4095])
@pytest.mark.parametrize("element", [f32, f64], ids=str)
def test_results_do_not_depend_on_what_is_fetched(element: Attribute, tail: int, opt_level: int) -> None:
    length = 2 * ROW + tail
    x: Array = np.random.default_rng(tail).standard_normal(length).astype(np.float32 if element == f32 else np.float64)

    def body(k: KernelBuilder) -> None:
        source, target = (k.window(ref, k.program_ids, [ROW]) for ref in k.arguments)
        block = k.load(source)
        k.store(block - k.splat(k.reduce("maximum", block), [ROW]), target)

    arrays = [x, np.zeros_like(x)]
    module = build(arrays, [-(-length // ROW)], body)
    run = check_both_ways(module, arrays, CompileOptions(opt_level=opt_level))
    rows = [x[start : start + ROW] for start in range(0, length, ROW)]
    padded = [np.maximum(row.max(), 0) if len(row) < ROW else row.max() for row in rows]  # the pad is 0
    expected = np.concatenate([row - largest for row, largest in zip(rows, padded, strict=True)])
    assert run.arrays[1].tobytes() == expected.astype(x.dtype).tobytes()
