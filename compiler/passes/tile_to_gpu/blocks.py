"""Block values and the threads of a block: who computes which element, and where it is kept.

An element is computed by itself, so every op that only says where an element comes from (transpose, slice, any reshape)
is a strip here; a CPU with vectors needs the rows of some of them in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import tile
from ...dialects.tile.types import element_type, shape_of
from ..tile_to_loops.loop_builder import Index
from ..tile_to_loops.strips import Materialised, Memo, Point, Strips, strides_of
from ..tile_to_loops.views import RefView, address, storage_type
from .threads import ThreadBuilder

Coordinates = tuple[Index, ...]


class ThreadStrips(Strips):
    """Evaluates single elements of blocks, in one thread."""

    def __init__(self, threads: ThreadBuilder) -> None:
        super().__init__(threads, lanes=1)
        self.threads = threads

    def is_strip(self, op: Operation) -> bool:
        return isinstance(op, tile.ReshapeOp | tile.TransposeOp | tile.SliceOp) or super().is_strip(op)

    def element(self, value: SSAValue, at: Sequence[Index], memo: Memo | None = None) -> SSAValue:
        """The element of ``value`` at these coordinates."""
        return self.evaluate(value, point(at), {} if memo is None else memo)

    def _reshaped(
        self, op: tile.BroadcastOp | tile.TransposeOp | tile.SliceOp | tile.ReshapeOp, point: Point, memo: Memo
    ) -> SSAValue:
        return self.element(op.operand, self._source(op, (*point.row, point.column)), memo)

    def _source(
        self, op: tile.BroadcastOp | tile.TransposeOp | tile.SliceOp | tile.ReshapeOp, at: Coordinates
    ) -> Coordinates:
        """Where the element of the result at ``at`` is in the operand."""
        builder, shape = self.builder, shape_of(op.operand.type)
        if isinstance(op, tile.BroadcastOp):
            return tuple(0 if n == 1 else index for n, index in zip(shape, at, strict=True))
        if isinstance(op, tile.TransposeOp):
            moved: list[Index] = [0] * len(at)
            for axis, index in zip(op.axes, at, strict=True):
                moved[axis] = index
            return tuple(moved)
        if isinstance(op, tile.SliceOp):
            return tuple(
                builder.add(start, builder.mul(index, step)) for (start, step), index in zip(op.ranges, at, strict=True)
            )
        return self.coordinates(shape, self.linear(shape_of(op.result.type), at))

    def linear(self, shape: Sequence[int], at: Sequence[Index]) -> Index:
        """The row-major number of an element."""
        index: Index = 0
        for position, stride in zip(at, strides_of(shape), strict=True):
            index = self.builder.add(index, self.builder.mul(position, stride))
        return index

    def coordinates(self, shape: Sequence[int], linear: Index) -> Coordinates:
        """The coordinates of the element of this row-major number."""
        found: list[Index] = []
        for extent in reversed(shape[1:]):
            found.append(0 if extent == 1 else self.builder.rem(linear, extent))
            linear = self.builder.div(linear, max(extent, 1))
        return (linear, *reversed(found))


def point(at: Sequence[Index]) -> Point:
    """One element; whether a load may read it is always asked."""
    return Point(tuple(at[:-1]), at[-1], 1, masked=True)


def allocate(strips: ThreadStrips, shape: Sequence[int], element: Attribute) -> Materialised:
    """Room for a block in memory that all threads see."""
    return Materialised(strips.threads.alloca(storage_type(element), prod(shape)), tuple(shape), element)


def write_block(strips: ThreadStrips, value: SSAValue, target: Materialised) -> None:
    """Evaluates ``value`` into ``target``, each element in one thread."""

    def element(index: Index) -> None:
        evaluated = strips.encode(strips.element(value, strips.coordinates(target.shape, index)))
        strips.builder.store(evaluated, target.memory, index)

    strips.threads.spread(prod(target.shape), element)


def materialise(strips: ThreadStrips, value: SSAValue) -> Materialised:
    """``value`` in memory; computed there if it is not yet."""
    if value not in strips.blocks:
        target = allocate(strips, shape_of(value.type), element_type(value.type))
        write_block(strips, value, target)
        strips.blocks[value] = target
    return strips.blocks[value]


def lower_constant(strips: ThreadStrips, op: arith.ConstantOp) -> None:
    """A block constant with different elements: one thread writes them down."""
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    element, builder = element_type(op.result.type), strips.builder
    target = allocate(strips, shape_of(op.result.type), element)
    values = op.value.get_values()

    def write() -> None:
        for index, value in enumerate(values):
            builder.store(builder.scalar(value, storage_type(element)), target.memory, index)

    strips.threads.alone(write)
    strips.blocks[op.result] = target


def lower_concat(strips: ThreadStrips, op: tile.ConcatOp) -> None:
    """Every part goes to its place in the result."""
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    target = allocate(strips, shape, element_type(op.result.type))
    first = 0
    for part in op.parts:
        _write_part(strips, part, target, axis, first)
        first += shape_of(part.type)[axis]
    strips.blocks[op.result] = target


def _write_part(strips: ThreadStrips, part: SSAValue, target: Materialised, axis: int, first: int) -> None:
    shape = shape_of(part.type)

    def element(index: Index) -> None:
        at = strips.coordinates(shape, index)
        moved = (*at[:axis], strips.builder.add(at[axis], first), *at[axis + 1 :])
        value = strips.encode(strips.element(part, at))
        strips.builder.store(value, target.memory, strips.linear(target.shape, moved))

    strips.threads.spread(prod(shape), element)


def lower_store(strips: ThreadStrips, op: tile.StoreOp) -> None:
    """Evaluates a block into a reference, dropping what is masked off or invalid."""
    view, shape = strips.views[op.ref], shape_of(op.value.type)
    strips.threads.spread(prod(shape), lambda index: _store(strips, op, view, strips.coordinates(shape, index)))


def _store(strips: ThreadStrips, op: tile.StoreOp, view: RefView, at: Coordinates) -> None:
    builder, memo, place = strips.builder, Memo(), point(at)
    mask = [] if op.mask is None else [strips.evaluate(op.mask, place, memo)]
    valid = strips.valid_lanes(view, place, mask)

    def write() -> Sequence[SSAValue]:
        value = strips.encode(strips.evaluate(op.value, place, memo))
        builder.store(value, view.memory, address(builder, view, at))
        return ()

    if valid is None:
        write()
    else:
        builder.if_(valid, [], write)


def fill(strips: ThreadStrips, memory: SSAValue, size: int, value: SSAValue) -> None:
    """Puts one value into all of ``memory``."""
    strips.threads.spread(size, lambda index: strips.builder.store(value, memory, index))
