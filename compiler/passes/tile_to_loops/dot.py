"""Matrix products of blocks, in one of two ways. Each element is one chain over k that starts at ``acc``, so neither
the way nor how rows and columns are grouped changes a bit.

Many rows: a tile of sums, rows by vectors of columns, stays in registers over the chain of k; the right operand is
packed first. Few rows: the right operand is read once, where it is, a few of its rows at a time, and the sums stay in
memory. Read ``packing`` next: how the operands lie meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import AnyFloat, f64, i64
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects import tile
from ...dialects.tile.types import element_type, shape_of
from .columns import Columns, Strip, ceil_power_of_two
from .loop_builder import Index
from .packing import Factors, Left, Panels, RightRows
from .strips import Materialised, Memo, Strips
from .walls import allocate, flat_index, write_block

FEW_ROWS = 16
"""Up to so many rows of a block, packing the right operand costs more than it saves."""
FEW_K = 8
"""Rows of the right operand that are read side by side where the left one has few; those that follow are fetched."""
FEW_VECTORS = 2
"""Vectors of each of them: they all stay in registers while the rows of the left operand pass."""
SUMS = {16: 28, 8: 12, 4: 12}
"""By lanes of f32 in a vector: the registers that hold sums. The rest of the 32 or 16 is for operands."""
COLUMN_VECTORS = 2
"""Vectors of a tile of sums: each element of the left operand, repeated, serves two products."""


def lower_dot(strips: Strips, op: tile.DotOp) -> None:
    """``acc + a @ b`` into memory."""
    dot = Dot(strips, op)
    if dot.m <= FEW_ROWS:
        _ByRows(dot).lower()
    else:
        _ByTiles(dot).lower()
    strips.blocks[op.result] = dot.target


class Dot:
    """One product being lowered: its result in memory, and how much of each axis takes part."""

    def __init__(self, strips: Strips, op: tile.DotOp) -> None:
        self.strips, self.op = strips, op
        self.element = element_type(op.acc.type)
        (self.m, self.k), self.n = shape_of(op.a.type), shape_of(op.b.type)[1]
        self.rows, self.limit, self.inner = self._counts((self.m, self.n, self.k))
        self.lanes = min(strips.lanes, ceil_power_of_two(self.n))
        self.target = self._target()

    def _counts(self, sizes: tuple[int, int, int]) -> tuple[Index, Index, Index]:
        builder = self.strips.builder
        given = [self.strips.index(count) for count in self.op.counts] or list(sizes)
        rows, columns, inner = (
            builder.max(builder.min(count, size), 0) for count, size in zip(given, sizes, strict=True)
        )
        return rows, columns, inner

    def _target(self) -> Materialised:
        """Where the sums are, and start: where ``acc`` is if nothing else reads that, else in a copy."""
        acc = self.op.acc
        if acc in self.strips.blocks and _may_overwrite(acc, self.op):
            return self.strips.blocks[acc]
        target = allocate(self.strips, (self.m, self.n), self.element)
        write_block(self.strips, acc, target)
        return target

    def columns(self, vectors: int) -> Columns:
        """Loops over the columns that take part, ``vectors`` a round at most."""
        columns = Columns(self.strips, self.n, self.lanes, max(1, min(vectors, self.n // self.lanes)))
        columns.limit = self.limit
        return columns

    def load(self, row: Index, strip: Strip) -> SSAValue:
        """A vector of sums; lanes beyond the row may be anything."""
        index = flat_index(self.strips, (self.m, self.n), (row,), strip.point.column)
        return self.strips.builder.load(self.target.memory, index, strip.point.lanes)

    def store(self, value: SSAValue, row: Index, strip: Strip) -> None:
        """A vector of sums; lanes beyond the row must not reach the next one, whose sums may be there already."""
        builder = self.strips.builder
        index = flat_index(self.strips, (self.m, self.n), (row,), strip.point.column)
        if strip.exists is None:
            builder.store(value, self.target.memory, index)
        else:
            place = [builder.ssa(index)]
            builder.insert(vector.MaskedStoreOp.build(operands=[self.target.memory, place, strip.exists, value]))

    def multiply_add(self, scalar: SSAValue, right: SSAValue, total: SSAValue, lanes: int) -> SSAValue:
        """One step of the chains of a vector of sums."""
        builder, flags = self.strips.builder, self.op.fastmath
        left = builder.splat(scalar, lanes)
        if not isinstance(self.element, AnyFloat):
            return builder.binary(arith.AddiOp, builder.binary(arith.MuliOp, left, right), total)
        if self.op.fused.value.data:
            return builder.emit(math.FmaOp(left, right, total, flags))
        return builder.emit(arith.AddfOp(builder.emit(arith.MulfOp(left, right, flags)), total, flags))


def _may_overwrite(acc: SSAValue, op: tile.DotOp) -> bool:
    """Whether ``acc`` is what a loop carries and nothing but ``op`` reads it: each round has one for itself."""
    block = acc.owner
    return (
        isinstance(block, Block)
        and isinstance(block.parent_op(), scf.ForOp)
        and op.parent_block() is block
        and len(list(acc.uses)) == 1
    )


class _ByRows:
    """Few rows: for a few k at a time, each vector of the right operand meets all rows."""

    def __init__(self, dot: Dot) -> None:
        self.dot, self.builder = dot, dot.strips.builder
        self.columns = dot.columns(FEW_VECTORS)
        self.left = Left(dot.strips, dot.op.a, dot.element, dot.m)
        self.right = RightRows(dot.strips, dot.op.b, dot.element)

    def lower(self) -> None:
        dot, builder = self.dot, self.builder
        origin = self.left.pack(0, dot.rows)
        whole = builder.mul(builder.div(dot.inner, FEW_K), FEW_K)
        for lower, upper, count in ((0, whole, FEW_K), (whole, dot.inner, 1)):

            def some(k: Index, _: list[SSAValue], count: int = count) -> Sequence[SSAValue]:
                self._some(origin, k, count)
                return ()

            builder.loop(lower, upper, count, (), some)

    def _some(self, origin: Index, k: Index, count: int) -> None:
        """The products of ``count`` k from ``k`` on."""
        dot, builder = self.dot, self.builder
        inner = [builder.add(k, number) for number in range(count)]

        def round_of(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            factors = [[self.right.read(at, strip, memo) for strip in vectors] for at in inner]
            for at in inner:
                for strip in vectors:
                    self.right.fetch(builder.add(at, count), strip)

            def row(at: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
                start = builder.add(origin, builder.mul(at, self.left.stride))
                scalars = [self.left.read(start, 0, k) for k in inner]
                for number, strip in enumerate(vectors):
                    total = dot.load(at, strip)
                    for scalar, factor in zip(scalars, factors, strict=True):
                        total = dot.multiply_add(scalar, factor[number], total, strip.point.lanes)
                    dot.store(total, at, strip)
                return ()

            builder.loop(0, dot.rows, 1, (), row)
            return ()

        full = self.right.full(self.columns, inner)
        self.columns.run((k,), full, 0, self.columns.limit, [], round_of)
        dot.strips.clear_row()


@dataclass(frozen=True)
class SumTile:
    """The rows and the vectors of columns whose sums are held at once."""

    rows: int
    vectors: int

    @classmethod
    def of(cls, rows: int, columns: Columns, element: Attribute) -> SumTile:
        """As large as the registers allow; bands of rows as even as they get."""
        sums = SUMS.get(columns.strips.lanes, min(SUMS.values())) // (2 if element in (f64, i64) else 1)
        band = max(1, sums // columns.vectors)
        bands = max(1, -(-rows // band))
        return cls(max(1, -(-rows // bands)), columns.vectors)


class _ByTiles:
    """Many rows: band by band of rows, and of each panel by panel; a band's rows stay in a core's first cache."""

    def __init__(self, dot: Dot) -> None:
        self.dot, self.builder = dot, dot.strips.builder
        self.columns = dot.columns(COLUMN_VECTORS)
        self.band = SumTile.of(dot.m, self.columns, dot.element).rows
        self.left = Left(dot.strips, dot.op.a, dot.element, self.band)
        self.right = Panels(dot.strips, dot.op.b, dot.element, self.columns)

    def lower(self) -> None:
        dot, builder, band = self.dot, self.builder, self.band
        self.right.pack(dot.inner, self.columns)
        whole = builder.mul(builder.div(dot.rows, band), band)
        rest = builder.sub(dot.rows, whole)

        def one(first: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            self._band(first, band)
            return ()

        def ragged(first: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            self._band(first, band, dot.rows)
            return ()

        builder.loop(0, whole, band, (), one)
        if not isinstance(rest, int):
            builder.loop(whole, dot.rows, band, (), ragged)
        elif rest:
            self._band(whole, rest)

    def _band(self, first: Index, count: int, rows: Index | None = None) -> None:
        """``count`` rows from ``first`` on. If ``rows`` is given, all are computed and those before it are kept."""
        builder, dot = self.builder, self.dot
        places = [builder.add(first, number) for number in range(count)]
        kept = None if rows is None else [builder.compare("slt", builder.ssa(row), builder.ssa(rows)) for row in places]
        if rows is not None:
            places = [builder.min(row, dot.m - 1) for row in places]
        origin = self.left.pack(first, count if rows is None else builder.sub(rows, first))

        def panel(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            sums = [dot.load(row, strip) for row in places for strip in vectors]
            sums = builder.loop(0, dot.inner, 1, sums, lambda k, carried: self._step(origin, vectors, k, carried))
            for number, row in enumerate(places):
                values = sums[number * len(vectors) : (number + 1) * len(vectors)]
                self._store_row(values, row, vectors, None if kept is None else kept[number])
            return ()

        self.columns.run((first,), self.right.full(self.columns), 0, self.columns.limit, [], panel)

    def _step(self, origin: Index, vectors: Sequence[Strip], k: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """The products of one k: each vector of the right operand is read once for all rows."""
        factors: Factors = [self.right.read(k, strip) for strip in vectors]
        results = []
        for row in range(len(sums) // len(vectors)):
            scalar = self.left.read(origin, row, k)
            for number, strip in enumerate(vectors):
                total = sums[row * len(vectors) + number]
                results.append(self.dot.multiply_add(scalar, factors[number], total, strip.point.lanes))
        return results

    def _store_row(
        self, values: Sequence[SSAValue], row: Index, vectors: Sequence[Strip], kept: SSAValue | None
    ) -> None:
        def store() -> Sequence[SSAValue]:
            for value, strip in zip(values, vectors, strict=True):
                self.dot.store(value, row, strip)
            return ()

        if kept is None:
            store()
        else:
            self.builder.if_(kept, [], store)
