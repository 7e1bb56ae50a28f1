"""Walls: blocks that must exist as a whole before anything reads them. They are computed into the frame's memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects import tile, vector_ext
from ...dialects.tile.compute import LANES_MINOR
from ...dialects.tile.types import element_type, shape_of
from .columns import UNROLL, Columns, Strip
from .loop_builder import Index
from .strips import Materialised, Memo, Strips, strides_of
from .views import RefView, address, storage_type

MOST_SHUFFLED = 2
"""Steps up to this take one or two vectors for each vector of their elements."""


def flat_index(strips: Strips, shape: Sequence[int], row: Sequence[Index], column: Index = 0) -> Index:
    """The row-major element index of a point of a block."""
    index = column
    for at, stride in zip(row, strides_of(shape)[:-1], strict=True):
        index = strips.builder.add(index, strips.builder.mul(at, stride))
    return index


def allocate(strips: Strips, shape: Sequence[int], element: Attribute) -> Materialised:
    """Room for a block, and to spare what the last round of a loop over its last row may read or write past it."""
    spare = max(UNROLL * strips.lanes, LANES_MINOR)
    memory = strips.builder.alloca(storage_type(element), prod(shape) + spare)
    return Materialised(memory, tuple(shape), element)


def write_block(strips: Strips, value: SSAValue, target: Materialised) -> None:
    """Evaluates ``value`` into ``target``.

    A row's last round may write past the row: ascending order lets the next row overwrite it, and the spare room
    of ``allocate`` takes what the last one spills. Concatenation relies on the same order.
    """
    builder = strips.builder
    columns = Columns.for_stores(strips, target.shape[-1])

    def row(at: tuple[Index, ...]) -> None:
        first = flat_index(strips, target.shape, at)

        def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            for strip in vectors:
                evaluated = strips.encode(strips.evaluate(value, strip.point, memo))
                builder.store(evaluated, target.memory, builder.add(first, strip.point.column))
            return ()

        columns.each(at, [value], body)

    builder.nest(list(target.shape[:-1]), row)


def materialise(strips: Strips, value: SSAValue) -> Materialised:
    """``value`` in memory; computed there if it is not yet."""
    if value not in strips.blocks:
        shape = shape_of(value.type)
        target = allocate(strips, shape, element_type(value.type))
        write_block(strips, value, target)
        strips.blocks[value] = target
    return strips.blocks[value]


def lower_constant(strips: Strips, op: arith.ConstantOp) -> None:
    """A block constant with different elements: stored vector by vector, each a constant."""
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    element, shape = element_type(op.result.type), shape_of(op.result.type)
    target = allocate(strips, shape, element)
    values = list(op.value.get_values())
    for start in range(0, len(values), strips.lanes):
        part = values[start : start + strips.lanes]
        part += [0] * (strips.lanes - len(part))
        strips.builder.store(strips.builder.dense(part, storage_type(element)), target.memory, start)
    strips.blocks[op.result] = target


def lower_concat(strips: Strips, op: tile.ConcatOp) -> None:
    """From the axis on, the elements of a part are one run in memory: runs side by side, in ascending order."""
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    target = allocate(strips, shape, element_type(op.result.type))
    parts = [materialise(strips, part) for part in op.parts]
    whole = prod(shape[axis:])

    def join(at: tuple[Index, ...]) -> None:
        index = strips.builder.mul(at[0], whole)
        for part in parts:
            size = prod(part.shape[axis:])
            _copy_run(strips, part.memory, strips.builder.mul(at[0], size), target.memory, index, size)
            index = strips.builder.add(index, size)

    strips.builder.nest([prod(shape[:axis])], join)
    strips.blocks[op.result] = target


def _copy_run(strips: Strips, source: SSAValue, first: Index, target: SSAValue, index: Index, size: int) -> None:
    """``size`` elements of ``source`` from ``first`` on go to ``target`` from ``index`` on; some beyond may, too."""
    builder, columns = strips.builder, Columns.for_stores(strips, size)

    def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
        for strip in vectors:
            value = builder.load(source, builder.add(first, strip.point.column), strip.point.lanes)
            builder.store(value, target, builder.add(index, strip.point.column))
        return ()

    columns.run((), size // columns.width * columns.width, 0, size, [], body)


def lower_gathered(strips: Strips, op: tile.TransposeOp | tile.SliceOp) -> None:
    """A transpose or slice whose rows are not consecutive in the operand: read from memory with a stride."""
    source = materialise(strips, op.operand)
    shape, strides = shape_of(op.result.type), strides_of(source.shape)
    if isinstance(op, tile.TransposeOp):
        origin, steps = 0, [strides[axis] for axis in op.axes]
    else:
        origin = sum(start * stride for (start, _), stride in zip(op.ranges, strides, strict=True))
        steps = [step * stride for (_, step), stride in zip(op.ranges, strides, strict=True)]
    target = allocate(strips, shape, element_type(op.result.type))
    builder, step = strips.builder, steps[-1]
    whole = shape[-1] // strips.lanes * strips.lanes if 1 <= abs(step) <= MOST_SHUFFLED else 0

    def row(at: tuple[Index, ...]) -> None:
        first: Index = origin
        for position, stride in zip(at, steps[:-1], strict=True):
            first = builder.add(first, builder.mul(position, stride))

        def some(column: Index, lanes: int) -> Sequence[SSAValue]:
            index = builder.add(first, builder.mul(column, step))
            value = _every(strips, source.memory, index, step, lanes)
            builder.store(value, target.memory, flat_index(strips, shape, at, column))
            return ()

        builder.loop(0, whole, strips.lanes, (), lambda column, _: some(column, strips.lanes))
        builder.loop(whole, shape[-1], 1, (), lambda column, _: some(column, 1))

    builder.nest(list(shape[:-1]), row)
    strips.blocks[op.result] = target


def _every(strips: Strips, memory: SSAValue, index: Index, step: int, lanes: int) -> SSAValue:
    """Elements ``index``, ``index + step``, ...: one; or a vector, of small steps, from the vectors that hold them."""
    builder = strips.builder
    if lanes == 1:
        return builder.load(memory, index, 1)
    first = builder.add(index, step * (lanes - 1)) if step < 0 else index
    low = builder.load(memory, first, lanes)
    high = low if abs(step) == 1 else builder.load(memory, builder.add(first, lanes), lanes)
    picked = [lane * abs(step) for lane in range(lanes)]
    shuffle = vector.ShuffleOp.build(
        operands=[low, high],
        properties={"mask": DenseArrayBase.from_list(i64, picked[::-1] if step < 0 else picked)},
        result_types=[low.type],
    )
    return builder.emit(shuffle)


def lower_reshape(strips: Strips, op: tile.ReshapeOp) -> None:
    """A reshape that regroups rows: the operand's memory seen under another shape."""
    source = materialise(strips, op.operand)
    strips.blocks[op.result] = Materialised(source.memory, shape_of(op.result.type), source.element)


