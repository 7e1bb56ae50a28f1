"""Matrix products of blocks: operands in memory that the threads share, each element of the result one chain over k."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.tile.types import element_type
from ..tile_to_loops.loop_builder import Index
from ..tile_to_loops.strips import Materialised
from .blocks import ThreadStrips, allocate, materialise


class Dot:
    """One product being lowered."""

    def __init__(self, strips: ThreadStrips, op: tile.DotOp) -> None:
        self.strips, self.op = strips, op
        self.element = element_type(op.acc.type)
        self.a, self.b = materialise(strips, op.a), materialise(strips, op.b)
        (self.m, self.k), self.n = self.a.shape, self.b.shape[1]
        self.target: Materialised = allocate(strips, (self.m, self.n), self.element)

    def lower(self) -> None:
        self.strips.threads.spread(self.m * self.n, self._element)
        self.strips.blocks[self.op.result] = self.target

    def _element(self, index: Index) -> None:
        builder = self.strips.builder
        row, column = self.strips.coordinates((self.m, self.n), index)
        start = self.strips.element(self.op.acc, (row, column))

        def step(at: Index, held: list[SSAValue]) -> list[SSAValue]:
            left = self._read(self.a, builder.add(builder.mul(row, self.k), at))
            right = self._read(self.b, builder.add(builder.mul(at, self.n), column))
            return [self._multiply_add(left, right, held[0])]

        (total,) = builder.loop(0, self.k, 1, [start], step)
        builder.store(total, self.target.memory, index)

    def _read(self, block: Materialised, index: Index) -> SSAValue:
        """An element of an operand, widened to the type of the sum."""
        value = self.strips.builder.load(block.memory, index, 1)
        if block.element == self.element:
            return value
        return self.strips.builder.cast(value, "extf" if self._is_float else "extsi", self.element)

    @property
    def _is_float(self) -> bool:
        return isinstance(self.element, AnyFloat)

    def _multiply_add(self, left: SSAValue, right: SSAValue, total: SSAValue) -> SSAValue:
        builder, flags = self.strips.builder, self.op.fastmath
        if not self._is_float:
            return builder.binary(arith.AddiOp, builder.binary(arith.MuliOp, left, right), total)
        if self.op.fused.value.data:
            return builder.emit(math.FmaOp(left, right, total, flags))
        return builder.emit(arith.AddfOp(builder.emit(arith.MulfOp(left, right, flags)), total, flags))


def lower_dot(strips: ThreadStrips, op: tile.DotOp) -> None:
    """``acc + a @ b`` into memory."""
    Dot(strips, op).lower()
