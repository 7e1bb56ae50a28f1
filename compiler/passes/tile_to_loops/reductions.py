"""Reductions in order R: chunks of 4096, lanes, a halving tree; never wider or narrower than the op says.

Lanes of R are spread over as many vectors as they need, so 4, 8 or 16 lanes a vector give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import AnyFloat, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import tile, vector_ext
from ...dialects.tile.compute import CHUNK
from ...dialects.tile.reduction import identity, safe_flags
from ...dialects.tile.types import element_type, shape_of
from .columns import Columns, Strip, ceil_power_of_two
from .loop_builder import Index, LoopBuilder
from .strips import Bounds, Memo, Strips
from .tails import quiet_from, uniform_tail
from .views import storage_type
from .walls import allocate, flat_index, materialise

_FLOAT: dict[str, type[arith.FloatingPointLikeBinaryOperation]] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
}
_INTEGER: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "maxs": arith.MaxSIOp,
    "maxu": arith.MaxUIOp,
    "mins": arith.MinSIOp,
    "minu": arith.MinUIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}
Combine = Callable[[SSAValue, SSAValue], SSAValue]

OUTER_VECTORS = 8
"""Vectors of columns that an outer reduction keeps in registers."""


def combiner(builder: LoopBuilder, op: tile.ReduceOp) -> Combine:
    """Joins two partial results (scalars or vectors)."""
    kind = op.kind.data
    if isinstance(element_type(op.operand.type), AnyFloat):
        flags, float_op = safe_flags(op.fastmath), _FLOAT[kind]
        return lambda a, b: builder.binary(float_op, a, b, {"fastmath": flags})
    integer_op = _INTEGER[kind]
    return lambda a, b: builder.binary(integer_op, a, b)


def halve(builder: LoopBuilder, value: SSAValue, combine: Combine) -> SSAValue:
    """The halving tree inside one vector: lane i meets lane i + n/2."""
    while isinstance(value.type, VectorType):
        lanes = value.type.get_shape()[0]
        if lanes == 1:
            return _first_lane(builder, value)
        half = lanes // 2
        low, high = (builder.shuffle(value, value, range(start, start + half)) for start in (0, half))
        if half == 1:
            low, high = _first_lane(builder, low), _first_lane(builder, high)
        value = combine(low, high)
    return value


def _first_lane(builder: LoopBuilder, value: SSAValue) -> SSAValue:
    assert isinstance(value.type, VectorType)
    return builder.emit(vector.ExtractOp(value, [0], value.type.element_type))


def limit_of(strips: Strips, op: tile.ReduceOp) -> Index:
    """How many elements of the axis take part."""
    size = shape_of(op.operand.type)[op.axis.value.data]
    if op.count is None or size == 0:
        return size
    return strips.builder.max(strips.builder.min(strips.index(op.count), size), 0)


class MinorReduction:
    """One reduction along the last axis."""

    def __init__(self, strips: Strips, op: tile.ReduceOp) -> None:
        self.strips, self.op = strips, op
        self.size = shape_of(op.operand.type)[-1]
        self.element = element_type(op.operand.type)
        # Lanes beyond the row hold only identities, and meeting those changes nothing: leave them out.
        lanes_of_r = min(op.lanes.value.data, ceil_power_of_two(self.size))
        lanes = min(strips.lanes, lanes_of_r)
        self.columns = Columns(strips, self.size, lanes, lanes_of_r // lanes)
        self.columns.limit = limit_of(strips, op)
        self.combine = combiner(strips.builder, op)
        self.quiet: Index = self.size

    def row(self, at: tuple[Index, ...]) -> SSAValue:
        """The result for one row."""
        builder = self.strips.builder
        bounds, limit = Bounds(), self.columns.limit
        if limit != self.size:
            bounds.limits.append(limit)
        full = self.strips.columns(at, [self.op.operand], self.size, self.columns.width, bounds)
        if limit == self.size and uniform_tail(self.strips, self.op.operand, self.columns.width):
            self.quiet = quiet_from(self.strips, self.op.operand, at, bounds, self._changes_nothing_twice)

        def chunk(lower: Index, total: list[SSAValue]) -> Sequence[SSAValue]:
            upper = builder.min(builder.add(lower, CHUNK), limit)
            return [self.combine(total[0], self._chunk(at, full, lower, upper))]

        if self.size <= CHUNK:
            result = self._chunk(at, full, 0, limit)
        else:
            total = builder.scalar(identity(self.op.kind.data, self.element), self.element)
            (result,) = builder.loop(0, limit, CHUNK, [total], chunk)
        self.strips.clear_row()
        return result

    def _chunk(self, at: tuple[Index, ...], full: Index, lower: Index, upper: Index) -> SSAValue:
        """The result of columns [lower, upper), at most one chunk."""
        builder, columns = self.strips.builder, self.columns
        start = builder.constant(identity(self.op.kind.data, self.element), self.element, columns.lanes)
        middle = columns.middle(full, lower, upper)
        lanes = columns.rounds(at, lower, middle, [start] * columns.vectors, self._round)
        if middle is upper or middle == upper:
            return self._tree(lanes)
        if not isinstance(self.quiet, int):
            # From a whole round of the last columns on, lanes stay as they are.
            rounds = builder.div(builder.add(self.quiet, columns.width - 1), columns.width)
            quiet = builder.max(builder.mul(rounds, columns.width), lower)
            upper = builder.min(upper, builder.add(quiet, columns.width))
        if columns.vectors == 1:
            return self._tree(columns.edge(at, middle, upper, lanes, self._round))
        return self._tree(self._edge(at, middle, upper, lanes))

    def _changes_nothing_twice(self, element: SSAValue) -> SSAValue:
        """Whether a lane that has taken ``element`` once stays as it is when it takes it again."""
        builder, kind = self.strips.builder, self.op.kind.data
        if kind in ("add", "xor", "mul"):
            neutral = builder.scalar(int(kind == "mul"), self.element)
            if isinstance(self.element, AnyFloat):
                return builder.emit(vector_ext.CmpFOp("oeq", element, neutral))
            return builder.compare("eq", element, neutral)
        return builder.scalar(1, i1)

    def _edge(self, at: tuple[Index, ...], middle: Index, upper: Index, lanes: list[SSAValue]) -> list[SSAValue]:
        """The rest of a chunk: which lanes of R a vector belongs to depends on its column, so they wait in memory."""
        strips, builder, columns = self.strips, self.strips.builder, self.columns
        memory = builder.alloca(storage_type(self.element), columns.width)

        def one(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
            slot = builder.rem(vectors[0].point.column, columns.width)
            lane = strips.decode(builder.load(memory, slot, columns.lanes), self.element, columns.lanes)
            (joined,) = self._round(vectors, memo, [lane])
            builder.store(strips.encode(joined), memory, slot)
            return ()

        slots = range(0, columns.width, columns.lanes)
        for slot, lane in zip(slots, lanes, strict=True):
            builder.store(strips.encode(lane), memory, slot)
        columns.edge(at, middle, upper, [], one)
        return [strips.decode(builder.load(memory, slot, columns.lanes), self.element, columns.lanes) for slot in slots]

    def _round(self, vectors: Sequence[Strip], memo: Memo, lanes: list[SSAValue]) -> Sequence[SSAValue]:
        builder, result = self.strips.builder, []
        for strip, lane in zip(vectors, lanes, strict=True):
            joined = self.combine(lane, self.strips.evaluate(self.op.operand, strip.point, memo))
            result.append(joined if strip.exists is None else builder.select(strip.exists, joined, lane))
        return result

    def _tree(self, lanes: list[SSAValue]) -> SSAValue:
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [self.combine(low, high) for low, high in zip(lanes[:half], lanes[half:], strict=True)]
        return halve(self.strips.builder, lanes[0], self.combine)


def _reduce_minor(strips: Strips, op: tile.ReduceOp) -> None:
    reduction, shape = MinorReduction(strips, op), shape_of(op.result.type)
    if not shape:
        strips.scalars[op.result] = reduction.row(())
        return
    target = allocate(strips, shape, element_type(op.result.type))

    def row(at: tuple[Index, ...]) -> None:
        result = strips.encode(reduction.row(at))
        strips.builder.store(result, target.memory, flat_index(strips, shape, at[:-1], at[-1]))

    strips.builder.nest(list(shape), row)
    strips.blocks[op.result] = target


class OuterReduction:
    """One reduction along an axis that is not the last: vectors of columns, elements of the axis one after another.

    Several vectors of neighbouring columns go together, so that memory is read in longer runs.
    """

    def __init__(self, strips: Strips, op: tile.ReduceOp) -> None:
        if op.lanes.value.data != 1:
            raise DiagnosticException(
                f"tile.reduce: lanes must be 1 along an axis that is not the last, not {op.lanes.value.data}"
            )
        self.strips, self.op, self.axis = strips, op, op.axis.value.data
        self.shape, self.element = shape_of(op.result.type), element_type(op.operand.type)
        for block in _regrouped_blocks(strips, op.operand):
            materialise(strips, block)
        self.limit, self.combine = limit_of(strips, op), combiner(strips.builder, op)
        lanes = min(strips.lanes, ceil_power_of_two(self.shape[-1]))
        vectors = max(1, min(OUTER_VECTORS, self.shape[-1] // lanes))
        self.columns = Columns(strips, self.shape[-1], lanes, vectors)
        self.target = allocate(strips, self.shape, self.element)

    def lower(self) -> None:
        """Reduces every column into the target."""
        self.strips.builder.nest(list(self.shape[:-1]), self._row)
        self.strips.blocks[self.op.result] = self.target

    def _row(self, at: tuple[Index, ...]) -> None:
        strips, bounds = self.strips, Bounds()
        # What is valid at both ends of the axis is valid in between: places only ascend along it.
        strips.prepare(self.op.operand, self._place(at, strips.builder.sub(self.limit, 1)), bounds)
        columns = self.columns
        full = strips.columns(self._place(at, 0), [self.op.operand], columns.size, columns.width, bounds)
        strips.clear_row()
        columns.run(at, full, 0, columns.size, [], lambda vectors, _, __: self._round(at, vectors))

    def _place(self, at: tuple[Index, ...], k: Index) -> tuple[Index, ...]:
        return (*at[: self.axis], k, *at[self.axis :])

    def _round(self, at: tuple[Index, ...], vectors: Sequence[Strip]) -> Sequence[SSAValue]:
        strips, builder = self.strips, self.strips.builder
        start = builder.constant(identity(self.op.kind.data, self.element), self.element, self.columns.lanes)
        starts = [start] * len(vectors)

        def one(k: Index, totals: list[SSAValue]) -> Sequence[SSAValue]:
            memo: Memo = {}
            points = [strip.point.at_row(self._place(at, k)) for strip in vectors]
            values = [strips.evaluate(self.op.operand, point, memo) for point in points]
            return [self.combine(total, value) for total, value in zip(totals, values, strict=True)]

        def chunk(lower: Index, totals: list[SSAValue]) -> Sequence[SSAValue]:
            parts = builder.loop(lower, builder.min(builder.add(lower, CHUNK), self.limit), 1, starts, one)
            return [self.combine(total, part) for total, part in zip(totals, parts, strict=True)]

        if shape_of(self.op.operand.type)[self.axis] <= CHUNK:
            results = builder.loop(0, self.limit, 1, starts, one)
        else:
            results = builder.loop(0, self.limit, CHUNK, starts, chunk)
        for strip, result in zip(vectors, results, strict=True):
            index = flat_index(strips, self.shape, at, strip.point.column)
            builder.store(strips.encode(result), self.target.memory, index)
        return ()


def _regrouped_blocks(strips: Strips, value: SSAValue) -> list[SSAValue]:
    """The reshapes that ``value`` is computed through whose places in the operand jump to and fro along an axis."""
    found, waiting, seen = [], [value], {value}
    while waiting:
        current = waiting.pop()
        op = current.owner
        if current in strips.blocks or not isinstance(op, Operation):
            continue
        if isinstance(op, tile.ReshapeOp) and not _keeps_axes(op):
            found.append(current)
            continue
        operands = dict.fromkeys(operand for operand in op.operands if shape_of(operand.type) and operand not in seen)
        waiting += operands
        seen |= set(operands)
    return found


def _keeps_axes(op: tile.ReshapeOp) -> bool:
    """Whether rows stay rows, and along each axis of them the operand's rows come in ascending order."""
    (*source, columns), (*target, width) = shape_of(op.operand.type), shape_of(op.result.type)
    before, after = ([n for n in rows if n != 1] for rows in (source, target))
    return columns == width and (before == after or len(before) <= 1)


def lower_reduce(strips: Strips, op: tile.ReduceOp) -> None:
    """``tile.reduce`` along any axis."""
    if op.axis.value.data == len(shape_of(op.operand.type)) - 1:
        _reduce_minor(strips, op)
    else:
        OuterReduction(strips, op).lower()
