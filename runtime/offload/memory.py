"""The memory of an accelerator: allocations that live as long as somebody holds them."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..cuda.driver import Driver
from ..errors import OutOfDeviceMemoryError
from ..memory import Array

_BYTE = np.dtype(np.uint8)


class DeviceMemory:
    """``nbytes`` from ``address`` on; given back when the object is gone. ``is_held``: it has not been given back."""

    __slots__ = ("_freed", "address", "heap", "is_held", "nbytes")

    def __init__(self, heap: DeviceHeap, address: int, nbytes: int, freed: deque[int]) -> None:
        self.heap = heap
        self.address = address
        self.nbytes = nbytes
        self._freed = freed
        self.is_held = True

    def release(self) -> None:
        """Gives the memory back at once, whoever holds the object: nothing may use it any more."""
        if self.is_held:
            self.is_held = False
            self._freed.append(self.address)

    def __del__(self) -> None:
        self.release()

    def write(self, array: Array) -> None:
        """Fills it from a C-contiguous host array of as many bytes."""
        if self.nbytes:
            self.heap.driver.copy_to_device(self.address, _bytes(array))

    def read(self, array: Array, offset: int = 0) -> None:
        """Fills a C-contiguous host array from it, from byte ``offset`` on."""
        if array.nbytes:
            self.heap.driver.copy_to_host(_bytes(array), self.address + offset)

    def zero(self) -> None:
        """Sets all bytes to 0."""
        if self.nbytes:
            self.heap.driver.memset(self.address, 0, self.nbytes)

    def copy_from(self, other: DeviceMemory) -> None:
        """Copies all of ``other``, which is as large: on the device, or through the host from another one."""
        if not self.nbytes:
            return
        if other.heap is self.heap:
            self.heap.driver.copy_within(self.address, other.address, self.nbytes)
            return
        passed = np.empty(self.nbytes, _BYTE)
        other.read(passed)
        self.write(passed)


class DeviceHeap:
    """All memory of one accelerator. ``architecture`` is what graphs are compiled for on it, ``device`` its name.

    An object may be dropped anywhere, even in the middle of a call of the driver on the same thread. So its memory is
    only noted then, and given back before the next allocation.
    """

    def __init__(self, driver: Driver, architecture: str, device: str) -> None:
        self.driver = driver
        self.architecture = architecture
        self.device = device
        self._freed: deque[int] = deque()

    def allocate(self, nbytes: int, subject: str) -> DeviceMemory:
        """Fresh memory with arbitrary content. ``subject``: what needs it, for messages.

        Raises:
            OutOfDeviceMemoryError: the device has less.
        """
        self.trim()
        try:
            address = self.driver.alloc(nbytes)
        except MemoryError:
            raise self._out_of_memory(nbytes, subject) from None
        return DeviceMemory(self, address, nbytes, self._freed)

    def upload(self, array: Array, subject: str) -> DeviceMemory:
        """A copy of a C-contiguous host array. Raises as `allocate`."""
        memory = self.allocate(array.nbytes, subject)
        memory.write(array)
        return memory

    def trim(self) -> None:
        """Gives back what nobody holds any more."""
        while self._freed:
            try:
                address = self._freed.popleft()
            except IndexError:  # another thread was quicker
                return
            self.driver.free(address)

    def _out_of_memory(self, nbytes: int, subject: str) -> OutOfDeviceMemoryError:
        free = self.driver.free_bytes()
        known = "it has less" if free is None else f"only {free} are free"
        return OutOfDeviceMemoryError(
            f"{subject} needs {nbytes} bytes on {self.device}, and {known}; drop buffers that are no longer used",
            nbytes,
            free,
        )


def _bytes(array: Array) -> Array:
    """The bytes of a C-contiguous array, in place; of any type, rank 0 too."""
    flat: Any = array.reshape(-1)
    return flat.view(_BYTE)  # type: ignore[no-any-return]
