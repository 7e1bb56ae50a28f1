"""Rows that hang over the end of a buffer, by a little or by nearly all: loops that stop early give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check_both_ways
from tile_programs import build
from xdsl.dialects.builtin import IndexType, TensorType, f32, i32

from halfulp.compiler.tile_builder import KernelBuilder, Value

ROW = 8192
"""Two chunks of order R, the second of which may have no valid column."""
KINDS = ("add", "mul", "maximum", "minimum")
TOP = 3
LENGTHS = (0, 1, 63, 65, 4095, 4096, 4097, 4160, 8191, 8192)
"""What is left of a buffer where a row begins."""


def body(k: KernelBuilder, pad: float) -> None:
    """Every reduction of a row and of what is computed from it, then its largest elements, of whatever is left of x."""
    x, starts, results, values, tokens = k.arguments
    (program,) = k.program_ids
    start = k.cast(k.read(starts, program), IndexType())
    row = k.load(k.window(x, [start], [ROW], indexing="element"), other=pad)
    reduced = [k.reduce(kind, row) for kind in KINDS]
    reduced += [
        k.reduce("add", k.exp(row - 1.0)),
        k.reduce("add", k.cast(k.cast(row, i32), f32)),
        k.reduce("add", row * k.cast(k.iota([ROW], i32), f32)),  # no uniform tail
    ]
    for number, value in enumerate(reduced):
        k.write(value, results, program, number)
    least = k.constant(-np.inf, TensorType(f32, [TOP]))
    best: tuple[Value, Value] = k.top_merge(least, k.splat(k.constant(ROW, i32), [TOP]), row, k.iota([ROW], i32))
    for block, ref in zip(best, (values, tokens), strict=True):
        k.store(block, k.window(ref, [program, 0], [1, TOP], squeezed=[0]))


@pytest.mark.parametrize("pad", [-np.inf, -0.0, 1.0, np.nan])
def test_what_is_behind_the_end_counts_as_it_must(pad: float) -> None:
    x = np.random.default_rng(1).choice(np.array([0.5, 1.0, 2.0, -1.0, -0.0], np.float32), ROW)
    starts = ROW - np.array(LENGTHS, np.int32)
    shapes = (len(LENGTHS), 7), (len(LENGTHS), TOP)
    arrays = [
        x,
        starts,
        np.zeros(shapes[0], np.float32),
        np.zeros(shapes[1], np.float32),
        np.zeros(shapes[1], np.int32),
    ]
    check_both_ways(build(arrays, [len(LENGTHS)], lambda k: body(k, pad)), arrays)
