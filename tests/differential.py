"""Runs one tile module both ways, interpreted and compiled at every vector width, and compares all bits."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from halfulp.compiler.artifact import STATUS_WORDS
from halfulp.compiler.codegen.cpu import compile_to_object, host_target
from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.passes.tile_to_loops.layout import entry_layout
from halfulp.compiler.pipeline import lower
from halfulp.compiler.universe import HALFULP_UNIVERSE
from halfulp.runtime.loader import NativeLibrary

Array = np.ndarray[Any, np.dtype[Any]]
WIDTHS = (512, 256, 128)


def parse_module(text: str) -> ModuleOp:
    """A module from text, verified."""
    context = Context()
    for universe in (Universe.get_multiverse(), HALFULP_UNIVERSE):
        for name, load in universe.all_dialects.items():
            if name not in context.registered_dialect_names:
                context.register_dialect(name, load)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def entry_of(module: ModuleOp) -> FuncOp:
    (entry,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return entry


@dataclass
class Run:
    """What a run leaves behind: every buffer, and the failed check as (launch, program, check) or None."""

    arrays: list[Array]
    failure: tuple[int, int, int] | None


def run_compiled(module: ModuleOp, arrays: Sequence[Array], vector_bits: int, options: CompileOptions) -> Run:
    """Compiles a copy of ``module``, which has one segment and no buffers of its own, and runs it on copies."""
    module = module.clone()
    layout = entry_layout(module, entry_of(module))
    assert len(layout.segments) == 1 and not layout.buffers
    symbol = f"{entry_of(module).sym_name.data}.0.call"
    target = host_target(vector_bits)
    lower(module, "llvm", options, target)
    text = emit_llvm(module, function_attributes=target.function_attributes)
    library = NativeLibrary(compile_to_object(text, target, options.opt_level), [symbol])
    copies = [array.copy() for array in arrays]
    status = np.zeros(STATUS_WORDS, np.int64)
    memory = [status, np.zeros(1, np.int64), *copies]
    pointers = (ctypes.c_void_p * len(memory))(*[array.ctypes.data for array in memory])
    extents = [n for array in copies for n in array.shape]
    dims = (ctypes.c_int64 * max(len(extents), 1))(*extents)
    library.entry(symbol)(ctypes.addressof(pointers), ctypes.addressof(dims))
    failure = (int(status[0]) - 1, int(status[1]), int(status[2])) if status[0] else None
    return Run(copies, failure)


def run_interpreted(module: ModuleOp, arrays: Sequence[Array]) -> list[Array]:
    """Interprets ``module`` on copies."""
    copies = [array.copy() for array in arrays]
    interpret(module, entry_of(module).sym_name.data, copies)
    return copies


def assert_same_bits(actual: Array, expected: Array, where: str) -> None:
    """Equal bits, all NaNs counting as equal."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, where
    same = actual.view(np.uint8) == expected.view(np.uint8) if actual.size else np.ones(0, bool)
    if same.all():
        return
    both_nan = (actual != actual) & (expected != expected)
    width = actual.dtype.itemsize
    words = (
        actual.view(f"u{width}") == expected.view(f"u{width}") if width <= 8 else actual == expected
    )
    different = ~(words | both_nan)
    if different.any():
        at = tuple(int(i) for i in np.argwhere(different)[0])
        raise AssertionError(
            f"{where}: {int(different.sum())} of {actual.size} elements differ, first at {at}:"
            f" {actual[at]!r} is not {expected[at]!r}"
        )


def check_both_ways(
    module: ModuleOp | str, arrays: Sequence[Array], options: CompileOptions | None = None
) -> list[Array]:
    """Interpreted and compiled results of all buffers are the same bits; gives the interpreted ones."""
    if isinstance(module, str):
        module = parse_module(module)
    expected = run_interpreted(module, arrays)
    for bits in WIDTHS:
        run = run_compiled(module, arrays, bits, options or CompileOptions())
        for number, (actual, wanted) in enumerate(zip(run.arrays, expected, strict=True)):
            assert_same_bits(actual, wanted, f"buffer {number} at {bits} bits")
    return expected
