"""References to memory, and the ops on them: no access leaves the valid range of a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from ..dialects import tile
from ..dialects.tile import RefType
from ..dialects.tile.memory import BLOCKED
from ..dialects.tile.types import shape_of
from .exact import Array
from .integers import as_stored, wrapped_index
from .values import InterpreterError, dtype_of

if TYPE_CHECKING:
    from .frame import Frame, Handler

BufferSource: TypeAlias = "Array | Callable[[Mapping[str, int]], Array]"
"""An array, or a function that makes it once the symbolic dims have their values."""


@dataclass(frozen=True)
class Reference:
    """A window of ``array``. All tuples but ``axes`` and ``shape`` have one entry for each axis of the array.

    Axis ``i`` of the reference is axis ``axes[i]`` of the array; the other axes are squeezed and lie at ``origin``.
    Elements outside ``lower <= position < upper`` are invalid.
    """

    array: Array
    origin: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def whole(cls, array: Array) -> Reference:
        """All of an array."""
        zeros = (0,) * array.ndim
        return cls(array, zeros, zeros, array.shape, tuple(range(array.ndim)), array.shape)

    def window(self, starts: Sequence[int], shape: Sequence[int], squeezed: Sequence[int]) -> Reference:
        """The part of ``shape`` at ``starts``, without the axes ``squeezed``. It may reach beyond the reference."""
        origin, lower, upper = list(self.origin), list(self.lower), list(self.upper)
        for axis, start, extent in zip(self.axes, starts, shape, strict=True):
            origin[axis] = wrapped_index(origin[axis] + start)
            lower[axis] = max(lower[axis], origin[axis])
            upper[axis] = min(upper[axis], origin[axis] + extent)
        kept = [i for i in range(len(shape)) if i not in squeezed]
        axes, extents = tuple(self.axes[i] for i in kept), tuple(shape[i] for i in kept)
        return Reference(self.array, tuple(origin), tuple(lower), tuple(upper), axes, extents)

    def flatten(self) -> Reference:
        """All elements of a whole array as one axis.

        Raises:
            InterpreterError: it is a window, or the array's elements do not lie in row-major order.
        """
        whole = Reference.whole(self.array)
        if (self.origin, self.lower, self.upper, self.axes) != (whole.origin, whole.lower, whole.upper, whole.axes):
            raise InterpreterError("tile.flatten takes a whole buffer, not a window of one; flatten before tile.window")
        if not self.array.flags.c_contiguous:
            raise InterpreterError(
                "tile.flatten needs elements in row-major order; pass a copy by np.ascontiguousarray as the buffer"
            )
        return Reference.whole(self.array.reshape(-1))

    def valid(self, of: Array | None = None) -> tuple[Array, tuple[slice, ...]]:
        """The valid part of the array as a view with the axes of the reference, and its place within the reference.

        ``of`` is another array of the same shape whose part is wanted.
        """
        array = self.array if of is None else of
        sizes = [max(high - low, 0) for low, high in zip(self.lower, self.upper, strict=True)]
        if 0 in sizes:
            return np.empty((0,) * len(self.axes), array.dtype), (slice(0, 0),) * len(self.axes)
        part = array[tuple(slice(low, low + n) for low, n in zip(self.lower, sizes, strict=True))]
        starts = [low - origin for low, origin in zip(self.lower, self.origin, strict=True)]
        place = tuple(slice(starts[axis], starts[axis] + sizes[axis]) for axis in self.axes)
        return part.squeeze(tuple(set(range(self.array.ndim)) - set(self.axes))), place

    def load(self, mask: Array | None, other: Array) -> Array:
        """A copy of all elements; ``other``, a scalar, for those masked off or invalid."""
        block = np.full(self.shape, other, self.array.dtype)
        part, place = self.valid()
        block[place] = part
        return block if mask is None else np.where(mask, block, np.asarray(other, block.dtype))

    def store(self, value: Array, mask: Array | None) -> None:
        """Writes the elements that are valid and not masked off.

        Raises:
            InterpreterError: the array is read-only.
        """
        if not self.array.flags.writeable:
            raise InterpreterError("tile.store writes to a read-only numpy array; pass a writable copy as the buffer")
        part, place = self.valid()
        np.copyto(part, value[place], where=True if mask is None else mask[place])


class Buffer:
    """An argument of the entry function whose array is made at its first use, when the symbolic dims are known."""

    def __init__(self, name: str, ref_type: RefType, source: BufferSource) -> None:
        self.name = name
        self.ref_type = ref_type
        self._source = source
        self.array: Array | None = None

    def reference(self, bindings: Mapping[str, int]) -> Reference:
        """All of the buffer.

        Raises:
            InterpreterError: the array has another rank, extent or dtype than the type of the argument says.
        """
        if self.array is None:
            array = self._source(dict(bindings)) if callable(self._source) else self._source
            reference_to(self.name, array, self.ref_type)
            self.array = array
        return reference_to(self.name, self.array, self.ref_type)


def reference_to(name: str, array: object, ref_type: RefType) -> Reference:
    """All of an array that stands for a global reference of ``ref_type``.

    An array of unsigned integers is taken as the same bits signed, since integers of the IR have no sign.

    Raises:
        InterpreterError: rank, an extent or the dtype differ, or it is no array.
    """
    if not isinstance(array, np.ndarray):
        raise InterpreterError(f"buffer {name} must be a numpy array, not {type(array).__name__}; use np.asarray")
    dtype, wanted = dtype_of(ref_type.element_type), ref_type.extents
    fits = len(wanted) == array.ndim and all(n in (DYNAMIC_INDEX, m) for n, m in zip(wanted, array.shape, strict=True))
    held = as_stored(array)
    if held.dtype == dtype and fits:
        return Reference.whole(held)
    extents = ", ".join("?" if n == DYNAMIC_INDEX else str(n) for n in wanted)
    raise InterpreterError(
        f"buffer {name} must be a {dtype} array of shape [{extents}], not {array.dtype} of shape {list(array.shape)};"
        " convert or reshape it first"
    )


def _window(frame: Frame, op: tile.WindowOp) -> Iterable[Reference]:
    starts, shape = frame.integers(op.indices), op.block_shape
    if op.indexing.data == BLOCKED:
        starts = [start * extent for start, extent in zip(starts, shape, strict=True)]
    return (frame.reference(op.ref).window(starts, shape, op.squeezed_axes),)


def _flatten(frame: Frame, op: tile.FlattenOp) -> Iterable[Reference]:
    return (frame.reference(op.ref).flatten(),)


def _reinterpret(frame: Frame, op: tile.ReinterpretOp) -> Iterable[Reference]:
    flat = frame.reference(op.ref).flatten().array
    extents = frame.integers(op.extents)
    if prod(extents) != flat.size or min(extents, default=0) < 0:
        raise InterpreterError(f"tile.reinterpret: {flat.size} elements do not have the shape {extents}")
    return (Reference.whole(flat.reshape(extents)),)


def _dim(frame: Frame, op: tile.DimOp) -> Iterable[Array]:
    return (np.array(frame.reference(op.ref).shape[op.axis.value.data], np.int64),)


def _alloc(frame: Frame, op: tile.AllocOp) -> Iterable[Reference]:
    ref_type = op.result.type
    assert isinstance(ref_type, RefType)
    return (Reference.whole(np.full(ref_type.extents, frame.array(op.pad), dtype_of(ref_type.element_type))),)


def _load(frame: Frame, op: tile.LoadOp) -> Iterable[Array]:
    mask = None if op.mask is None else frame.array(op.mask)
    other = np.zeros((), dtype_of(op.result.type)) if op.other is None else frame.array(op.other)
    reference = frame.reference(op.ref)
    for observer in frame.execution.observers:
        observer.access(reference, mask, writes=False)
    block = reference.load(mask, other)
    assert block.shape == shape_of(op.result.type)
    return (block,)


def _store(frame: Frame, op: tile.StoreOp) -> Iterable[Array]:
    mask = None if op.mask is None else frame.array(op.mask)
    reference = frame.reference(op.ref)
    for observer in frame.execution.observers:
        observer.access(reference, mask, writes=True)
    reference.store(frame.array(op.value), mask)
    return ()


MEMORY_HANDLERS: dict[type[Operation], Handler] = {
    tile.WindowOp: _window,
    tile.FlattenOp: _flatten,
    tile.ReinterpretOp: _reinterpret,
    tile.DimOp: _dim,
    tile.AllocOp: _alloc,
    tile.LoadOp: _load,
    tile.StoreOp: _store,
}
