"""What a device that runs PTX offers: memory, copies, modules and launches.

The driver of an NVIDIA GPU and the emulator both do, so that everything above them is the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Triple: TypeAlias = tuple[int, int, int]
Argument: TypeAlias = "int | float | bytes | np.generic[Any]"
"""A kernel's argument: a number for a scalar parameter (an address is an int), bytes for an array of them."""


class LoadedModule(Protocol):
    """PTX that is on the device."""

    def launch(
        self, kernel: str, grid: Triple, block: Triple, shared_bytes: int, arguments: Sequence[Argument]
    ) -> None:
        """Starts a kernel.

        Args:
            kernel: the name of an ``.entry``.
            grid: numbers of blocks along x, y and z, each at least 1.
            block: numbers of threads along x, y and z, at most 1024 in all.
            shared_bytes: the size of the kernel's ``.extern .shared`` array.
            arguments: one for each parameter, in order.
        """
        ...

    def unload(self) -> None:
        """Takes the module, and its variables, off the device."""
        ...


class Driver(Protocol):
    """One device. Addresses are numbers that mean nothing to the host."""

    @property
    def name(self) -> str:
        """What the device calls itself."""
        ...

    def free_bytes(self) -> int | None:
        """How much memory is free; None if that cannot be said."""
        ...

    def alloc(self, nbytes: int) -> int:
        """The address of fresh memory, a multiple of 256; its content is arbitrary.

        Raises:
            MemoryError: there is not so much.
        """
        ...

    def free(self, address: int) -> None:
        """Gives back what `alloc` returned."""
        ...

    def copy_to_device(self, destination: int, source: Array) -> None:
        """Copies the bytes of a C-contiguous host array."""
        ...

    def copy_to_host(self, destination: Array, source: int) -> None:
        """Fills a C-contiguous host array."""
        ...

    def copy_within(self, destination: int, source: int, nbytes: int) -> None:
        """Copies between two places of the device."""
        ...

    def memset(self, address: int, value: int, nbytes: int) -> None:
        """Sets each byte to ``value``, 0 to 255."""
        ...

    def load_module(self, ptx: str) -> LoadedModule:
        """Makes kernels ready to launch."""
        ...

    def synchronize(self) -> None:
        """Waits until all copies and launches are done."""
        ...
