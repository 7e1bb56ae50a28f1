"""Matrix products of blocks: bands of rows by several vectors of columns stay in registers over the whole chain of k.

Each element is one chain over k that starts at ``acc``, so how rows and columns are grouped changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import AnyFloat, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import tile
from ...dialects.tile.types import element_type
from .columns import Columns, Strip
from .loop_builder import Index
from .strips import Materialised, Memo, Strips
from .walls import allocate, flat_index, materialise

REGISTERS = {16: 24, 8: 12}
"""By lanes of f32 in a vector: the vectors of sums held at once. The rest of the 32 or 16 is for operands."""
FEWEST_REGISTERS = 8


def lower_dot(strips: Strips, op: tile.DotOp) -> None:
    """``acc + a @ b`` into memory: whole bands of rows, then the rows that are left."""
    dot = _Dot(strips, op)
    rows, band = dot.m, dot.band
    whole = rows // band * band

    def one(first: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
        dot.rows(first, band)
        return ()

    strips.builder.loop(0, whole, band, (), one)
    if rows > whole:
        dot.rows(whole, rows - whole)
    strips.blocks[op.result] = dot.target


@dataclass
class _Dot:
    """One product being lowered: its operands and its result in memory."""

    strips: Strips
    op: tile.DotOp

    def __post_init__(self) -> None:
        op, strips = self.op, self.strips
        self.element = element_type(op.acc.type)
        self.a, self.b = materialise(strips, op.a), materialise(strips, op.b)
        if not _is_repeated(op.acc):
            materialise(strips, op.acc)
        (self.m, self.k), self.n = self.a.shape, self.b.shape[1]
        self.columns = Columns.for_stores(strips, self.n)
        self.target: Materialised = allocate(strips, (self.m, self.n), self.element)

    @property
    def band(self) -> int:
        """Rows of a band: their sums fill the registers."""
        registers = REGISTERS.get(self.strips.lanes, FEWEST_REGISTERS)
        width = 2 if self.element in (f64, i64) else 1
        return max(1, min(self.m, registers // (self.columns.vectors * width)))

    def rows(self, first: Index, count: int) -> None:
        """``count`` rows from ``first`` on, a round of columns at a time."""
        builder = self.strips.builder
        rows = [builder.add(first, number) for number in range(count)]

        def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            start = [self.strips.evaluate(self.op.acc, s.point.at_row((row,)), memo) for row in rows for s in vectors]
            sums = builder.loop(0, self.k, 1, start, lambda at, carried: self._step(rows, vectors, at, carried))
            places = [(row, strip) for row in rows for strip in vectors]
            for (row, strip), value in zip(places, sums, strict=True):
                self._store(value, row, strip)
            return ()

        whole = self.n // self.columns.width * self.columns.width
        self.columns.run((first,), whole, 0, self.n, [], body)

    def _step(
        self, rows: Sequence[Index], vectors: Sequence[Strip], at: Index, sums: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The products of one k: each vector of the right operand is read once for all rows."""
        strips = self.strips
        right = [
            self._read(self.b, flat_index(strips, self.b.shape, (at,), s.point.column), s.point.lanes) for s in vectors
        ]
        results = []
        for number, row in enumerate(rows):
            scalar = self._read(self.a, flat_index(strips, self.a.shape, (row,), at), 1)
            for place, strip in enumerate(vectors):
                left = strips.builder.splat(scalar, strip.point.lanes)
                results.append(self._multiply_add(left, right[place], sums[number * len(vectors) + place]))
        return results

    def _read(self, block: Materialised, index: Index, lanes: int) -> SSAValue:
        """Elements of an operand, widened to the type of the sum."""
        value = self.strips.builder.load(block.memory, index, lanes)
        if block.element == self.element:
            return value
        return self.strips.builder.cast(value, "extf" if self._is_float else "extsi", self.element, lanes)

    @property
    def _is_float(self) -> bool:
        return isinstance(self.element, AnyFloat)

    def _multiply_add(self, left: SSAValue, right: SSAValue, total: SSAValue) -> SSAValue:
        builder, flags = self.strips.builder, self.op.fastmath
        if not self._is_float:
            return builder.binary(arith.AddiOp, builder.binary(arith.MuliOp, left, right), total)
        if self.op.fused.value.data:
            return builder.emit(_fma(left, right, total, self.op))
        return builder.emit(arith.AddfOp(builder.emit(arith.MulfOp(left, right, flags)), total, flags))

    def _store(self, value: SSAValue, row: Index, strip: Strip) -> None:
        """A vector of sums; lanes beyond the row must not reach the next one, whose sums may be there already."""
        builder = self.strips.builder
        index = flat_index(self.strips, (self.m, self.n), (row,), strip.point.column)
        if strip.exists is None:
            builder.store(value, self.target.memory, index)
        else:
            place = [builder.ssa(index)]
            builder.insert(vector.MaskedStoreOp.build(operands=[self.target.memory, place, strip.exists, value]))


def _is_repeated(value: SSAValue) -> bool:
    """Whether every element is the same, so that it need not be in memory."""
    if isinstance(value.owner, tile.SplatOp):
        return True
    return isinstance(value.owner, arith.ConstantOp) and _is_splat(value.owner.value)


def _is_splat(attribute: Attribute) -> bool:
    is_splat = getattr(attribute, "is_splat", None)
    return bool(is_splat()) if is_splat is not None else False


def _fma(a: SSAValue, b: SSAValue, c: SSAValue, op: tile.DotOp) -> Operation:
    return math.FmaOp(a, b, c, op.fastmath)
