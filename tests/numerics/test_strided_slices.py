"""Slices with steps: whole vectors by shuffles, what is left one by one, always the elements that the slice names."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check_both_ways
from tile_programs import DTYPES, build, random_array
from xdsl.dialects.builtin import f32, f64, i1, i8
from xdsl.ir import Attribute

from halfulp.compiler.tile_builder import KernelBuilder


@pytest.mark.parametrize("element", [f32, f64, i8, i1], ids=str)
def test_steps_along_a_row(element: Attribute) -> None:
    source = random_array(np.random.default_rng(3), (2, 100), element)
    ranges = [(0, 40, 2), (99, 100, -1), (99, 50, -2), (1, 33, 3), (80, 5, -17), (7, 9, 0)]

    def body(b: KernelBuilder) -> None:
        x, *targets = b.arguments
        block = b.load(b.window(x, [0, 0], [2, 100]))
        for (start, size, step), target in zip(ranges, targets, strict=True):
            b.store(b.slice(block, [0, start], [2, size], [1, step]), b.window(target, [0, 0], [2, size]))

    arrays = [source, *(np.zeros((2, size), DTYPES[element]) for _, size, _ in ranges)]
    results = check_both_ways(build(arrays, [1], body), arrays).arrays[1:]
    for (start, size, step), result in zip(ranges, results, strict=True):
        assert result.tobytes() == np.take(source, start + step * np.arange(size), axis=1).tobytes()
