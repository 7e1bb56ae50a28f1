"""The device's own memory: allocations at addresses that mean nothing to the host.

An address is never given out twice, so that a use after free is always found. Fresh memory is filled with 0xFF, which
is NaN in every float type and -1 as an integer: what a kernel forgot to write shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from threading import RLock

import numpy as np

from .errors import DeviceMemoryError, OutOfDeviceMemoryError
from .types import RAW, U8, Array

FIRST_ADDRESS = 0x00D0_0000_0000_0000
"""No address of a host process: x86-64 and AArch64 give processes at most 56 bits, of which the highest are clear."""
ALIGNMENT = 256
"""Bytes, as cudaMalloc."""
_GUARD = 4096  # bytes between two allocations that belong to neither
_FILL = 0xFF
_REMEMBERED = 1024  # freed allocations that messages can still name


@dataclass(eq=False)
class Allocation:
    """A range of addresses and its bytes; ``words`` are the same bytes as arrays of 1, 2, 4 and 8 bytes an element."""

    address: int
    nbytes: int
    data: Array
    label: str = ""
    words: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = {size: self.data.view(RAW[8 * size]) for size in (1, 2, 4, 8)}

    @property
    def end(self) -> int:
        return self.address + self.nbytes

    def __str__(self) -> str:
        name = f"variable {self.label!r}" if self.label else "the allocation"
        return f"{name} of {self.nbytes} bytes at {self.address:#x}"


class GlobalMemory:
    """All allocations, and the limit on their sum."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.allocations: dict[int, Allocation] = {}
        self.addresses: list[int] = []  # sorted
        self.freed: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self.lock = RLock()  # of the whole device: what it is asked for, by any thread, happens one after the other
        self._next = FIRST_ADDRESS

    def allocate(self, nbytes: int, label: str = "") -> Allocation:
        """Memory that is aligned to 256 bytes; 0 bytes are an address that nothing may read."""
        if nbytes < 0:
            raise DeviceMemoryError(f"alloc() takes a number of bytes, not {nbytes}")
        if self.used + nbytes > self.capacity:
            raise OutOfDeviceMemoryError(
                f"the emulated device is out of memory: {nbytes} bytes asked for, {self.capacity - self.used} of "
                f"{self.capacity} free; free buffers, or make the device with more memory_bytes"
            )
        # whole words up to the widest access, so that all views exist; numpy aligns to 16 bytes
        allocation = Allocation(self._next, nbytes, np.full(-(-nbytes // 16) * 16, _FILL, U8), label)
        self.allocations[allocation.address] = allocation
        self.addresses.append(allocation.address)  # stays sorted: addresses only grow
        self.used += nbytes
        self._next += -(-(nbytes + _GUARD) // ALIGNMENT) * ALIGNMENT
        return allocation

    def free(self, address: int) -> None:
        """Gives an allocation back."""
        allocation = self.allocations.pop(address, None)
        if allocation is None:
            raise DeviceMemoryError(f"free({address:#x}): {self.describe(address)}; free what alloc() returned, once")
        self.addresses.remove(address)
        self.used -= allocation.nbytes
        self.freed.append((address, allocation.nbytes))

    def find(self, address: int) -> Allocation | None:
        """The allocation that starts at or below ``address`` and is nearest; it may end before."""
        place = bisect_right(self.addresses, address)
        return self.allocations[self.addresses[place - 1]] if place else None

    def bytes_of(self, address: int, nbytes: int, what: str) -> Array:
        """The bytes of a range that must lie in one allocation."""
        allocation = self.find(address)
        if allocation is None or address + nbytes > allocation.end or nbytes < 0:
            raise DeviceMemoryError(
                f"{what}: {nbytes} bytes at {address:#x} are not inside an allocation: {self.describe(address)}"
            )
        start = address - allocation.address
        return allocation.data[start : start + nbytes]

    def describe(self, address: int) -> str:
        """What lies at or next to an address, for messages."""
        for start, nbytes in self.freed:
            if start <= address < start + nbytes or address == start:
                return f"it was freed: the allocation of {nbytes} bytes at {start:#x}"
        place = bisect_right(self.addresses, address)
        near = [self.allocations[self.addresses[i]] for i in (place - 1, place) if 0 <= i < len(self.addresses)]
        if not near:
            return "there are no allocations"
        nearest = min(near, key=lambda a: a.address - address if address < a.address else address - a.end)
        if address < nearest.address:
            return f"it is {nearest.address - address} bytes before {nearest}"
        if address < nearest.end:
            return f"it is {nearest.end - address} bytes before the end of {nearest}"
        return f"it is {address - nearest.end} bytes after the end of {nearest}"