def lower_store(strips: Strips, op: tile.StoreOp) -> None:
    """Evaluates a block into a reference, dropping what is masked off or invalid."""
    view = strips.views[op.ref]
    shape = shape_of(op.value.type)
    columns = Columns.for_stores(strips, shape[-1])
    values = [op.value] if op.mask is None else [op.value, op.mask]

    def row(at: tuple[Index, ...]) -> None:
        full = strips.columns(at, values, columns.size, columns.width, strips.store_bounds(view, at))

        def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            for strip in vectors:
                mask = None if op.mask is None else strips.evaluate(op.mask, strip.point, memo)
                value = strips.encode(strips.evaluate(op.value, strip.point, memo))
                _store(strips, view, value, strip, mask)
            return ()

        columns.run(at, full, 0, _stored_columns(strips, view, columns.size), [], body)
        strips.clear_row()

    strips.builder.nest(list(shape[:-1]), row)


def _stored_columns(strips: Strips, view: RefView, size: int) -> Index:
    """How many leading columns of a row of ``size`` a store can write: those behind the valid range are dropped.

    A block has thousands of columns, a small tensor a few; a masked round for each vector of the block took 0.3 us.
    """
    builder, axis = strips.builder, view.axes[-1]
    return builder.max(builder.min(size, builder.sub(axis.limit, axis.start)), 0) if size else 0


def _store(strips: Strips, view: RefView, value: SSAValue, strip: Strip, mask: SSAValue | None) -> None:
    builder, point = strips.builder, strip.point
    index = address(builder, view, (*point.row, point.column))
    valid = strips.valid_lanes(view, point, [c for c in (strip.exists, mask) if c is not None])
    stride = view.axes[-1].stride
    if point.lanes == 1:
        if valid is None:
            builder.store(value, view.memory, index)
            return

        def inside() -> Sequence[SSAValue]:
            builder.store(value, view.memory, index)
            return ()

        builder.if_(valid, [], inside)
    elif stride == 1 and valid is None:
        builder.store(value, view.memory, index)
    elif stride == 1:
        at = builder.ssa(strips.in_reach(view, point, index))
        builder.insert(vector.MaskedStoreOp.build(operands=[view.memory, [at], valid, value]))
    else:
        lanes = strips.lane_indices(index, stride, point.lanes)
        all_lanes = builder.lane_mask(point.lanes, point.lanes) if valid is None else valid
        builder.insert(vector_ext.ScatterOp(value, view.memory, lanes, all_lanes))
