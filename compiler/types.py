"""The type of a tensor in a graph: element type, shape with named sizes, device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from .device import DeviceRef
from .dims import Dim, DimLike, StaticDim
from .dtypes import DType
from .errors import GraphError, GraphTypeError, HalfulpError

LARGEST_SIZE = (1 << 63) - 1


@dataclass(frozen=True, init=False)
class TensorType:
    """A tensor's element type, shape and device.

    Args:
        dtype: the element type.
        shape: one entry per axis: an int, the name of a symbol, or a `Dim`. ``()`` is a scalar.
        device: where the elements live; the host by default.

    Raises:
        GraphError: a size is negative, sizes or bytes go beyond 64 bits, or a symbol's name is not legal.
        GraphTypeError: an argument of the wrong Python type.

    >>> TensorType(DType.float32, ["batch", 8])
    TensorType(float32, [batch, 8], cpu)
    """

    dtype: DType
    shape: tuple[Dim, ...]
    device: DeviceRef

    def __init__(self, dtype: DType, shape: Iterable[DimLike], device: DeviceRef | None = None) -> None:
        device = DeviceRef.CPU() if device is None else device
        if not isinstance(dtype, DType):
            raise GraphTypeError(f"dtype of a TensorType must be a DType such as DType.float32, not {dtype!r}")
        if not isinstance(device, DeviceRef):
            raise GraphTypeError(f"device of a TensorType must be a DeviceRef, not {device!r}; write DeviceRef.CPU()")
        dims = as_shape(shape)
        static = prod(int(dim) for dim in dims if isinstance(dim, StaticDim))
        if static * dtype.size_in_bytes > LARGEST_SIZE:
            raise GraphError(f"a tensor of {dtype} {shape_text(dims)} would take more than 2**63 - 1 bytes")
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "shape", dims)
        object.__setattr__(self, "device", device)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def num_elements(self) -> Dim:
        """The product of all sizes: 1 for a scalar."""
        return reduce(Dim.__mul__, self.shape, Dim(1))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of all symbols in the shape, sorted."""
        return tuple(sorted({name for dim in self.shape for name in dim.symbols}))

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return all(isinstance(dim, StaticDim) for dim in self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} {shape_text(self.shape)} on {self.device}"

    def __repr__(self) -> str:
        return f"TensorType({self.dtype}, {shape_text(self.shape)}, {self.device})"


class BufferType(TensorType):
    """The type of an input whose memory the graph may change: the caller sees it after the execution.

    Arguments and errors are those of `TensorType`.

    >>> BufferType(DType.float32, ["n", 8])
    BufferType(float32, [n, 8], cpu)
    """

    def __repr__(self) -> str:
        return f"BufferType({self.dtype}, {shape_text(self.shape)}, {self.device})"


def as_shape(shape: Iterable[DimLike], subject: str | None = None) -> tuple[Dim, ...]:
    """A shape given as ints, names and dims, as dims. Raises what `TensorType` raises.

    Args:
        shape: the sizes.
        subject: the op and its argument, with which messages begin: ``"ops.tile: repeats"``.
    """
    prefix = "" if subject is None else f"{subject}: "
    dims = as_dims(shape, subject)
    for axis, dim in enumerate(dims):
        if isinstance(dim, StaticDim) and not 0 <= dim.dim <= LARGEST_SIZE:
            raise GraphError(f"{prefix}size {dim} of axis {axis} must be between 0 and 2**63 - 1")
    return dims


def as_dims(sizes: Iterable[DimLike], subject: str | None = None) -> tuple[Dim, ...]:
    """Sizes as `as_shape` takes them, which may be negative, such as -1 where an op has a meaning for it."""
    prefix = "" if subject is None else f"{subject}: "
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise GraphTypeError(
            f"{prefix}a shape must be a sequence of ints, names and dims, not {sizes!r}; write [{sizes!r}]"
        )
    given = list(sizes)
    try:
        return tuple(Dim(size) for size in given)
    except HalfulpError as error:
        raise type(error)(f"{prefix}{error.message}") from None


def shape_text(shape: Sequence[Dim]) -> str:
    """``[batch, 2*seq + 1, 8]``, as messages show a shape."""
    return f"[{', '.join(str(dim) for dim in shape)}]"
