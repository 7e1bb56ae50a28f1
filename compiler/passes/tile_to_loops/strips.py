"""Strip ops: blocks that are never stored but computed, a vector at a time, inside the loop that wants them.

A block is evaluated at a ``Point``: its row (all axes but the last), a column and a number of lanes. Elementwise ops,
loads, splats, iotas, broadcasts, slices and most reshapes are strips; what is not (a wall) has been materialised in
memory before and is loaded from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, VectorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import tile, vector_ext
from ...dialects.tile.types import element_type, shape_of
from .loop_builder import CACHE_LINE, INDEX, Index, LoopBuilder, bytes_of, vector_of
from .scalars import is_elementwise, lower_elementwise
from .views import RefView, address, row_conditions, starts_valid, storage_type


@dataclass(frozen=True)
class Materialised:
    """A block in flat row-major memory (one byte for an i1)."""

    memory: SSAValue
    shape: tuple[int, ...]
    element: Attribute


@dataclass(frozen=True)
class Point:
    """Where a block is evaluated. ``masked``: the columns may leave the valid range of a load.

    ``number`` counts the vectors of a round of a loop.
    """

    row: tuple[Index, ...]
    column: Index
    lanes: int
    masked: bool
    number: int = 0

    def at_row(self, row: tuple[Index, ...]) -> Point:
        """The same columns of another row."""
        return replace(self, row=row)


@dataclass
class Bounds:
    """Which columns of a row can be evaluated without masks: ``[0, limit)`` if all ``conditions`` hold."""

    conditions: list[SSAValue] = field(default_factory=list)
    limits: list[Index] = field(default_factory=list)


Memo = dict[object, SSAValue]
Place = tuple[SSAValue, tuple[Index, ...], Index]
"""A block, a row of it, and how far its columns are shifted against those of a loop."""


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _same_place_operands(op: Operation | Block) -> tuple[SSAValue, ...]:
    """The blocks of which an elementwise op wants the elements at its own place; none for other ops."""
    if isinstance(op, Block) or not is_elementwise(op):
        return ()
    return tuple(operand for operand in op.operands if shape_of(operand.type))


def repeats_column(op: Operation) -> bool:
    """Whether every column of a row of the result is the one column of a row of the operand."""
    return isinstance(op, tile.BroadcastOp) and shape_of(op.operand.type)[-1] == 1


class Strips:
    """Evaluates blocks of one kernel.

    ``scalars``, ``views`` and ``blocks`` hold what has been lowered: scalar values, references, materialised blocks.
    ``ahead``: the loads that fetch the next block, too, in the loop being emitted (`prefetch`).
    """

    def __init__(self, builder: LoopBuilder, lanes: int) -> None:
        self.builder = builder
        self.lanes = lanes
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.views: dict[SSAValue, RefView] = {}
        self.blocks: dict[SSAValue, Materialised] = {}
        self.ahead: frozenset[tile.LoadOp] = frozenset()
        self._row_memo: Memo = {}

    def index(self, value: SSAValue) -> Index:
        """A scalar index; a Python int if it is a constant."""
        lowered = self.scalars[value]
        op = lowered.owner
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return int(op.value.value.data)
        return lowered

    # -- what can be a strip

    def is_strip(self, op: Operation) -> bool:
        """Whether the result of ``op`` can be recomputed wherever it is wanted."""
        if isinstance(op, arith.ConstantOp):
            return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()
        if isinstance(op, tile.ReshapeOp):
            return self._reshape_keeps_rows(op)
        if isinstance(op, tile.TransposeOp):
            return op.axes[-1] == len(op.axes) - 1
        if isinstance(op, tile.SliceOp):
            return op.ranges[-1][1] == 1
        return is_elementwise(op) or isinstance(op, tile.LoadOp | tile.SplatOp | tile.IotaOp | tile.BroadcastOp)

    @staticmethod
    def _reshape_keeps_rows(op: tile.ReshapeOp) -> bool:
        """Whether every row of the result lies inside one row of the operand."""
        source, target = shape_of(op.operand.type), shape_of(op.result.type)
        return 0 in source or source[-1] % target[-1] == 0

    # -- coordinates

    def _reshape_row(self, op: tile.ReshapeOp, row: tuple[Index, ...]) -> tuple[tuple[Index, ...], Index]:
        """The operand's row and first column of a row of the result."""
        source, target = shape_of(op.operand.type), shape_of(op.result.type)
        linear: Index = 0
        for index, stride in zip(row, strides_of(target)[:-1], strict=True):
            linear = self.builder.add(linear, self.builder.mul(index, stride))
        column = self.builder.rem(linear, source[-1])
        linear = self.builder.div(linear, source[-1])
        indices: list[Index] = []
        for extent in reversed(source[:-1]):
            indices.append(0 if extent == 1 else self.builder.rem(linear, extent))
            linear = self.builder.div(linear, extent)
        return tuple(reversed(indices)), column

    def _operand_row(self, op: Operation, row: tuple[Index, ...]) -> tuple[tuple[Index, ...], Index]:
        """Row and column shift of the operand of a shape op, for a row of its result."""
        if isinstance(op, tile.BroadcastOp):
            source = shape_of(op.operand.type)
            return tuple(0 if n == 1 else at for n, at in zip(source[:-1], row, strict=True)), 0
        if isinstance(op, tile.TransposeOp):
            moved: list[Index] = [0] * len(row)
            for axis, at in zip(op.axes[:-1], row, strict=True):
                moved[axis] = at
            return tuple(moved), 0
        if isinstance(op, tile.SliceOp):
            *outer, (start, _) = op.ranges
            add, mul = self.builder.add, self.builder.mul
            return tuple(add(first, mul(at, step)) for (first, step), at in zip(outer, row, strict=True)), start
        assert isinstance(op, tile.ReshapeOp)
        return self._reshape_row(op, row)

    # -- before a loop over columns

    def prepare(self, value: SSAValue, row: tuple[Index, ...], bounds: Bounds) -> None:
        """Collects what the loads under ``value`` need of columns, and computes what the columns share."""
        waiting: list[Place] = [(value, row, 0)]
        seen = set(waiting)
        while waiting:
            for place in self._prepare_one(*waiting.pop(), bounds):
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)

    def _prepare_one(self, value: SSAValue, row: tuple[Index, ...], shift: Index, bounds: Bounds) -> list[Place]:
        """Prepares one op; gives the places where its operands are wanted."""
        if value in self.blocks:
            return []
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, tile.LoadOp):
            self._bound(self.views[op.ref], row, shift, bounds)
            return [] if op.mask is None else [(op.mask, row, shift)]
        if isinstance(op, tile.BroadcastOp | tile.TransposeOp | tile.SliceOp | tile.ReshapeOp):
            source_row, offset = self._operand_row(op, row)
            if not repeats_column(op):
                return [(op.operand, source_row, self.builder.add(shift, offset))]
            key = (op.operand, source_row)
            if key not in self._row_memo:
                self._row_memo[key] = self.evaluate(op.operand, Point(source_row, 0, 1, masked=True), {})
            return []
        return [(operand, row, shift) for operand in _same_place_operands(op)]

    def store_bounds(self, view: RefView, row: tuple[Index, ...]) -> Bounds:
        """The bounds of a store to ``view``."""
        bounds = Bounds()
        self._bound(view, row, 0, bounds)
        return bounds

    def _bound(self, view: RefView, row: tuple[Index, ...], shift: Index, bounds: Bounds) -> None:
        bounds.conditions += row_conditions(self.builder, view, row)
        axis = view.axes[-1]
        start = self.builder.add(axis.start, shift)
        if not starts_valid(self.builder, axis, start):
            bounds.conditions.append(self.builder.compare("sge", self.builder.ssa(start), self.builder.ssa(axis.lower)))
        bounds.limits.append(self.builder.sub(axis.limit, start))

    # -- evaluation

    def evaluate(self, value: SSAValue, point: Point, memo: Memo) -> SSAValue:
        """``value`` at ``point``: a vector of ``point.lanes``, or a scalar if that is 1."""
        waiting = [value]  # chains of elementwise ops are longer than Python's stack is deep
        while waiting:
            current = waiting[-1]
            shared = self._row_memo.get((current, point.row)) if point.lanes == 1 else None
            if shared is not None:
                memo[(current, point)] = shared
            known = (current, point) in memo or current in self.blocks
            operands = () if known else _same_place_operands(current.owner)
            missing = [operand for operand in operands if (operand, point) not in memo]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if (current, point) not in memo:
                memo[(current, point)] = self._evaluate(current, point, memo)
        return memo[(value, point)]

    def clear_row(self) -> None:
        """Forgets what columns of one row share; called when its loop is done."""
        self._row_memo = {}

    def _evaluate(self, value: SSAValue, point: Point, memo: Memo) -> SSAValue:
        if value in self.blocks:
            return self._from_memory(self.blocks[value], point)
        op = value.owner
        assert isinstance(op, Operation)
        builder, lanes = self.builder, point.lanes
        if isinstance(op, tile.SplatOp):
            return builder.splat(self.scalars[op.scalar], lanes)
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, DenseIntOrFPElementsAttr)
            return builder.constant(op.value.get_values()[0], element_type(value.type), lanes)
        if isinstance(op, tile.IotaOp):
            return self._iota(op, point)
        if isinstance(op, tile.LoadOp):
            return self._load(op, point, memo)
        if isinstance(op, tile.BroadcastOp | tile.TransposeOp | tile.SliceOp | tile.ReshapeOp):
            return self._reshaped(op, point, memo)
        blocks = {operand: memo[(operand, point)] for operand in _same_place_operands(op)}
        return lower_elementwise(builder, op, [blocks.get(o) or self.scalars[o] for o in op.operands], lanes)

    def _reshaped(
        self, op: tile.BroadcastOp | tile.TransposeOp | tile.SliceOp | tile.ReshapeOp, point: Point, memo: Memo
    ) -> SSAValue:
        row, offset = self._operand_row(op, point.row)
        if repeats_column(op):
            scalar = self.evaluate(op.operand, Point(row, 0, 1, masked=True), memo)
            return self.builder.splat(scalar, point.lanes)
        column = self.builder.add(point.column, offset)
        return self.evaluate(op.operand, Point(row, column, point.lanes, point.masked, point.number), memo)

    def _from_memory(self, block: Materialised, point: Point) -> SSAValue:
        builder = self.builder
        index: Index = point.column
        for at, stride in zip(point.row, strides_of(block.shape)[:-1], strict=True):
            index = builder.add(index, builder.mul(at, stride))
        return self.decode(builder.load(block.memory, index, point.lanes), block.element, point.lanes)

    def decode(self, stored: SSAValue, element: Attribute, lanes: int) -> SSAValue:
        """A bool from its byte; any other value is stored as it is."""
        if element != i1:
            return stored
        return self.builder.compare("ne", stored, self.builder.constant(0, IntegerType(8), lanes))

    def encode(self, value: SSAValue) -> SSAValue:
        """The byte of a bool; any other value is stored as it is."""
        lanes = value.type.get_shape()[0] if isinstance(value.type, VectorType) else 1
        element = value.type.element_type if isinstance(value.type, VectorType) else value.type
        return self.builder.cast(value, "extui", IntegerType(8), lanes) if element == i1 else value

    def _iota(self, op: tile.IotaOp, point: Point) -> SSAValue:
        builder, lanes = self.builder, point.lanes
        element, axis = element_type(op.result.type), op.axis.value.data
        minor = axis == len(point.row)
        scalar = builder.ssa(point.column if minor else point.row[axis])
        if element != INDEX:
            scalar = builder.cast(scalar, "index_cast", element, 1)
        first = builder.splat(scalar, lanes)
        if not minor or lanes == 1:
            return first
        steps = [lane & 1 for lane in range(lanes)] if element == i1 else range(lanes)
        return builder.binary(arith.AddiOp, first, builder.dense(steps, element))

    # -- loads

    def _load(self, op: tile.LoadOp, point: Point, memo: Memo) -> SSAValue:
        view = self.views[op.ref]
        mask = None if op.mask is None else self.evaluate(op.mask, point, memo)
        axis = view.axes[-1]
        index = address(self.builder, view, (*point.row, point.column))
        valid = self.valid_lanes(view, point, [] if mask is None else [mask])
        if valid is None and (axis.stride == 1 or point.lanes == 1):
            if op in self.ahead and point.lanes > 1:
                self._fetch_ahead(view, index, point, shape_of(op.result.type)[-1])
            return self.decode(self.builder.load(view.memory, index, point.lanes), view.element, point.lanes)
        pad = self._pad(op, view.element)
        if point.lanes == 1:
            assert valid is not None
            return self._load_one(view, index, valid, pad)
        return self._load_lanes(view, index, point, valid, pad)

    def _fetch_ahead(self, view: RefView, index: Index, point: Point, distance: int) -> None:
        """Fetches what lies ``distance`` elements behind the elements of ``point``, each cache line once."""
        size = bytes_of(storage_type(view.element))
        length = point.lanes * size
        if point.number * length % CACHE_LINE:
            return
        for offset in range(0, length, CACHE_LINE):
            self.builder.prefetch(view.memory, self.builder.add(index, distance + offset // size))

    def valid_lanes(self, view: RefView, point: Point, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """Which lanes of a point may be accessed: valid, and ``conditions`` hold; None if all may."""
        conditions = list(conditions)
        if point.masked:
            conditions += row_conditions(self.builder, view, point.row)
            conditions += self._column_conditions(view, point)
        return self._all_lanes(conditions, point.lanes)

    def _column_conditions(self, view: RefView, point: Point) -> list[SSAValue]:
        """i1 lanes: which columns of the point lie in the valid range of the view's last axis."""
        builder, axis, lanes = self.builder, view.axes[-1], point.lanes
        position = builder.add(axis.start, point.column)
        room = builder.sub(axis.limit, position)
        conditions = [] if isinstance(room, int) and room >= lanes else [builder.lane_mask(room, lanes)]
        if not starts_valid(builder, axis, position):
            before = builder.lane_mask(builder.sub(axis.lower, position), lanes)
            inverted = builder.binary(arith.XOrIOp, before, builder.constant(1, i1, lanes))
            conditions.append(inverted)
        return conditions

    def in_reach(self, view: RefView, point: Point, index: Index) -> Index:
        """``index``, or 0 if no lane of ``point`` is valid there.

        A masked access whose lanes are all off is allowed anywhere, but x86 CPUs take a microsecond over one to a page
        that is not there, such as those behind the end of a buffer.
        """
        if not point.masked:
            return index
        builder, axis = self.builder, view.axes[-1]
        position = builder.add(axis.start, point.column)
        conditions = row_conditions(builder, view, point.row)
        if not (isinstance(axis.limit, int) and isinstance(position, int) and position < axis.limit):
            conditions.append(builder.compare("slt", builder.ssa(position), builder.ssa(axis.limit)))
        if not starts_valid(builder, axis, position):
            last = builder.add(position, point.lanes - 1)
            conditions.append(builder.compare("sge", builder.ssa(last), builder.ssa(axis.lower)))
        some_valid = builder.both(conditions)
        return index if some_valid is None else builder.select(some_valid, builder.ssa(index), builder.ssa(0))

    def _all_lanes(self, conditions: Sequence[SSAValue], lanes: int) -> SSAValue | None:
        """The conjunction of scalar and lane conditions, as lanes."""
        scalar = self.builder.both([c for c in conditions if not isinstance(c.type, VectorType)])
        by_lane = [c for c in conditions if isinstance(c.type, VectorType)]
        if scalar is not None:
            by_lane.append(self.builder.splat(scalar, lanes))
        return self.builder.both(by_lane)

    def _pad(self, op: tile.LoadOp, element: Attribute) -> SSAValue:
        return self.builder.scalar(0, element) if op.other is None else self.scalars[op.other]

    def _load_one(self, view: RefView, index: Index, valid: SSAValue, pad: SSAValue) -> SSAValue:
        builder = self.builder

        def inside() -> Sequence[SSAValue]:
            return [self.decode(builder.load(view.memory, index, 1), view.element, 1)]

        return builder.if_(valid, [view.element], inside, lambda: [pad])[0]

    def _load_lanes(self, view: RefView, index: Index, point: Point, valid: SSAValue | None, pad: SSAValue) -> SSAValue:
        builder, storage = self.builder, storage_type(view.element)
        stride, lanes = view.axes[-1].stride, point.lanes
        lane_pad = builder.splat(self.encode(pad), lanes)
        if valid is None:
            valid = builder.constant(1, i1, lanes)
        if stride == 1:
            at = builder.ssa(self.in_reach(view, point, index))
            loaded = builder.emit(vector.MaskedLoadOp(view.memory, [at], valid, lane_pad))
        else:
            loaded = builder.emit(
                vector_ext.GatherOp(view.memory, self.lane_indices(index, stride, lanes), valid, lane_pad)
            )
        assert loaded.type == vector_of(storage, lanes)
        return self.decode(loaded, view.element, lanes)

    def lane_indices(self, index: Index, stride: Index, lanes: int) -> SSAValue:
        """Flat i64 indices of consecutive columns ``stride`` elements apart."""
        builder = self.builder
        wide = [builder.cast(builder.ssa(n), "index_cast", i64, 1) for n in (index, stride)]
        steps = builder.binary(arith.MuliOp, builder.splat(wide[1], lanes), builder.dense(range(lanes), i64))
        return builder.binary(arith.AddiOp, builder.splat(wide[0], lanes), steps)

    def columns(
        self, row: tuple[Index, ...], values: Sequence[SSAValue], size: int, width: int, bounds: Bounds | None = None
    ) -> Index:
        """How many leading columns, a multiple of ``width``, need no mask to evaluate ``values`` in ``row``."""
        if size == 0:
            return 0
        bounds = bounds or Bounds()
        for value in values:
            self.prepare(value, row, bounds)
        full: Index = size // width * width
        for limit in bounds.limits:
            full = self.builder.min(full, limit)
        if not isinstance(full, int):
            full = self.builder.max(full, 0)
            full = self.builder.mul(self.builder.div(full, width), width)
        else:
            full = max(full, 0) // width * width
        valid = self.builder.both(bounds.conditions)
        if valid is None or full == 0:
            return full
        full = self.builder.select(valid, self.builder.ssa(full), self.builder.ssa(0))
        self.builder.mark_natural(full, size)
        return full
