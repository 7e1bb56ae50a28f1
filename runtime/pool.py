"""Memory that is used again: arenas of executions that are over, and outputs that nobody holds any more.

Memory fresh from the system costs five times what it costs to fill, since every page of it faults first. So a block is
kept when it is free, up to a limit, and handed out again for a size of its class. A block lent to an array comes back
when the last view of the array is gone, never before: no result shares memory with a later one.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from .memory import Array, allocate

IDLE_LIMIT = 512 << 20
"""Bytes of free blocks that are kept; beyond it, those that were freed first go back to the system."""

SMALLEST_LENT = 64 << 10
"""Bytes from which on an array's memory is lent. Below, the C library keeps pages of its own, and is quicker."""

_CLASSES_PER_DOUBLING = 8


class Block:
    """Memory from the system: ``capacity`` bytes from ``address`` on, which is aligned."""

    __slots__ = ("_storage", "address", "capacity")

    def __init__(self, capacity: int) -> None:
        self._storage, _, self.address = allocate(capacity)
        self.capacity = capacity


class _Loan(weakref.ref[Any]):
    """A block lent to an object; it ends when the object does."""

    __slots__ = ("block",)

    block: Block


def size_class(nbytes: int) -> int:
    """The capacity of the block for ``nbytes``: at most an eighth more."""
    step = max((1 << max(nbytes - 1, 0).bit_length()) // (2 * _CLASSES_PER_DOUBLING), 64)
    return -(-nbytes // step) * step


class MemoryPool:
    """Blocks of host memory, for all models of the process and from any thread."""

    def __init__(self, limit: int = IDLE_LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._idle: OrderedDict[int, Block] = OrderedDict()  # by address, the one freed first in front
        self._by_class: dict[int, list[int]] = {}
        self._idle_bytes = 0
        self._loans: dict[int, _Loan] = {}

    @property
    def idle_bytes(self) -> int:
        """Bytes of blocks that are free and kept."""
        return self._idle_bytes

    def take(self, nbytes: int) -> Block:
        """A block of at least ``nbytes``; its content is arbitrary.

        Raises:
            MemoryError: the system refuses that many bytes.
        """
        capacity = size_class(nbytes)
        with self._lock:
            if addresses := self._by_class.get(capacity):
                block = self._idle.pop(addresses.pop())
                self._idle_bytes -= capacity
                return block
        try:
            return Block(capacity)
        except MemoryError:
            self.trim(0)
            return Block(nbytes)

    def give(self, block: Block) -> None:
        """Takes back a block that nobody uses any more.

        This runs wherever Python drops an array, even in the middle of `take` on the same thread. So it must not wait
        for the lock: where that is taken, the block goes back to the system.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._keep(block)
            finally:
                self._lock.release()

    def trim(self, limit: int) -> None:
        """Gives free blocks back to the system until ``limit`` bytes of them are left."""
        with self._lock:
            self._shrink(limit)

    def after_fork(self) -> None:
        """Starts over without free blocks in the child of a fork, where the lock's owner may be gone."""
        self._lock = threading.Lock()
        self._idle.clear()
        self._by_class.clear()
        self._idle_bytes = 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> tuple[Array, int]:
        """An aligned C-contiguous array with arbitrary content, and its address; ``nbytes`` is its size.

        Raises:
            MemoryError: the system refuses that many bytes.
        """
        block = self.take(nbytes)
        # numpy keeps the object that a buffer belongs to alive, with every view; a view of an array is not enough:
        # numpy would keep the array instead.
        memory: Any = (ctypes.c_char * nbytes).from_address(block.address)
        loan = _Loan(memory, self._ended)
        loan.block = block
        self._loans[id(loan)] = loan
        return np.ndarray(shape, dtype, memory), block.address

    def _ended(self, loan: weakref.ref[Any]) -> None:
        assert isinstance(loan, _Loan)
        del self._loans[id(loan)]
        self.give(loan.block)

    def _keep(self, block: Block) -> None:
        if block.capacity > self._limit or block.capacity != size_class(block.capacity):
            return
        self._idle[block.address] = block
        self._by_class.setdefault(block.capacity, []).append(block.address)
        self._idle_bytes += block.capacity
        self._shrink(self._limit)

    def _shrink(self, limit: int) -> None:
        while self._idle_bytes > limit:
            address, block = self._idle.popitem(last=False)
            self._by_class[block.capacity].remove(address)
            self._idle_bytes -= block.capacity


MEMORY = MemoryPool()
"""The pool of this process."""

os.register_at_fork(after_in_child=MEMORY.after_fork)
