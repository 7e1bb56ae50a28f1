"""`Buffer`: the memory of a tensor, as models take and return it.

Who shares memory with whom:

- ``Buffer.from_numpy(a)`` and ``Buffer.from_dlpack(x)`` share the memory of their argument where native code can
  read it in place (C-contiguous, aligned, native byte order) and copy otherwise; ``copy=True`` always copies and
  ``copy=False`` never does. Memory that is read-only stays so.
- ``to_numpy()``, ``np.asarray(buffer)`` and ``__dlpack__`` share the buffer's memory. A write through any of them
  is seen through all others, and by the next execution that the buffer is given to.
- Whoever shares memory keeps it alive: a view is valid after its buffer is gone.
- An execution only reads the buffers and arrays it is given. Each output is a new buffer that shares with nothing.
- A buffer on an accelerator shares with nothing in host memory, and nothing moves it but ``.to(device)``.
- A buffer that `load_max_buffer` maps from a file may lie at any address; where that does not suit native code, each
  execution reads a copy.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, Self, SupportsIndex

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError

from .arrays import contiguous, element_type, from_object, is_direct, shape_text
from .device import CPU, Device
from .dlpack import export_bfloat16
from .memory import MAX_BYTES, Array, address_of, aligned_array, extent_bytes

_HOST = CPU()


class Buffer:
    """A dense tensor in the memory of one device: C-contiguous, of any rank, possibly without elements.

    ``Buffer(dtype, shape)`` holds zeros. `from_numpy` and `from_dlpack` wrap memory that exists.

    Args:
        dtype: the element type: a `DType`, or what ``np.dtype`` accepts.
        shape: the size of each axis; ``()`` is one element.
        device: where the memory lies.

    Raises:
        GraphTypeError: no such element type, or the shape is not made of ints.
        GraphError: a negative size, or more than 2**63 bytes.
        MemoryError: the system refuses that many bytes; OutOfDeviceMemoryError, which is one, on an accelerator.

    >>> Buffer(DType.float32, (2, 3))
    Buffer(float32, [2, 3], cpu)
    """

    # The address is taken once: numpy needs longer for it than a whole small kernel. The array is never handed out
    # itself, only views of it, so nobody can change its shape or type in place.
    __slots__ = ("_address", "_array", "_device", "_dtype")

    _array: Array
    _dtype: DType
    _device: Device
    _address: int | None

    def __new__(cls, dtype: DType | Any, shape: Iterable[SupportsIndex], device: Device = _HOST) -> Self:
        """A buffer of the class that the device needs."""
        if not isinstance(device, Device):
            raise GraphTypeError(f"Buffer(device=...) takes a device such as CPU(), not {device!r}")
        if cls is Buffer and not device.is_host:
            from .offload.buffer import DeviceBuffer

            return object.__new__(DeviceBuffer)  # type: ignore[return-value]  # a Buffer, and cls is just that
        return object.__new__(cls)

    def __init__(self, dtype: DType | Any, shape: Iterable[SupportsIndex], device: Device = _HOST) -> None:
        dtype, sizes = checked_dtype(dtype), checked_shape(shape)
        array, address = aligned_array(sizes, dtype.to_numpy(), checked_nbytes(sizes, dtype), zeroed=True)
        self._array, self._dtype, self._device, self._address = array, dtype, device, address

    @classmethod
    def from_numpy(cls, array: Any, copy: bool | None = None) -> Buffer:
        """The buffer of a numpy array or numpy scalar.

        Args:
            array: any strides, alignment and byte order; read-only too.
            copy: None copies if it must, True always, False never.

        Raises:
            GraphTypeError: not a numpy array, or its dtype (object, string, complex, ...) is not a `DType`.
            GraphError: ``copy=False`` and the array cannot be used in place.
        """
        if not isinstance(array, (np.ndarray, np.generic)):
            raise GraphTypeError(
                f"Buffer.from_numpy() takes a numpy array, not {type(array).__name__}; "
                "make one with np.asarray(x, dtype=...)"
            )
        return _from_array(from_object(array, "the array given to Buffer.from_numpy()"), copy, "from_numpy")

    @classmethod
    def from_dlpack(cls, source: Any, copy: bool | None = None) -> Buffer:
        """The buffer of an object with ``__dlpack__`` in host memory (a torch tensor, a JAX array, ...).

        Args:
            source: the object; it may be of any element type that a buffer can have.
            copy: None copies if it must, True always, False never.

        Raises:
            GraphTypeError: no ``__dlpack__``, memory of another device, or an element type that is not ours.
            GraphError: ``copy=False`` and the memory cannot be used in place.
        """
        if isinstance(source, Buffer):
            if not source.device.is_host:
                raise GraphTypeError(
                    f"Buffer.from_dlpack() takes host memory, not {source!r}; copy it with .to(CPU()) first"
                )
            return _from_array(source._array, copy, "from_dlpack")
        if not hasattr(source, "__dlpack__"):
            raise GraphTypeError(
                f"Buffer.from_dlpack() takes an object with __dlpack__, not {type(source).__name__}; "
                "for a numpy array use Buffer.from_numpy()"
            )
        return _from_array(from_object(source, "the object given to Buffer.from_dlpack()"), copy, "from_dlpack")

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def num_elements(self) -> int:
        """The product of the shape: 1 for rank 0."""
        return self._array.size

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return self._device

    @property
    def address(self) -> int:
        """The address of the first element; valid as long as the buffer or a view of it lives.

        It is a multiple of the element's alignment, unless the buffer is mapped from a file.
        """
        if self._address is None:
            self._address = address_of(self._array)
        return self._address

    def to_numpy(self) -> Array:
        """A numpy view of the same memory (``ml_dtypes.bfloat16`` for bfloat16); read-only if the memory is."""
        return self._array.view()

    def to(self, device: Device) -> Buffer:
        """A copy on that device; the buffer itself if it is there already.

        Raises:
            GraphTypeError: ``device`` is not a `Device`.
            OutOfDeviceMemoryError: the device has not enough memory.
        """
        if not isinstance(device, Device):
            raise GraphTypeError(f"Buffer.to() takes a device such as CPU(), not {device!r}")
        return self if device == self._device else self._moved(device)

    def _moved(self, device: Device) -> Buffer:
        """A copy on another device."""
        from .offload.buffer import upload

        return upload(self, device)

    def copy(self) -> Buffer:
        """A buffer of its own on the same device, with the same elements."""
        return _from_array(self._array, True, "copy")

    def item(self) -> bool | int | float:
        """The only element, as a Python number.

        Raises:
            GraphError: the buffer does not have exactly one element.
        """
        if self._array.size != 1:
            raise GraphError(
                f"item() needs a buffer of one element, got shape {shape_text(self.shape)}; use to_numpy()"
            )
        value: bool | int | float = self._array.item()
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, **arguments: Any) -> Any:
        """A DLPack capsule of the same memory; the arguments are those of numpy's ``__dlpack__``.

        numpy itself reads no bfloat16 through DLPack; use ``np.asarray(buffer)`` there.

        Raises:
            BufferError: the memory is read-only and the consumer too old to be told so.
        """
        if self._dtype is DType.bfloat16:
            return export_bfloat16(self._array, arguments)
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._array.__dlpack_device__()
        return int(kind), int(index)

    def __reduce__(self) -> tuple[Callable[[Array], Buffer], tuple[Array]]:
        # the address must not travel to another process, nor into a copy
        return Buffer.from_numpy, (self._array.view(),)

    def __repr__(self) -> str:
        return f"Buffer({self._dtype}, {shape_text(self.shape)}, {self._device})"


def wrap(array: Array, dtype: DType, device: Device, address: int | None = None) -> Buffer:
    """The buffer of an array that is known to be direct, of that type, and in nobody else's hands."""
    buffer = object.__new__(Buffer)
    buffer._array = array
    buffer._dtype = dtype
    buffer._device = device
    buffer._address = address
    return buffer


