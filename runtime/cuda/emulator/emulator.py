"""The emulated device: memory, copies and modules."""

from __future__ import annotations

import numpy as np

from ..driver import Array
from .errors import DeviceMemoryError
from .global_memory import GlobalMemory
from .module import Checks, EmulatedModule
from .types import U8


class Emulator:
    """A device that runs PTX with numpy and finds what a GPU would leave undefined.

    Implements `runtime.cuda.driver.Driver`. Launches are over when `launch` returns. Threads may share a device: its
    methods, and launches, wait for each other.

    Args:
        memory_bytes: how much its allocations may take together.
        detect_races: whether unordered accesses of several threads to the same bytes are faults.
        detect_uninitialized: whether reading shared memory that nobody wrote is one; needs ``detect_races``.
        max_steps: how many instructions a batch of blocks may execute before the launch is given up.
    """

    def __init__(
        self,
        memory_bytes: int = 1 << 32,
        detect_races: bool = True,
        detect_uninitialized: bool = True,
        max_steps: int = 50_000_000,
    ) -> None:
        self.memory = GlobalMemory(memory_bytes)
        self.checks = Checks(detect_races, detect_uninitialized, max_steps)

    @property
    def name(self) -> str:
        return "emulated GPU"

    def free_bytes(self) -> int:
        """What its allocations may still take."""
        return self.memory.capacity - self.memory.used

    def alloc(self, nbytes: int) -> int:
        """Fresh memory, filled with 0xFF.

        Raises:
            OutOfDeviceMemoryError: that many bytes are not free.
        """
        with self.memory.lock:
            return self.memory.allocate(nbytes).address

    def free(self, address: int) -> None:
        """Gives memory back. Its addresses are never used again, so a later access is found.

        Raises:
            DeviceMemoryError: no allocation starts there.
        """
        with self.memory.lock:
            self.memory.free(address)

    def copy_to_device(self, destination: int, source: Array) -> None:
        """Copies a C-contiguous host array; raises DeviceMemoryError outside of allocations."""
        data = _bytes_of(source, "copy_to_device()")
        with self.memory.lock:
            self.memory.bytes_of(destination, data.size, "copy_to_device()")[...] = data

    def copy_to_host(self, destination: Array, source: int) -> None:
        """Fills a C-contiguous host array; raises DeviceMemoryError outside of allocations."""
        data = _bytes_of(destination, "copy_to_host()")
        with self.memory.lock:
            data[...] = self.memory.bytes_of(source, data.size, "copy_to_host()")

    def copy_within(self, destination: int, source: int, nbytes: int) -> None:
        """Copies between two places, which may overlap."""
        with self.memory.lock:
            data = self.memory.bytes_of(source, nbytes, "copy_within()").copy()
            self.memory.bytes_of(destination, nbytes, "copy_within()")[...] = data

    def memset(self, address: int, value: int, nbytes: int) -> None:
        """Sets bytes; ``value`` is 0 to 255."""
        if not 0 <= value <= 255:
            raise DeviceMemoryError(f"memset() sets bytes, from 0 to 255, not {value}")
        with self.memory.lock:
            self.memory.bytes_of(address, nbytes, "memset()")[...] = value

    def load_module(self, ptx: str) -> EmulatedModule:
        """Parses and decodes a module.

        Raises:
            PtxSyntaxError, UnsupportedPtxError, UnroundedOperationError: with the line and its text.
        """
        with self.memory.lock:
            return EmulatedModule(ptx, self.memory, self.checks)

    def synchronize(self) -> None:
        """Nothing is ever under way."""


def _bytes_of(array: Array, what: str) -> Array:
    """The bytes of a host array, in place."""
    if not array.flags.c_contiguous:
        raise DeviceMemoryError(f"{what} takes a C-contiguous array, not one with strides {array.strides}")
    return np.ndarray((array.nbytes,), U8, array) if array.nbytes else np.empty(0, U8)
