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

BANDS = (8, 4, 2)
"""Sums that a thread may hold, the most first."""


class Dot:
    """One product being lowered."""

    def __init__(self, strips: ThreadStrips, op: tile.DotOp) -> None:
        self.strips, self.op = strips, op
        self.element = element_type(op.acc.type)
        self.a, self.b = materialise(strips, op.a), materialise(strips, op.b)
        (self.m, self.k), self.n = self.a.shape, self.b.shape[1]
        self.target: Materialised = allocate(strips, (self.m, self.n), self.element)

    @property
    def band(self) -> int:
        """Rows of a column that one thread takes together, so that it reads the right operand once for all of them."""
        fits = [rows for rows in BANDS if self.m % rows == 0 and self.m // rows * self.n >= self.strips.threads.threads]
        return fits[0] if fits else 1

    def lower(self) -> None:
        band = self.band
        self.strips.threads.spread(self.m // band * self.n, lambda index: self._column(index, band))
        self.strips.blocks[self.op.result] = self.target

    def _column(self, index: Index, band: int) -> None:
        """``band`` elements of one column of the result."""
        builder = self.strips.builder
        first, column = self.strips.coordinates((self.m // band, self.n), index)
        rows = [builder.add(builder.mul(first, band), number) for number in range(band)]
        starts = [self.strips.element(self.op.acc, (row, column)) for row in rows]

        def step(at: Index, held: list[SSAValue]) -> list[SSAValue]:
            right = self._read(self.b, builder.add(builder.mul(at, self.n), column))
            left = [self._read(self.a, builder.add(builder.mul(row, self.k), at)) for row in rows]
            return [self._multiply_add(a, right, total) for a, total in zip(left, held, strict=True)]

        totals = builder.loop(0, self.k, 1, starts, step)
        for row, total in zip(rows, totals, strict=True):
            builder.store(total, self.target.memory, builder.add(builder.mul(row, self.n), column))

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
