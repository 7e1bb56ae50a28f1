"""`NativeModel`: a graph that is compiled for the host, ready to run.

``execute`` is on the path of every small kernel, so it makes one native call per segment and little else: what depends
only on shapes is cached (`halfulp.runtime.binding`), and pointers travel as packed bytes.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfulp.compiler.artifact import (
    MOST_GRID_WORDS,
    STATUS_ARENAS,
    STATUS_CHECK,
    STATUS_GRID,
    STATUS_LAUNCH,
    STATUS_PRINT,
    STATUS_PROGRAM,
    STATUS_THREADS,
    STATUS_VALUES,
    STATUS_WORDS,
    BufferRole,
    CompiledGraph,
)

from .arguments import MutableParameter, Parameter, check_apart, check_count
from .arrays import shape_text
from .binding import Layout, Placement, describe
from .buffer import Buffer, wrap
from .device import CPU
from .errors import ExecutionError
from .failed_check import failed_check
from .loader import ENTRY_PROTOTYPE, NativeLibrary
from .loop_watch import STOPPED, LoopWatch
from .memory import Array, address_of, aligned_array
from .model import CACHED_LAYOUTS, Model
from .pool import MEMORY, SMALLEST_LENT, Block
from .precompiled import write_precompiled
from .print_callback import PrintCallback, PrintTarget
from .printing import Printer

if TYPE_CHECKING:
    from .debug.options import DebugOptions

_POINTERS_BEFORE_BUFFERS = 2  # status words, computed dims
_HOST = CPU()


class NativeModel(Model):
    """A model on the host.

    Args:
        compiled: what the compiler made.
        code: ``compiled.object_code``, loaded; its symbols are those of the segments.
        weights: by name, C-contiguous arrays of the type and shape that the graph says. They are read in place.
        printer, debug, checked: as for `Model`.
    """

    _compiled: CompiledGraph

    def __init__(
        self,
        compiled: CompiledGraph,
        code: NativeLibrary,
        weights: Mapping[str, Array],
        printer: Printer | None = None,
        debug: DebugOptions | None = None,
        checked: Callable[[], Model] | None = None,
    ) -> None:
        super().__init__(compiled, printer, debug, checked)
        self._code = code  # keeps the functions in memory
        slots = {spec.index: slot for slot, spec in enumerate(compiled.buffers) if spec.role is BufferRole.INPUT}
        self._parameters = tuple(
            (MutableParameter if spec.mutable else Parameter)(
                compiled.name, spec, _POINTERS_BEFORE_BUFFERS + slots[spec.index]
            )
            for spec in compiled.role(BufferRole.INPUT)
        )

        pointer_count = _POINTERS_BEFORE_BUFFERS + len(compiled.buffers)
        self._pack_pointers = struct.Struct(f"{pointer_count}P").pack
        self._pointers = [0] * pointer_count
        self._kept: list[Array] = []  # the memory of constants and weights
        self._place_constants(weights)

        self._advance = lru_cache(CACHED_LAYOUTS)(self._plan.advance)

        # each segment's function, and how many dims it computes; a packed array goes in as a bytes object
        self._segments = tuple(
            (ENTRY_PROTOTYPE(code.address(segment.symbol)), len(segment.defines)) for segment in compiled.segments
        )
        self._words_type = ctypes.c_int64 * (STATUS_WORDS + len(compiled.computed_dims))
        self._idle_words: list[ctypes.Array[ctypes.c_int64]] = []
        self._arena_bytes = compiled.thread_arena_bytes * self._threads

    def save(self, path: str | os.PathLike[str]) -> None:
        write_precompiled(self._compiled, Path(path))

    def execute(self, *arguments: Any) -> list[Buffer]:
        if self._debug is not None and self._debug.nan_check:
            return self._checked_model().execute(*arguments)
        if len(arguments) != len(self._parameters):
            check_count(self.name, self._input_names, len(arguments))
        pointers = self._pointers.copy()
        shapes = []
        arrays = []  # keeps copies alive until the call is over
        for parameter, argument in zip(self._parameters, arguments, strict=False):  # strict costs 0.1 us
            array, pointers[parameter.position] = parameter.accept(argument)
            arrays.append(array)
            shapes.append(array.shape)
        if self._changes_inputs:
            check_apart(self.name, self._parameters, arrays, self._kept)
        layout = self._start(tuple(shapes))
        try:
            words = self._idle_words.pop()
        except IndexError:
            words = self._words_type()
            words[STATUS_THREADS] = self._threads
        shown = self._print_target() if self._compiled.prints else None
        if shown is not None:
            outputs = self._run_printing(layout, pointers, words, shown)
            shown.finish()
        elif self._compiled.has_loops:
            outputs = self._run_watched(layout, pointers, words)
        else:
            outputs = self._run(layout, pointers, words)
        # After an exception the words are dropped: they may hold the failure. Else they are as before.
        self._idle_words.append(words)
        return outputs

    def _run_printing(
        self, layout: Layout, pointers: list[int], words: ctypes.Array[ctypes.c_int64], target: PrintTarget
    ) -> list[Buffer]:
        """As `_run`, for a graph that prints: native code calls back to do so."""
        callback = PrintCallback(self._compiled.prints, target)
        words[STATUS_PRINT] = callback.address
        outputs = self._run_watched(layout, pointers, words)
        words[STATUS_PRINT] = 0
        callback.finish()
        return outputs

    def _run_watched(self, layout: Layout, pointers: list[int], words: ctypes.Array[ctypes.c_int64]) -> list[Buffer]:
        """As `_run`; Ctrl-C ends the loops of the graph."""
        loops = LoopWatch(words)
        try:
            return self._run(layout, pointers, words)
        finally:
            loops.finish()  # what ended the loops stands in the place of their failure

    def _run(self, layout: Layout, pointers: list[int], words: ctypes.Array[ctypes.c_int64]) -> list[Buffer]:
        pointers[0] = ctypes.addressof(words)
        pointers[1] = pointers[0] + STATUS_WORDS * 8
        outputs: list[Buffer | None] = [None] * self._output_count
        arenas: list[Block] = []
        read = STATUS_WORDS
        try:
            if self._arena_bytes:
                arenas.append(self._take(self._arena_bytes, "the blocks of its kernels"))
                words[STATUS_ARENAS] = arenas[0].address
            for entry, defined in self._segments:
                if layout.intermediates:
                    arenas.append(self._place_intermediates(layout, pointers))
                for placement in layout.outputs:
                    outputs[placement.spec.index] = self._place_output(placement, pointers)
                entry(self._pack_pointers(*pointers), layout.extents)
                if words[STATUS_LAUNCH]:
                    raise self._failure(words)
                if defined:
                    layout = self._advance(layout, tuple(words[read : read + defined]))
                    read += defined
        finally:
            for arena in arenas:
                MEMORY.give(arena)
        return outputs  # type: ignore[return-value]  # ShapePlan made sure that each output has its stage

    def _place_output(self, placement: Placement, pointers: list[int]) -> Buffer:
        spec, nbytes = placement.spec, placement.nbytes
        make = aligned_array if nbytes < SMALLEST_LENT else MEMORY.array
        try:
            array, address = make(placement.shape, placement.dtype, nbytes)
        except MemoryError:
            raise MemoryError(
                f"model '{self.name}': {describe(spec)} of shape {shape_text(placement.shape)} needs "
                f"{placement.nbytes} bytes, and the system refuses them"
            ) from None
        pointers[placement.slot + _POINTERS_BEFORE_BUFFERS] = address
        return wrap(array, spec.dtype, _HOST, address)

    def _place_intermediates(self, layout: Layout, pointers: list[int]) -> Block:
        arena = self._take(layout.arena_bytes, "the intermediate results")
        for placement in layout.intermediates:
            pointers[placement.slot + _POINTERS_BEFORE_BUFFERS] = arena.address + placement.offset
        return arena

    def _take(self, nbytes: int, what: str) -> Block:
        try:
            return MEMORY.take(nbytes)
        except MemoryError:
            message = f"model '{self.name}': {what} need {nbytes} bytes, and the system refuses them"
            raise MemoryError(message) from None

    def _place_constants(self, weights: Mapping[str, Array]) -> None:
        for slot, spec in enumerate(self._compiled.buffers):
            if spec.role is BufferRole.CONSTANT:
                assert spec.data is not None, f"constant {spec.name} has no content"
                array, address = aligned_array((len(spec.data),), np.dtype(np.uint8), len(spec.data))
                array[...] = np.frombuffer(spec.data, np.uint8)
            elif spec.role is BufferRole.WEIGHT:
                array = weights[spec.name]
                address = address_of(array)
            else:
                continue
            self._kept.append(array)
            self._pointers[slot + _POINTERS_BEFORE_BUFFERS] = address

    def _failure(self, words: ctypes.Array[ctypes.c_int64]) -> ExecutionError:
        if words[STATUS_LAUNCH] == STOPPED:
            return ExecutionError(f"model '{self.name}': its loops were ended")
        site = self._compiled.launches[words[STATUS_LAUNCH] - 1][words[STATUS_CHECK]]
        values = words[STATUS_VALUES : STATUS_VALUES + site.message.count("{}")]
        grid = words[STATUS_GRID : STATUS_GRID + site.rank] if site.rank <= MOST_GRID_WORDS else ()
        return failed_check(self.name, site, words[STATUS_PROGRAM], values, grid)
