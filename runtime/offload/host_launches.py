"""Launches of kernels on the host, for graphs on two devices: each kernel is a compiled function of its arguments."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

import numpy as np

from halfulp.compiler.artifact import (
    STATUS_ARENAS,
    STATUS_CHECK,
    STATUS_LAUNCH,
    STATUS_PRINT,
    STATUS_PROGRAM,
    STATUS_THREADS,
    STATUS_VALUES,
    STATUS_WORDS,
)
from halfulp.compiler.interpreter.frame import Value
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.ptx_artifact import HostKernel

from ..loader import ENTRY_PROTOTYPE, NativeLibrary
from ..memory import Array, address_of, align_up
from ..pool import MEMORY
from ..print_callback import PrintCallback, PrintTarget
from .launches import Failure


class HostProgram:
    """One kernel of a graph, compiled for the host and loaded."""

    def __init__(self, kernel: HostKernel, threads: int) -> None:
        self._library = NativeLibrary(kernel.object_code, [kernel.symbol])
        self._call = ENTRY_PROTOTYPE(self._library.address(kernel.symbol))
        self._prints = kernel.prints
        self._threads = threads
        self._arena_bytes = align_up(kernel.thread_arena_bytes) * threads

    def launch(
        self, grid: Sequence[int], arguments: Sequence[Value], target: PrintTarget | None = None
    ) -> Failure | None:
        """Runs the kernel over a grid of at most 2^48 programs; the check that failed, if one did.

        ``target`` takes what the kernel prints.
        """
        callback = None if target is None or not self._prints else PrintCallback(self._prints, target)
        failure = self._launch(grid, arguments, 0 if callback is None else callback.address)
        if callback is not None:
            callback.finish()
        return failure

    def _launch(self, grid: Sequence[int], arguments: Sequence[Value], print_address: int) -> Failure | None:
        arrays = [_in_memory(argument) for argument in arguments]
        arrays += [np.array([size], np.int64) for size in grid]
        words = (ctypes.c_int64 * (STATUS_WORDS + 1))()
        words[STATUS_THREADS] = self._threads
        words[STATUS_PRINT] = print_address
        status = ctypes.addressof(words)
        pointers = [status, status + STATUS_WORDS * 8, *map(address_of, arrays)]
        extents = [size for array in arrays for size in array.shape]
        arena = MEMORY.take(self._arena_bytes) if self._arena_bytes else None
        try:
            words[STATUS_ARENAS] = 0 if arena is None else arena.address
            self._call(struct.pack(f"{len(pointers)}P", *pointers), struct.pack(f"{len(extents)}q", *extents))
        finally:
            if arena is not None:
                MEMORY.give(arena)
        if not words[STATUS_LAUNCH]:
            return None
        return Failure(words[STATUS_PROGRAM], words[STATUS_CHECK], tuple(words[STATUS_VALUES : STATUS_VALUES + 4]))


def _in_memory(value: Value) -> Array:
    """The array of a reference; a scalar as an array of one element."""
    return value.array if isinstance(value, Reference) else np.ascontiguousarray(value).reshape(1)
