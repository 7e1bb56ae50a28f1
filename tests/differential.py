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

from halfulp.compiler.artifact import (
    STATUS_ARENAS,
    STATUS_CHECK,
    STATUS_LAUNCH,
    STATUS_PRINT,
    STATUS_VALUES,
    STATUS_WORDS,
)
from halfulp.compiler.codegen.cpu import compile_to_object, host_target
from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.passes.tile_to_loops.layout import EntryLayout, entry_layout, prints_of
from halfulp.compiler.pipeline import lower, thread_arena_bytes
from halfulp.compiler.print_sites import print_site
from halfulp.compiler.universe import HALFULP_UNIVERSE
from halfulp.runtime.loader import NativeLibrary
from halfulp.runtime.print_callback import PrintCallback

Array = np.ndarray[Any, np.dtype[Any]]
WIDTHS = (512, 256, 128)

MARGIN = 4096
"""Bytes around every buffer of a compiled run that must keep what they hold."""
CANARY = 0xA5


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
    """What a run leaves behind: every buffer, the failed check as (kernel, message) or None, the lines printed."""

    arrays: list[Array]
    failure: tuple[str, str] | None
    lines: list[str]


@dataclass
class ShownLines:
    """Keeps the lines that a run prints."""

    lines: list[str]

    def tensor(self, label: str, array: Array) -> None:
        self.lines.append(f"{label} = {array!s}")

    def line(self, text: str) -> None:
        self.lines.append(text)


class GuardedArray:
    """A copy of an array between margins that show whether something was written beside it."""

    def __init__(self, array: Array) -> None:
        self.memory = np.full(array.nbytes + 2 * MARGIN, CANARY, np.uint8)
        inside = self.memory[MARGIN : MARGIN + array.nbytes]
        self.array: Array = inside.view(array.dtype).reshape(array.shape) if array.size else array.copy()
        self.array[...] = array
        self.address = inside.ctypes.data

    def checked(self) -> Array:
        """The array; an error if a margin has changed."""
        margins = np.concatenate([self.memory[:MARGIN], self.memory[len(self.memory) - MARGIN :]])
        assert (margins == CANARY).all(), "the compiled kernel wrote outside of a buffer"
        return self.array


def _failure(status: Array, layout: EntryLayout) -> tuple[str, str] | None:
    if not status[STATUS_LAUNCH]:
        return None
    site = layout.sites[int(status[STATUS_LAUNCH]) - 1][int(status[STATUS_CHECK])]
    first, *rest = site.message.split("{}")
    values = status[STATUS_VALUES : STATUS_VALUES + len(rest)]
    return site.kernel, first + "".join(f"{value}{text}" for value, text in zip(values, rest, strict=True))


def run_compiled(module: ModuleOp, arrays: Sequence[Array], vector_bits: int, options: CompileOptions) -> Run:
    """Compiles a copy of ``module``, which has one segment and no buffers of its own, and runs it on copies."""
    module = module.clone()
    layout = entry_layout(module, entry_of(module))
    prints = prints_of(module)
    assert len(layout.segments) == 1
    assert not layout.buffers
    symbol = f"{entry_of(module).sym_name.data}.0.call"
    target = host_target(vector_bits)
    lower(module, "llvm", options, target)
    text = emit_llvm(module, function_attributes=target.function_attributes)
    library = NativeLibrary(compile_to_object(text, target, options.opt_level), [symbol])
    copies = [GuardedArray(array) for array in arrays]
    shown = ShownLines([])
    callback = PrintCallback([print_site(op) for op in prints], shown)
    status, computed = np.zeros(STATUS_WORDS, np.int64), np.zeros(1, np.int64)
    status[STATUS_PRINT] = callback.address
    arena = GuardedArray(np.full(thread_arena_bytes(module), CANARY, np.uint8))
    status[STATUS_ARENAS] = arena.address
    addresses = [status.ctypes.data, computed.ctypes.data, *[copy.address for copy in copies]]
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    extents = [n for array in arrays for n in array.shape]
    dims = (ctypes.c_int64 * max(len(extents), 1))(*extents)
    library.entry(symbol)(ctypes.addressof(pointers), ctypes.addressof(dims))
    callback.finish()
    arena.checked()
    return Run([copy.checked() for copy in copies], _failure(status, layout), shown.lines)


def run_interpreted(module: ModuleOp, arrays: Sequence[Array]) -> Run:
    """Interprets ``module`` on copies."""
    copies = [array.copy() for array in arrays]
    result = interpret(module, entry_of(module).sym_name.data, copies)
    failure = None if result.failed is None else (result.failed.kernel, result.failed.message)
    return Run(copies, failure, [printed.line for printed in result.printed])


def assert_same_bits(actual: Array, expected: Array, where: str) -> None:
    """Equal bits, all NaNs counting as equal."""
    assert actual.dtype == expected.dtype, where
    assert actual.shape == expected.shape, where
    actual, expected = np.atleast_1d(actual), np.atleast_1d(expected)
    same = actual.view(np.uint8) == expected.view(np.uint8) if actual.size else np.ones(0, bool)
    if same.all():
        return
    both_nan = (actual != actual) & (expected != expected)
    word = f"u{actual.dtype.itemsize}"
    different = ~((actual.view(word) == expected.view(word)) | both_nan)
    if different.any():
        at = tuple(int(i) for i in np.argwhere(different)[0])
        raise AssertionError(
            f"{where}: {int(different.sum())} of {actual.size} elements differ, first at {at}:"
            f" {actual[at]!r} is not {expected[at]!r}"
        )


def canonical_bits(array: Array) -> bytes:
    """The bits, all NaN being one."""
    return np.where(array != array, np.array(np.nan, array.dtype), array).tobytes()


def check_both_ways(
    module: ModuleOp | str,
    arrays: Sequence[Array],
    options: CompileOptions | None = None,
    widths: Sequence[int] = WIDTHS,
) -> Run:
    """Interpreted and compiled results of all buffers are the same bits, the failed check and what was printed too.

    The interpreted ones are returned.
    """
    if isinstance(module, str):
        module = parse_module(module)
    expected = run_interpreted(module, arrays)
    for bits in widths:
        run = run_compiled(module, arrays, bits, options or CompileOptions())
        assert run.failure == expected.failure, f"{run.failure} at {bits} bits, {expected.failure} interpreted"
        assert run.lines == expected.lines, f"at {bits} bits"
        for number, (actual, wanted) in enumerate(zip(run.arrays, expected.arrays, strict=True)):
            assert_same_bits(actual, wanted, f"buffer {number} at {bits} bits")
    return expected
