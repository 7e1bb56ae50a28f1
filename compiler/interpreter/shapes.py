"""The shape ops: they move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from ..dialects import tile
from ..dialects.tile.types import shape_of
from .exact import Array
from .values import dtype_of

if TYPE_CHECKING:
    from .frame import Frame, Handler


def _splat(frame: Frame, op: tile.SplatOp) -> Iterable[Array]:
    return (np.full(shape_of(op.result.type), frame.array(op.scalar)),)


def _iota(frame: Frame, op: tile.IotaOp) -> Iterable[Array]:
    shape, axis = shape_of(op.result.type), op.axis.value.data
    along = np.arange(shape[axis], dtype=np.int64)
    dtype = dtype_of(op.result.type)
    wrapped = (along & 1 != 0) if dtype == np.bool_ else along.astype(dtype)
    column = wrapped.reshape([shape[axis] if i == axis else 1 for i in range(len(shape))])
    return (np.broadcast_to(column, shape),)


def _broadcast(frame: Frame, op: tile.BroadcastOp) -> Iterable[Array]:
    return (np.broadcast_to(frame.array(op.operand), shape_of(op.result.type)),)


def _reshape(frame: Frame, op: tile.ReshapeOp) -> Iterable[Array]:
    return (frame.array(op.operand).reshape(shape_of(op.result.type)),)


def _transpose(frame: Frame, op: tile.TransposeOp) -> Iterable[Array]:
    return (frame.array(op.operand).transpose(op.axes),)


def _slice(frame: Frame, op: tile.SliceOp) -> Iterable[Array]:
    block = frame.array(op.operand)
    for axis, ((start, step), size) in enumerate(zip(op.ranges, shape_of(op.result.type), strict=True)):
        block = np.take(block, start + step * np.arange(size), axis)  # a step may be 0 or negative
    return (block,)


def _concat(frame: Frame, op: tile.ConcatOp) -> Iterable[Array]:
    return (np.concatenate(frame.arrays(op.parts), op.axis.value.data),)


def _extract(frame: Frame, op: tile.ExtractOp) -> Iterable[Array]:
    block, indices = frame.array(op.block), frame.integers(op.indices)
    if all(0 <= i < extent for i, extent in zip(indices, block.shape, strict=True)):
        return (block[tuple(indices)],)
    return (np.zeros((), block.dtype),)


def _select(frame: Frame, op: tile.SelectOp) -> Iterable[Array]:
    return (np.where(*frame.arrays((op.condition, op.true_value, op.false_value))),)


SHAPE_HANDLERS: dict[type[Operation], Handler] = {
    tile.SplatOp: _splat,
    tile.IotaOp: _iota,
    tile.BroadcastOp: _broadcast,
    tile.ReshapeOp: _reshape,
    tile.TransposeOp: _transpose,
    tile.SliceOp: _slice,
    tile.ConcatOp: _concat,
    tile.ExtractOp: _extract,
    tile.SelectOp: _select,
}
