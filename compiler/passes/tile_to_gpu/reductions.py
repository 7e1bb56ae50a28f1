"""Reductions in order R by the threads of a block: lane i of a chunk is the work of thread i of a group.

A group has as many threads as the reduction has lanes, and takes one chunk of one row a round. Its lanes meet in a
halving tree: in shared memory while they are in several warps, then by shuffles. Chunk results wait in memory and are
joined in ascending order, so the result has the bits that a CPU gives it.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import gpu_ext, tile
from ...dialects.gpu_ext import WARP
from ...dialects.tile.compute import CHUNK
from ...dialects.tile.reduction import identity
from ...dialects.tile.types import element_type, shape_of
from ..tile_to_loops.columns import ceil_power_of_two
from ..tile_to_loops.loop_builder import Index
from ..tile_to_loops.reductions import combiner, limit_of
from ..tile_to_loops.strips import Materialised
from ..tile_to_loops.views import storage_type
from .blocks import Coordinates, ThreadStrips, fill


class Reduction:
    """What all ways to reduce have in common: the op, its axis, and the result in memory."""

    def __init__(self, strips: ThreadStrips, op: tile.ReduceOp) -> None:
        self.strips, self.op, self.threads = strips, op, strips.threads
        self.axis = op.axis.value.data
        self.shape = shape_of(op.result.type)
        self.size = shape_of(op.operand.type)[self.axis]
        self.element = element_type(op.operand.type)
        self.rows = prod(self.shape)
        self.chunks = max(1, -(-self.size // CHUNK))
        self.combine = combiner(strips.builder, op)
        self.start = strips.builder.scalar(identity(op.kind.data, self.element), self.element)
        self.limit = limit_of(strips, op)

    def value(self, row: Index, at: Index) -> SSAValue:
        """Element ``at`` of the axis, in the row of this number."""
        outer: Coordinates = self.strips.coordinates(self.shape, row) if self.shape else ()
        return self.strips.element(self.op.operand, (*outer[: self.axis], at, *outer[self.axis :]))

    def lane(self, row: Index, first: Index, upper: Index, lanes: int) -> SSAValue:
        """What one lane makes of elements ``first``, ``first + lanes``, ... below ``upper``."""
        builder = self.strips.builder
        (total,) = builder.loop(
            first, upper, lanes, [self.start], lambda at, held: [self.combine(held[0], self.value(row, at))]
        )
        return total

    def store(self, value: SSAValue, memory: SSAValue, index: Index) -> None:
        self.strips.builder.store(self.strips.encode(value), memory, index)

    def load(self, memory: SSAValue, index: Index) -> SSAValue:
        return self.strips.decode(self.strips.builder.load(memory, index, 1), self.element, 1)

    def memory(self, size: int) -> SSAValue:
        return self.threads.alloca(storage_type(self.element), size)

    def finish(self, memory: SSAValue) -> None:
        """The result is in ``memory``, one element a row."""
        if self.shape:
            self.strips.blocks[self.op.result] = Materialised(memory, self.shape, self.element)
        else:
            self.strips.scalars[self.op.result] = self.load(memory, 0)


def _reduce_serially(reduction: Reduction) -> None:
    """One lane: each result is the work of one thread, chunk after chunk."""
    builder, limit = reduction.strips.builder, reduction.limit
    memory = reduction.memory(reduction.rows)

    def row(number: Index) -> None:
        def chunk(lower: Index, held: list[SSAValue]) -> list[SSAValue]:
            part = reduction.lane(number, lower, builder.min(builder.add(lower, CHUNK), limit), 1)
            return [reduction.combine(held[0], part)]

        if reduction.size <= CHUNK:
            total = reduction.lane(number, 0, limit, 1)
        else:
            (total,) = builder.loop(0, limit, CHUNK, [reduction.start], chunk)
        reduction.store(total, memory, number)

    reduction.threads.spread(reduction.rows, row)
    reduction.finish(memory)


def _reduce_in_groups(reduction: Reduction, lanes: int) -> None:
    """Several lanes, no more than there are threads: a group of threads for each chunk, as many as fit at a time."""
    threads, builder = reduction.threads, reduction.strips.builder
    groups = threads.threads // lanes
    items = reduction.rows * reduction.chunks
    parts = reduction.memory(items)
    slots = reduction.memory(threads.threads) if lanes > WARP else None
    lane, group = builder.rem(threads.thread, lanes), builder.div(threads.thread, lanes)

    def one(number: Index, _: list[SSAValue]) -> list[SSAValue]:
        item = builder.add(builder.mul(number, groups), group)
        exists = builder.compare("slt", builder.ssa(item), builder.ssa(items))
        row, chunk = builder.div(item, reduction.chunks), builder.rem(item, reduction.chunks)
        lower = builder.mul(chunk, CHUNK)
        upper = builder.min(builder.add(lower, CHUNK), reduction.limit)
        upper = builder.select(exists, builder.ssa(upper), builder.ssa(0))
        builder.mark_natural(upper, reduction.size)
        total = reduction.lane(row, builder.add(lower, lane), upper, lanes)
        total = _tree(reduction, total, lanes, slots)
        is_first = builder.compare("eq", builder.ssa(lane), builder.ssa(0))

        def keep() -> list[SSAValue]:
            reduction.store(total, parts, item)
            return []

        builder.if_(builder.emit(arith.AndIOp(is_first, exists)), [], keep)
        return []

    builder.loop(0, -(-items // groups), 1, (), one)
    _join_chunks(reduction, parts)


def _tree(reduction: Reduction, total: SSAValue, lanes: int, slots: SSAValue | None) -> SSAValue:
    """Lane i meets lane i + n/2, n halving; the first lane of each group has the result.

    Every thread takes part in every step, though only the lower half's results count: no warp falls apart, and a
    shuffle may be followed by another.
    """
    builder, thread = reduction.strips.builder, reduction.threads.thread
    while lanes > WARP:
        assert slots is not None
        reduction.store(total, slots, thread)
        half = lanes // 2
        low = builder.sub(thread, builder.mul(builder.rem(builder.div(thread, half), 2), half))
        total = reduction.combine(reduction.load(slots, low), reduction.load(slots, builder.add(low, half)))
        lanes = half
    while lanes > 1:
        lanes //= 2
        total = reduction.combine(total, builder.emit(gpu_ext.ShuffleDownOp(total, lanes)))
    return total


def _join_chunks(reduction: Reduction, parts: SSAValue) -> None:
    """The results of a row's chunks, joined in ascending order by one thread."""
    builder, chunks = reduction.strips.builder, reduction.chunks
    if chunks == 1:
        reduction.finish(parts)
        return
    memory = reduction.memory(reduction.rows)
    count = builder.div(builder.add(reduction.limit, CHUNK - 1), CHUNK)

    def row(number: Index) -> None:
        first = builder.mul(number, chunks)
        (total,) = builder.loop(
            0,
            count,
            1,
            [reduction.start],
            lambda at, held: [reduction.combine(held[0], reduction.load(parts, builder.add(first, at)))],
        )
        reduction.store(total, memory, number)

    reduction.threads.spread(reduction.rows, row)
    reduction.finish(memory)


