"""References while lowering: where a window lies in flat memory, and which of its elements are valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects.tile.memory import BLOCKED, WindowOp
from .loop_builder import Index, LoopBuilder


def storage_type(element: Attribute) -> Attribute:
    """What an element takes in memory: a bool is one byte."""
    return IntegerType(8) if element == i1 else element


@dataclass(frozen=True)
class AxisView:
    """One axis: element k lies at position ``start + k``, valid where ``lower <= position < limit``.

    ``start`` may be any index, and positions wrap; ``0 <= lower <= limit <= extent of the buffer`` holds always, so
    that neither ``limit - position`` nor ``lower - position`` can pass off a position outside as a valid one.
    ``stride`` counts elements between positions.
    """

    start: Index
    stride: Index
    size: Index
    lower: Index
    limit: Index


@dataclass(frozen=True)
class RefView:
    """A reference: flat memory, the offset of its squeezed axes and whether they are valid, and its axes."""

    memory: SSAValue
    element: Attribute
    root: SSAValue
    offset: Index
    conditions: tuple[SSAValue, ...]
    axes: tuple[AxisView, ...]


def whole(
    builder: LoopBuilder, memory: SSAValue, element: Attribute, root: SSAValue, extents: Sequence[Index]
) -> RefView:
    """A contiguous row-major reference of all of ``memory``."""
    axes: list[AxisView] = []
    stride: Index = 1
    for extent in reversed(extents):
        axes.append(AxisView(start=0, stride=stride, size=extent, lower=0, limit=extent))
        stride = builder.mul(stride, extent)
    return RefView(memory, element, root, 0, (), tuple(reversed(axes)))


def is_dynamic(extent: int) -> bool:
    return extent == DYNAMIC_INDEX


def valid_position(builder: LoopBuilder, axis: AxisView, position: Index) -> list[SSAValue]:
    """The i1 conditions under which ``position`` of ``axis`` is valid; none if it is known to be."""
    if isinstance(position, int) and isinstance(axis.limit, int) and isinstance(axis.lower, int):
        return [] if axis.lower <= position < axis.limit else [builder.scalar(0, i1)]
    most = builder.most(position)
    if axis.lower == 0 and isinstance(axis.limit, int) and most is not None and most < axis.limit:
        return []
    if axis.lower == 0:  # one unsigned comparison refuses negative positions too
        return [builder.compare("ult", builder.ssa(position), builder.ssa(axis.limit))]
    return [
        builder.compare("sge", builder.ssa(position), builder.ssa(axis.lower)),
        builder.compare("slt", builder.ssa(position), builder.ssa(axis.limit)),
    ]


def starts_valid(builder: LoopBuilder, axis: AxisView, position: Index) -> bool:
    """Whether ``position`` is known not to lie before the valid range of ``axis``."""
    if isinstance(position, int) and isinstance(axis.lower, int):
        return position >= axis.lower
    return axis.lower == 0 and builder.is_natural(position)


def _inside(builder: LoopBuilder, axis: AxisView) -> tuple[Index, Index]:
    """The valid range of a window of ``axis``: valid there, and within its extent."""
    if axis.start == 0 and axis.size == axis.limit:
        return axis.lower, axis.limit
    end = builder.add(axis.start, axis.size)
    lower = builder.min(builder.max(axis.lower, axis.start), axis.limit)
    return lower, builder.max(builder.min(axis.limit, end), lower)


def window(builder: LoopBuilder, view: RefView, op: WindowOp, indices: Sequence[Index]) -> RefView:
    """The view of a ``tile.window``."""
    offset, conditions, axes = view.offset, list(view.conditions), []
    blocked = op.indexing.data == BLOCKED
    for number, (axis, index, size) in enumerate(zip(view.axes, indices, op.block_shape, strict=True)):
        lower, limit = _inside(builder, axis)
        start = builder.add(axis.start, builder.mul(index, size) if blocked else index)
        inner = AxisView(start, axis.stride, size, lower, limit)
        if number in op.squeezed_axes:
            conditions += valid_position(builder, inner, start)
            offset = builder.add(offset, builder.mul(start, axis.stride))
        else:
            axes.append(inner)
    return replace(view, offset=offset, conditions=tuple(conditions), axes=tuple(axes))


def address(builder: LoopBuilder, view: RefView, position: Sequence[Index]) -> Index:
    """The flat element index of ``position`` (counted from the view's start along each axis)."""
    index = view.offset
    for axis, at in zip(view.axes, position, strict=True):
        index = builder.add(index, builder.mul(builder.add(axis.start, at), axis.stride))
    return index


def row_conditions(builder: LoopBuilder, view: RefView, rows: Sequence[Index]) -> list[SSAValue]:
    """Under which conditions the row at ``rows`` (all axes but the last) is valid."""
    conditions = list(view.conditions)
    for axis, at in zip(view.axes[:-1], rows, strict=True):
        conditions += valid_position(builder, axis, builder.add(axis.start, at))
    return conditions
