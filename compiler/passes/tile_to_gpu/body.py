"""The ops of a kernel in order, for the threads of a block; scalars and control flow are those of ``tile_to_loops``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from ...dialects import tile
from ..tile_to_loops.body import BodyLowering, Handler
from ..tile_to_loops.strips import Materialised
from ..tile_to_loops.views import whole
from .blocks import ThreadStrips, allocate, fill, lower_concat, lower_constant, lower_store, materialise, write_block
from .dot import lower_dot
from .reductions import lower_reduce
from .threads import ThreadBuilder
from .top_merge import lower_top_merge

Lower = Callable[[ThreadStrips, Any], None]


class ThreadBody(BodyLowering):
    """Lowers the body of one kernel into the function that ``threads`` emits."""

    strips: ThreadStrips

    def __init__(self, threads: ThreadBuilder, region: Region, handlers: Mapping[type[Operation], Handler]) -> None:
        own: dict[type[Operation], Handler] = {op: partial(_lower, lower) for op, lower in _BLOCK_OPS.items()}
        super().__init__(threads, 1, region, {**own, **handlers}, ThreadStrips(threads))
        self.threads = threads

    def allocate(self, shape: Sequence[int], element: Attribute) -> Materialised:
        return allocate(self.strips, shape, element)

    def write_block(self, value: SSAValue, target: Materialised) -> None:
        write_block(self.strips, value, target)

    def materialise(self, value: SSAValue) -> Materialised:
        return materialise(self.strips, value)

    def constant(self, op: arith.ConstantOp) -> None:
        if not self.strips.is_strip(op) and isinstance(op.value, DenseIntOrFPElementsAttr):
            lower_constant(self.strips, op)
        else:
            super().constant(op)


def _lower(lower: Lower, body: ThreadBody, op: Operation) -> None:
    lower(body.strips, op)


def _lower_alloc(strips: ThreadStrips, op: tile.AllocOp) -> None:
    """Scratch memory of a program: all of its threads fill it."""
    ref = op.result.type
    assert isinstance(ref, tile.RefType)
    block = allocate(strips, ref.extents, ref.element_type)
    fill(strips, block.memory, prod(ref.extents), strips.encode(strips.scalars[op.pad]))
    strips.views[op.result] = whole(strips.builder, block.memory, ref.element_type, op.result, list(ref.extents))


def _strip(strips: ThreadStrips, op: Operation) -> None:
    """Evaluated where it is used."""


_BLOCK_OPS: dict[type[Operation], Lower] = {
    tile.AllocOp: _lower_alloc,
    tile.ConcatOp: lower_concat,
    tile.DotOp: lower_dot,
    tile.ReduceOp: lower_reduce,
    tile.ReshapeOp: _strip,
    tile.SliceOp: _strip,
    tile.StoreOp: lower_store,
    tile.TopMergeOp: lower_top_merge,
    tile.TransposeOp: _strip,
}
