"""Scaling by powers of two in one instruction gives the bits that exact steps give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import WIDTHS, check_both_ways, entry_of
from tile_programs import build
from xdsl.context import Context

from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.passes.expand_math import ExpandMathPass
from halfulp.compiler.pipeline import emit
from halfulp.compiler.tile_builder import KernelBuilder

Floats = np.ndarray[Any, np.dtype[np.float32]]
STEP = 65_521
"""A prime: the inputs tried are every 65521st f32."""
BLOCK = 4096


def inputs(upper_bounded: bool) -> Floats:
    """f32 of all magnitudes, and densely those where e^x and 2^x are subnormal or round to 0."""
    spread = np.arange(0, 1 << 32, STEP).astype(np.uint32).view(np.float32)
    dense = [np.linspace(-first, -last, 4096, dtype=np.float32) for first, last in ((80, 110), (120, 155), (0, 1))]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 88.7228, 88.7229, 127.9999, 128.0], np.float32)
    x = np.concatenate([spread, *dense, special])
    x = x[~(x > 64)] if upper_bounded else x
    return np.resize(x, -(-len(x) // BLOCK) * BLOCK)


def exponentials(k: KernelBuilder, upper_bounded: bool) -> None:
    """e^x into the second buffer, 2^x into the third."""
    x, *results = (k.window(ref, k.program_ids, [BLOCK]) for ref in k.arguments)
    block = k.load(x)
    k.store(k.exp(block, upper_bounded=upper_bounded), results[0])
    k.store(k.unary("exp2", block), results[1])


@pytest.mark.parametrize("upper_bounded", [False, True])
def test_exponentials_have_the_same_bits_at_every_width(upper_bounded: bool) -> None:
    x = inputs(upper_bounded)
    arrays = [x, np.zeros_like(x), np.zeros_like(x)]
    module = build(arrays, [len(x) // BLOCK], lambda k: exponentials(k, upper_bounded))
    check_both_ways(module, arrays, widths=WIDTHS)


@pytest.mark.parametrize("upper_bounded", [False, True])
def test_scale_op_gives_the_bits_of_exact_steps(upper_bounded: bool) -> None:
    x = inputs(upper_bounded)
    results = []
    for scale in (False, True):
        arrays = [x, np.zeros_like(x), np.zeros_like(x)]
        module = build(arrays, [len(x) // BLOCK], lambda k: exponentials(k, upper_bounded))
        ExpandMathPass(scale=scale).apply(Context(), module)
        assert ("tile.scale" in str(module)) is scale
        result = interpret(module, entry_of(module).sym_name.data, arrays, {})
        results.append([array for array in result.arrays[1:] if array is not None])
    for plain, scaled in zip(*results, strict=True):
        number = plain == plain
        assert np.array_equal(number, scaled == scaled)
        assert plain[number].tobytes() == scaled[number].tobytes()


@pytest.mark.parametrize("bits", WIDTHS)
def test_only_targets_with_the_instruction_use_it(bits: int) -> None:
    arrays = [np.zeros(BLOCK, np.float32)] * 3
    module = build(arrays, [1], lambda k: exponentials(k, False))
    text = emit(module, "asm", CompileOptions(vector_bits=bits))
    assert ("vscalefps" in text) is host_target(bits).scales is (bits == 512)
