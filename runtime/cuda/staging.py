"""Copies between the host's memory and a GPU's, through two pinned blocks in turn.

The GPU reads and writes pinned memory by itself; from other memory the driver would copy first, and wait.
"""

from __future__ import annotations

import ctypes
import threading

from .calls import Calls
from .driver import Array

BLOCK_BYTES = 4 << 20
"""Enough that the time to start a copy does not count."""


class Staging:
    """The pinned blocks of one GPU; made when they are first needed."""

    def __init__(self, calls: Calls, stream: object) -> None:
        self._calls = calls
        self._stream = stream
        self._lock = threading.Lock()
        self._blocks: list[int] = []
        self._events: list[object] = []

    def to_device(self, destination: int, source: Array) -> None:
        """Copies a C-contiguous array. It may be changed afterwards, though the GPU may still be at work."""
        start = source.ctypes.data
        with self._lock:
            self._prepare()
            for number, offset in enumerate(range(0, source.nbytes, BLOCK_BYTES)):
                size, side = min(BLOCK_BYTES, source.nbytes - offset), number % 2
                self._calls("cuEventSynchronize", self._events[side])
                ctypes.memmove(self._blocks[side], start + offset, size)
                self._calls("cuMemcpyHtoDAsync", destination + offset, self._blocks[side], size, self._stream)
                self._calls("cuEventRecord", self._events[side], self._stream)

    def to_host(self, destination: Array, source: int) -> None:
        """Fills a C-contiguous array, after all that the stream was given before."""
        start, pieces = destination.ctypes.data, range(0, destination.nbytes, BLOCK_BYTES)
        sizes = [min(BLOCK_BYTES, destination.nbytes - offset) for offset in pieces]
        with self._lock:
            self._prepare()
            for number, offset in enumerate(pieces):
                side = number % 2
                self._calls("cuMemcpyDtoHAsync", self._blocks[side], source + offset, sizes[number], self._stream)
                self._calls("cuEventRecord", self._events[side], self._stream)
                if number:
                    self._take(start, number - 1, sizes)
            if sizes:
                self._take(start, len(sizes) - 1, sizes)

    def _take(self, start: int, number: int, sizes: list[int]) -> None:
        """Copies a piece to where it belongs as soon as it has come."""
        self._calls("cuEventSynchronize", self._events[number % 2])
        ctypes.memmove(start + number * BLOCK_BYTES, self._blocks[number % 2], sizes[number])

    def _prepare(self) -> None:
        while len(self._blocks) < 2:
            self._events.append(self._calls("cuEventCreate", 0))
            self._blocks.append(int(self._calls("cuMemHostAlloc", BLOCK_BYTES, 0)))
