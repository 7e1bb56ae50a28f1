"""`DeviceArray`: a buffer on an accelerator as the interpreter of tile IR sees it.

The interpreter's references (`halfulp.compiler.interpreter.memory.Reference`) do what they do with an array by its
shape, so the ops that make views of buffers work on device memory as they are. Only elements are out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from halfulp.compiler.device import DeviceRef
from halfulp.compiler.interpreter.memory import Reference

from ..memory import Array
from .memory import DeviceMemory


@dataclass(frozen=True)
class DeviceArray:
    """Memory of ``device`` as a C-ordered array; ``dtype`` is what tile IR has, where integers are signed."""

    memory: DeviceMemory
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: DeviceRef

    flags = SimpleNamespace(c_contiguous=True)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def reshape(self, shape: int | tuple[int, ...] | list[int]) -> DeviceArray:
        """The same memory under another shape; -1 is one axis of all elements."""
        sizes = (self.size,) if shape == -1 else tuple(cast("list[int]", shape))
        assert prod(sizes) == self.size
        return DeviceArray(self.memory, sizes, self.dtype, self.device)

    def to_host(self) -> Array:
        """A copy of all elements."""
        copy = np.empty(self.shape, self.dtype)
        self.memory.read(copy)
        return copy

    def reference(self) -> Reference:
        """All of it, as an argument of the entry function."""
        return Reference.whole(cast(Array, self))


def device_array(reference: Reference) -> DeviceArray | None:
    """The device memory that a reference is a part of; None for host memory."""
    held: object = reference.array
    return held if isinstance(held, DeviceArray) else None
