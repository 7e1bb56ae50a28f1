"""``tile.top_merge`` compiled and interpreted: few entries in registers, many in memory; ties, NaN, infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import check_both_ways
from tile_programs import DTYPES, build
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute

from halfulp.compiler.tile_builder import KernelBuilder

CANDIDATES = 150
"""No multiple of any vector."""


def candidates(element: Attribute, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    values = rng.integers(-30, 30, CANDIDATES).astype(DTYPES[element])  # many ties
    if element in (f32, f64):
        values[rng.integers(0, CANDIDATES, 5)] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    return values


@pytest.mark.parametrize(
    ("element", "entries"), [*[(f32, n) for n in (1, 2, 7, 16, 17)], (f64, 7), (i32, 3), (i64, 16)], ids=str
)
def test_entries_are_the_best_candidates_of_all_merges(element: Attribute, entries: int) -> None:
    values = [candidates(element, seed) for seed in (entries, entries + 100)]
    least = -np.inf if element in (f32, f64) else np.iinfo(DTYPES[element]).min
    top = [np.full(entries, least, DTYPES[element]), np.full(entries, 2**31 - 1, np.int32)]

    def body(k: KernelBuilder) -> None:
        windows = [
            k.window(ref, [0], [n])
            for ref, n in zip(k.arguments, (entries, entries, CANDIDATES, CANDIDATES), strict=True)
        ]
        best = [k.load(window) for window in windows[:2]]
        for number, window in enumerate(windows[2:]):
            places = k.iota([CANDIDATES], i32) + (1 - number) * CANDIDATES  # lower ones come later
            best = list(k.top_merge(best[0], best[1], k.load(window), places))
        for block, window in zip(best, windows, strict=False):
            k.store(block, window)

    arrays = [*top, *values]
    run = check_both_ways(build(arrays, [], body), arrays)
    everything = [
        *zip(values[0], range(CANDIDATES, 2 * CANDIDATES), strict=True),
        *zip(values[1], range(CANDIDATES), strict=True),
    ]
    ranked = sorted((pair for pair in everything if pair[0] == pair[0]), key=lambda pair: (-float(pair[0]), pair[1]))
    assert [(float(v), int(i)) for v, i in zip(*run.arrays[:2], strict=True)] == [
        (float(v), i) for v, i in ranked[:entries]
    ]