def _from_array(array: Array, copy: bool | None, function: str) -> Buffer:
    dtype = element_type(array, f"the argument of Buffer.{function}()")
    direct = is_direct(array)
    if copy is False and not direct:
        raise GraphError(
            f"Buffer.{function}(copy=False) needs a C-contiguous, aligned array in native byte order, got strides "
            f"{array.strides} for shape {shape_text(array.shape)} of {array.dtype}; leave copy out"
        )
    source = array.view(np.ndarray) if direct else contiguous(array)
    if copy and direct:
        owned, address = aligned_array(source.shape, source.dtype, source.nbytes)
        owned[...] = source
        return wrap(owned, dtype, _HOST, address)
    return wrap(source, dtype, _HOST)


def checked_dtype(dtype: DType | Any) -> DType:
    """The element type that a buffer is to have. GraphTypeError if it is none."""
    return dtype if isinstance(dtype, DType) else DType.from_numpy(np.dtype(dtype))


def checked_shape(shape: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """The sizes that a buffer is to have. GraphTypeError or GraphError if they are none."""
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise GraphTypeError(f"the shape of a buffer must be a sequence of ints, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise GraphError(f"the sizes of a buffer must not be negative, got shape {shape_text(sizes)}")
    return sizes


def checked_nbytes(shape: tuple[int, ...], dtype: DType) -> int:
    """The bytes of a buffer of this shape. GraphError if they are too many."""
    if extent_bytes(shape, dtype.size_in_bytes) > MAX_BYTES:
        raise GraphError(f"a buffer of shape {shape_text(shape)} and type {dtype} has more than 2**63 bytes")
    return math.prod(shape) * dtype.size_in_bytes