def _reduce_wide(reduction: Reduction, lanes: int) -> None:
    """More lanes than threads: one chunk at a time, the lanes in memory, where they are halved."""
    threads, builder = reduction.threads, reduction.strips.builder
    items = reduction.rows * reduction.chunks
    parts, slots = reduction.memory(items), reduction.memory(lanes)

    def one(item: Index, _: list[SSAValue]) -> list[SSAValue]:
        row, chunk = builder.div(item, reduction.chunks), builder.rem(item, reduction.chunks)
        lower = builder.mul(chunk, CHUNK)
        upper = builder.min(builder.add(lower, CHUNK), reduction.limit)
        threads.spread(
            lanes,
            lambda lane: reduction.store(reduction.lane(row, builder.add(lower, lane), upper, lanes), slots, lane),
        )
        half = lanes // 2
        while half:
            threads.spread(half, lambda lane, half=half: _meet(reduction, slots, lane, half))  # type: ignore[misc]
            half //= 2
        threads.alone(lambda: reduction.store(reduction.load(slots, 0), parts, item))
        return []

    builder.loop(0, items, 1, (), one)
    _join_chunks(reduction, parts)


def _meet(reduction: Reduction, slots: SSAValue, lane: Index, half: int) -> None:
    low, high = reduction.load(slots, lane), reduction.load(slots, reduction.strips.builder.add(lane, half))
    reduction.store(reduction.combine(low, high), slots, lane)


def lower_reduce(strips: ThreadStrips, op: tile.ReduceOp) -> None:
    """``tile.reduce`` along any axis."""
    is_minor = op.axis.value.data == len(shape_of(op.operand.type)) - 1
    lanes = op.lanes.value.data
    if lanes != 1 and not is_minor:
        raise DiagnosticException(f"tile.reduce: lanes must be 1 along an axis that is not the last, not {lanes}")
    reduction = Reduction(strips, op)
    # Lanes beyond the row hold only identities, and meeting those changes nothing: leave them out.
    lanes = min(lanes, ceil_power_of_two(reduction.size))
    if reduction.size == 0:
        memory = reduction.memory(reduction.rows)
        fill(strips, memory, reduction.rows, strips.encode(reduction.start))
        reduction.finish(memory)
    elif lanes == 1:
        _reduce_serially(reduction)
    elif lanes <= reduction.threads.threads:
        _reduce_in_groups(reduction, lanes)
    else:
        _reduce_wide(reduction, lanes)
