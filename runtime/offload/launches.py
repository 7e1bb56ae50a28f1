"""Launches of compiled PTX (the interface is described in ``compiler/codegen/ptx``)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from halfulp.compiler.interpreter.frame import Value
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.ptx_artifact import NO_FAILURE, CompiledPtx, PtxKernel

from ..device import Device
from .array import device_array
from .memory import DeviceMemory

MOST_BLOCKS = 4096
"""Blocks of one launch, which take several tasks each where there are more; no GPU runs so many at once."""

SCRATCH_LIMIT = 256 << 20
"""Bytes of scratch memory that a launch may take; it has fewer blocks instead, but one at least."""


@dataclass(frozen=True)
class Failure:
    """A check that failed: its program and number, and what it recorded."""

    program: int
    check: int
    values: tuple[int, ...]


class PtxProgram:
    """The kernels of one compiled graph on one accelerator."""

    def __init__(self, compiled: CompiledPtx, device: Device) -> None:
        self.device = device
        self._name = compiled.name
        self._kernels = {kernel.name: kernel for kernel in compiled.kernels}
        self._module = device.heap.driver.load_module(compiled.ptx)
        weakref.finalize(self, self._module.unload).atexit = False

    def launch(self, name: str, grid: Sequence[int], arguments: Sequence[Value]) -> Failure | None:
        """Runs a kernel over a grid of at most 2^48 programs; the check that failed, if one did.

        Host memory among the arguments is read only: a copy goes to the device for the launch.

        Raises:
            OutOfDeviceMemoryError: there is no memory for what the launch needs beside its arguments.
        """
        kernel = self._kernels[name]
        tasks = kernel.tasks(grid)
        if not tasks:
            return None
        blocks = _blocks(kernel, tasks)
        status = self._status(kernel, blocks)
        held = [status, self._take(blocks * kernel.scratch_bytes, kernel, "scratch memory")]
        parameters: list[Any] = [0 if memory is None else memory.address for memory in held]
        parameters += grid
        for argument in arguments:
            if isinstance(argument, Reference):
                memory = self._memory(argument, kernel)
                held.append(memory)
                parameters += [memory.address, *argument.array.shape]
            else:
                parameters.append(argument[()])
        self._module.launch(kernel.symbol, (blocks, 1, 1), (kernel.threads, 1, 1), 0, parameters)
        return None if status is None else _failure(kernel, status, grid, blocks)

    def _status(self, kernel: PtxKernel, blocks: int) -> DeviceMemory | None:
        memory = self._take(kernel.status_words(blocks) * 8, kernel, "the results of checks")
        if memory is not None:
            memory.heap.driver.memset(memory.address, 0xFF, 8)  # NO_FAILURE
        return memory

    def _take(self, nbytes: int, kernel: PtxKernel, what: str) -> DeviceMemory | None:
        if not nbytes:
            return None
        return self.device.heap.allocate(nbytes, f"model '{self._name}': kernel '{kernel.name}': {what}")

    def _memory(self, reference: Reference, kernel: PtxKernel) -> DeviceMemory:
        array = device_array(reference)
        if array is not None:
            return array.memory
        subject = f"model '{self._name}': kernel '{kernel.name}': a copy of an operand on the host"
        return self.device.heap.upload(np.ascontiguousarray(reference.array), subject)


def _blocks(kernel: PtxKernel, tasks: int) -> int:
    fitting = SCRATCH_LIMIT // kernel.scratch_bytes if kernel.scratch_bytes else MOST_BLOCKS
    return min(tasks, MOST_BLOCKS, max(fitting, 1))


def _failure(kernel: PtxKernel, status: DeviceMemory, grid: Sequence[int], blocks: int) -> Failure | None:
    first = np.empty(1, np.uint64)
    status.read(first)
    found = None if int(first[0]) == NO_FAILURE else kernel.failure(int(first[0]), grid, blocks)
    if found is None:
        return None
    program, check, word = found
    values = np.empty(4, np.int64)
    status.read(values, 8 * word)
    return Failure(program, check, tuple(values.tolist()))


def programs_of(grid: Sequence[int]) -> int:
    """How many programs a grid has; none if a size is zero or less."""
    return prod(grid) if all(size > 0 for size in grid) else 0
