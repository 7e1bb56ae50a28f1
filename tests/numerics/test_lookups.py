"""Lookups in tables of every length give the same bits interpreted, compiled at every width, and as PTX."""

from __future__ import annotations

import numpy as np
import pytest
from differential import WIDTHS, Array, check_both_ways
from ptx_runs import check_ptx
from tile_programs import build
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.tile_builder import KernelBuilder

LENGTHS = (1, 2, 4, 8, 16, 32, 64)
INDICES = np.concatenate([np.arange(-70, 70), [2**31 - 1, -(2**31), 1 << 20, 12345]]).astype(np.int32)


def table_of(length: int) -> list[float]:
    return [float(np.float32(n / 7 - 1)) for n in range(length)]


def lookups(length: int) -> tuple[ModuleOp, list[Array]]:
    """A kernel that looks up a block of indices, every lane alone, and one scalar."""
    arrays: list[Array] = [INDICES, np.zeros(len(INDICES), np.float32), np.zeros(1, np.float32)]

    def body(k: KernelBuilder) -> None:
        indices, entries, one = (k.window(ref, [0], a.shape) for ref, a in zip(k.arguments, arrays, strict=True))
        block = k.load(indices)
        k.store(k.lookup(block, table_of(length)), entries)
        number = k.extract(block, len(INDICES) - 1)
        k.store(k.splat(k.lookup(number, table_of(length)), [1]), one)

    return build(arrays, [], body), arrays


@pytest.mark.parametrize("length", LENGTHS)
def test_compiled_lookups_are_those_of_the_table(length: int) -> None:
    module, arrays = lookups(length)
    run = check_both_ways(module, arrays, widths=WIDTHS)
    expected = np.array(table_of(length), np.float32)[INDICES % length]
    assert run.arrays[1].tobytes() == expected.tobytes()
    assert run.arrays[2][0] == expected[-1]


@pytest.mark.parametrize("length", LENGTHS)
def test_lookups_of_a_gpu_have_the_same_bits(length: int) -> None:
    module, arrays = lookups(length)
    check_ptx(module, arrays)
