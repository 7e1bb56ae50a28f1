"""`DeviceBuffer`: a tensor in the memory of an accelerator.

It is a `Buffer` whose elements numpy cannot see. Nothing moves them but ``.to(device)``; what would need them on the
host says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn, SupportsIndex

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphTypeError

from ..arrays import contiguous, shape_text
from ..buffer import Buffer, checked_dtype, checked_nbytes, checked_shape, wrap
from ..device import CPU, Device
from ..memory import Array, aligned_array
from .memory import DeviceMemory


class DeviceBuffer(Buffer):
    """A dense tensor on an accelerator, in C order. ``Buffer(dtype, shape, device)`` makes one that holds zeros."""

    __slots__ = ("_memory", "_shape")

    _memory: DeviceMemory
    _shape: tuple[int, ...]

    def __init__(self, dtype: DType | Any, shape: Iterable[SupportsIndex], device: Device) -> None:
        element, sizes = checked_dtype(dtype), checked_shape(shape)
        memory = device.heap.allocate(checked_nbytes(sizes, element), f"a buffer {element} {shape_text(sizes)}")
        memory.zero()
        self._memory, self._shape, self._dtype, self._device = memory, sizes, element, device

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def rank(self) -> int:
        return len(self._shape)

    @property
    def num_elements(self) -> int:
        return math.prod(self._shape)

    @property
    def address(self) -> int:
        """Where the first element lies on the device; the host cannot read there."""
        return self._memory.address

    @property
    def memory(self) -> DeviceMemory:
        """The memory itself."""
        return self._memory

    def _moved(self, device: Device) -> Buffer:
        if not device.is_host:
            return self._copied(device)
        array, address = aligned_array(self._shape, self._dtype.to_numpy(), self._memory.nbytes)
        self._memory.read(array)
        return wrap(array, self._dtype, device, address)

    def copy(self) -> Buffer:
        """A buffer of its own on the same device, with the same elements."""
        return self._copied(self._device)

    def _copied(self, device: Device) -> DeviceBuffer:
        memory = device.heap.allocate(self._memory.nbytes, f"a buffer {self._dtype} {shape_text(self._shape)}")
        memory.copy_from(self._memory)
        return wrap_memory(memory, self._dtype, self._shape, device)

    def to_numpy(self) -> Array:
        self._refuse("to_numpy()", GraphTypeError)

    def item(self) -> bool | int | float:
        self._refuse("item()", GraphTypeError)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._refuse("a numpy array", GraphTypeError)

    def __dlpack__(self, **arguments: Any) -> Any:
        self._refuse("DLPack", BufferError)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._refuse("DLPack", BufferError)

    def __reduce__(self) -> Any:
        self._refuse("pickling", GraphTypeError)

    def _refuse(self, what: str, kind: type[Exception]) -> NoReturn:
        raise kind(f"{what} needs host memory, but {self!r} is on an accelerator; copy it with .to(CPU()) first")

    def __repr__(self) -> str:
        return f"Buffer({self._dtype}, {shape_text(self._shape)}, {self._device})"


def wrap_memory(memory: DeviceMemory, dtype: DType, shape: tuple[int, ...], device: Device) -> DeviceBuffer:
    """The buffer of memory that nobody else writes to."""
    buffer = object.__new__(DeviceBuffer)
    buffer._memory, buffer._shape, buffer._dtype, buffer._device = memory, shape, dtype, device
    return buffer


def upload(buffer: Buffer, device: Device, subject: str | None = None) -> DeviceBuffer:
    """A copy of a host buffer on an accelerator, which messages call ``subject``. Raises OutOfDeviceMemoryError."""
    assert buffer.device == CPU()
    array = contiguous(buffer.to_numpy())
    memory = device.heap.upload(array, subject or f"a buffer {buffer.dtype} {shape_text(buffer.shape)}")
    return wrap_memory(memory, buffer.dtype, buffer.shape, device)
