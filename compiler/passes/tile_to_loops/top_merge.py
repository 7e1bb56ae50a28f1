"""``tile.top_merge``: candidates are compared with the last entry a vector at a time; few get any further.

The entries stay sorted. A candidate that beats the last one moves up past all it beats: among a few entries in
registers, all at once, among many in memory, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import AnyFloat, IntegerType, i64
from xdsl.ir import Block, Region, SSAValue

from ...dialects import tile, vector_ext
from ...dialects.tile.types import element_type, shape_of
from .columns import Columns, Strip, ceil_power_of_two
from .loop_builder import INDEX, Index, lanes_of
from .strips import Bounds, Memo, Point, Strips
from .tails import quiet_from, uniform_tail
from .walls import allocate, write_block

MOST_IN_REGISTERS = 16
"""Entries that take one or two registers of most targets."""


class TopMerge:
    """Lowers one ``tile.top_merge``."""

    def __init__(self, strips: Strips, op: tile.TopMergeOp) -> None:
        self.strips, self.op, self.builder = strips, op, strips.builder
        (self.entries,) = shape_of(op.top_values.type)
        self.values = allocate(strips, (self.entries,), element_type(op.top_values.type))
        self.indices = allocate(strips, (self.entries,), element_type(op.top_indices.type))
        self.is_float = isinstance(self.values.element, AnyFloat)

    def lower(self) -> None:
        strips, op = self.strips, self.op
        strips.blocks[op.merged_values] = self.values
        strips.blocks[op.merged_indices] = self.indices
        if self.entries == 0:
            return
        write_block(strips, op.top_values, self.values)
        write_block(strips, op.top_indices, self.indices)
        (size,) = shape_of(op.values.type)
        columns = Columns.for_stores(strips, size)
        candidates = [op.values, op.indices]
        bounds = Bounds()
        full = strips.columns((), candidates, size, columns.width, bounds)
        middle = columns.middle(full, 0, size)
        last = columns.rounds((), 0, middle, list(self._entry(self.entries - 1)), self._round)
        upper: Index = size
        if uniform_tail(strips, op.values, columns.lanes):
            upper = quiet_from(strips, op.values, (), bounds, lambda element: self._is_less(element, last[0]))
        columns.edge((), middle, upper, last, self._round)
        strips.clear_row()

    def _is_less(self, value: SSAValue, last: SSAValue) -> SSAValue:
        """Whether a candidate cannot get among the entries, whatever its index; true for a NaN."""
        if self.is_float:
            return self.builder.emit(vector_ext.CmpFOp("ult", value, last))
        return self.builder.compare("slt", value, last)

    def _entry(self, position: Index) -> tuple[SSAValue, SSAValue]:
        load = self.builder.load
        return load(self.values.memory, position, 1), load(self.indices.memory, position, 1)

    def _beats(self, value: SSAValue, index: SSAValue, other: SSAValue, other_index: SSAValue) -> SSAValue:
        """(value descending, index ascending); false for a NaN."""
        builder = self.builder
        if self.is_float:
            greater = builder.emit(vector_ext.CmpFOp("ogt", value, other))
            equal = builder.emit(vector_ext.CmpFOp("oeq", value, other))
        else:
            greater, equal = builder.compare("sgt", value, other), builder.compare("eq", value, other)
        earlier = builder.binary(arith.AndIOp, equal, builder.compare("slt", index, other_index))
        return builder.binary(arith.OrIOp, greater, earlier)

    def _round(self, vectors: Sequence[Strip], memo: Memo, last: list[SSAValue]) -> Sequence[SSAValue]:
        """Looks for values no less than the last entry's; only where there are some does it go into the details."""
        builder = self.builder
        any_lane: SSAValue | None = None
        for strip in vectors:
            value = self.strips.evaluate(self.op.values, strip.point, memo)
            least = builder.splat(last[0], strip.point.lanes)
            if self.is_float:
                hit = builder.emit(vector_ext.CmpFOp("oge", value, least))
            else:
                hit = builder.compare("sge", value, least)
            any_lane = hit if any_lane is None else builder.emit(arith.OrIOp(any_lane, hit))
        assert any_lane is not None
        bits = self._to_bits(any_lane, vectors[0].point.lanes, 0)
        found = builder.compare("ne", bits, builder.scalar(0, i64))
        types = [value.type for value in last]

        def insert() -> Sequence[SSAValue]:
            return self._insert_all(self._candidates(vectors, dict(memo), last), vectors[0].point)

        return builder.if_(found, types, insert, lambda: last)

    def _candidates(self, vectors: Sequence[Strip], memo: Memo, last: Sequence[SSAValue]) -> SSAValue:
        """The lanes of a round that beat the last entry, as bits."""
        builder, strips = self.builder, self.strips
        bits: SSAValue | None = None
        for number, strip in enumerate(vectors):
            lanes = strip.point.lanes
            value = strips.evaluate(self.op.values, strip.point, memo)
            index = strips.evaluate(self.op.indices, strip.point, memo)
            hit = self._beats(value, index, builder.splat(last[0], lanes), builder.splat(last[1], lanes))
            if strip.exists is not None:
                hit = builder.emit(arith.AndIOp(hit, strip.exists))
            mask = self._to_bits(hit, lanes, number * lanes)
            bits = mask if bits is None else builder.emit(arith.OrIOp(bits, mask))
        assert bits is not None
        return bits

    def _to_bits(self, mask: SSAValue, lanes: int, shift: int) -> SSAValue:
        builder = self.builder
        bits = mask if lanes == 1 else builder.emit(vector_ext.BitmaskOp(mask))
        wide = bits if lanes == 64 else builder.cast(bits, "extui", i64, 1)
        return wide if shift == 0 else builder.binary(arith.ShLIOp, wide, builder.scalar(shift, i64))

    def _insert_all(self, bits: SSAValue, first: Point) -> Sequence[SSAValue]:
        """Inserts the candidates whose bits are set, lowest first; gives the new last entry."""
        builder, memories = self.builder, (self.values.memory, self.indices.memory)
        lanes = ceil_power_of_two(self.entries)
        in_registers = 1 < lanes <= MOST_IN_REGISTERS
        entries = [builder.load(memory, 0, lanes) for memory in memories] if in_registers else []
        types = [i64, *[entry.type for entry in entries]]
        before, after = Block(arg_types=types), Block(arg_types=types)
        with builder.at(before):
            more = builder.compare("ne", before.args[0], builder.scalar(0, i64))
            builder.insert(scf.ConditionOp(more, *before.args))
        with builder.at(after):
            left = after.args[0]
            held: Sequence[SSAValue] = after.args[1:]
            lane = builder.cast(builder.emit(math.CountTrailingZerosOp(left)), "index_cast", INDEX, 1)
            point = Point(first.row, builder.add(first.column, lane), 1, first.masked)
            memo: Memo = {}
            value, index = (self.strips.evaluate(block, point, memo) for block in (self.op.values, self.op.indices))
            if in_registers:
                held = self._insert_in_registers(value, index, held)
            else:
                self._insert(value, index)
            lower = builder.binary(arith.SubiOp, left, builder.scalar(1, i64))
            builder.insert(scf.YieldOp(builder.binary(arith.AndIOp, left, lower), *held))
        loop = builder.insert(scf.WhileOp([bits, *entries], types, Region(before), Region(after)))
        for entry, memory in zip(loop.results[1:], memories, strict=False):
            builder.store(entry, memory, 0)
        return self._entry(self.entries - 1)

    def _insert_in_registers(self, value: SSAValue, index: SSAValue, held: Sequence[SSAValue]) -> list[SSAValue]:
        """The entries with a candidate in its place, without a branch: a misprediction costs more than all of it.

        Lanes behind the last entry hold anything; entries only move up, so it never gets among them.
        """
        builder, lanes = self.builder, lanes_of(held[0].type)
        candidate = [builder.splat(scalar, lanes) for scalar in (value, index)]
        above = [
            builder.shuffle(new, old, [0, *range(lanes, 2 * lanes - 1)])
            for new, old in zip(candidate, held, strict=True)
        ]
        beaten = self._beats(*candidate, *held)
        above_beaten = self._beats(*candidate, *above)  # false for the first: the candidate does not beat itself
        return [
            builder.select(beaten, builder.select(above_beaten, moved, new), old)
            for new, moved, old in zip(candidate, above, held, strict=True)
        ]

    def _insert(self, value: SSAValue, index: SSAValue) -> None:
        """Moves the entries that the candidate beats one down, from the last on, and puts it in the gap."""
        builder, last = self.builder, self.entries - 1

        def insert() -> Sequence[SSAValue]:
            gap = self._move_down(value, index)
            builder.store(value, self.values.memory, gap)
            builder.store(index, self.indices.memory, gap)
            return ()

        builder.if_(self._beats(value, index, *self._entry(last)), [], insert)

    def _move_down(self, value: SSAValue, index: SSAValue) -> SSAValue:
        builder = self.builder
        before, after = Block(arg_types=[INDEX]), Block(arg_types=[INDEX])
        with builder.at(before):
            gap = before.args[0]
            above_exists = builder.compare("sgt", gap, builder.ssa(0))
            beaten = builder.if_(
                above_exists,
                [IntegerType(1)],
                lambda: [self._beats(value, index, *self._entry(builder.sub(gap, 1)))],
                lambda: [builder.scalar(0, IntegerType(1))],
            )
            builder.insert(scf.ConditionOp(beaten[0], gap))
        with builder.at(after):
            above = builder.sub(after.args[0], 1)
            for memory in (self.values.memory, self.indices.memory):
                moved = builder.load(memory, above, 1)
                builder.insert(memref.StoreOp.get(moved, memory, [after.args[0]]))
            builder.insert(scf.YieldOp(builder.ssa(above)))
        start = builder.ssa(self.entries - 1)
        return builder.emit(scf.WhileOp([start], [INDEX], Region(before), Region(after)))


def lower_top_merge(strips: Strips, op: tile.TopMergeOp) -> None:
    """Merges candidates into a copy of the entries."""
    TopMerge(strips, op).lower()
