"""Lowers the ops of a tile region in order: scalars and walls where they stand, strips where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import tile
from ...dialects.tile.types import element_type, shape_of
from .dot import lower_dot
from .loop_builder import Index, LoopBuilder
from .placement import Placement
from .prefetch import Ahead
from .reductions import lower_reduce
from .scalars import is_elementwise, lower_elementwise, lower_index
from .strips import Materialised, Point, Strips
from .top_merge import lower_top_merge
from .views import is_dynamic, storage_type, whole, window
from .walls import (
    allocate,
    lower_concat,
    lower_constant,
    lower_gathered,
    lower_reshape,
    lower_store,
    materialise,
    write_block,
)

_TERMINATORS = scf.YieldOp | scf.ConditionOp | tile.ReturnOp | func.ReturnOp
Handler = Callable[[Any, Any], None]
"""Takes the lowering and an op of the class it is registered for."""


class BodyLowering:
    """Lowers the body of one kernel, or of the entry function, into the function that ``builder`` emits."""

    def __init__(
        self,
        builder: LoopBuilder,
        lanes: int,
        region: Region,
        handlers: dict[type[Operation], Handler],
        strips: Strips | None = None,
    ) -> None:
        """``strips`` evaluates blocks, by default a vector of ``lanes`` at a time."""
        self.builder = builder
        self.strips = strips or Strips(builder, lanes)
        self.placement = Placement(self.strips, region)
        self.handlers = handlers
        self.goes_on: Callable[[], SSAValue] | None = None
        """Emits a condition without which every ``scf.while`` ends."""
        self.ahead: Ahead = {}

    # -- values

    def bind_scalar(self, value: SSAValue, lowered: SSAValue) -> None:
        self.strips.scalars[value] = lowered

    def bind_ref(self, value: SSAValue, memory: SSAValue, extents: Sequence[Index]) -> None:
        """``value`` is all of ``memory``; ``extents`` has one index for each axis."""
        ref = value.type
        assert isinstance(ref, tile.RefType)
        known = [at if is_dynamic(n) else n for n, at in zip(ref.extents, extents, strict=True)]
        self.strips.views[value] = whole(self.builder, memory, ref.element_type, value, known)

    # -- blocks in memory; the threads of a GPU do it otherwise (tile_to_gpu)

    def allocate(self, shape: Sequence[int], element: Attribute) -> Materialised:
        """Room for a block."""
        return allocate(self.strips, shape, element)

    def write_block(self, value: SSAValue, target: Materialised) -> None:
        """Evaluates ``value`` into ``target``."""
        write_block(self.strips, value, target)

    def materialise(self, value: SSAValue) -> Materialised:
        """``value`` in memory; computed there if it is not yet."""
        return materialise(self.strips, value)

    # -- ops

    def block(self, block: Block) -> None:
        """All ops of a block, up to its terminator."""
        for op in block.ops:
            if op is not block.last_op or not isinstance(op, _TERMINATORS):
                self.op(op)

    def op(self, op: Operation) -> None:
        self.strips.ahead = self.ahead.get(op, frozenset())
        handler = self.handlers.get(type(op)) or _HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
        elif is_elementwise(op):
            self._elementwise(op)
        else:
            raise DiagnosticException(f"convert-tile-to-loops: cannot lower {op.name}")
        for result in op.results:
            if result in self.placement.forced:
                self.materialise(result)
        self.strips.ahead = frozenset()

    def _elementwise(self, op: Operation) -> None:
        (result,) = op.results
        if shape_of(result.type):
            return
        if isinstance(result.type, IndexType):
            index = lower_index(self.builder, op, [self.strips.index(operand) for operand in op.operands])
            if index is not None:
                self.bind_scalar(result, self.builder.ssa(index))
                return
        operands = [self.strips.scalars[operand] for operand in op.operands]
        self.bind_scalar(result, lower_elementwise(self.builder, op, operands, 1))

    def constant(self, op: arith.ConstantOp) -> None:
        if shape_of(op.result.type):
            if not self.strips.is_strip(op):
                lower_constant(self.strips, op)
            return
        value = op.value
        assert hasattr(value, "value")
        self.bind_scalar(op.result, self.builder.scalar(value.value.data, op.result.type))

    def strip_or(self, op: Operation, wall: Callable[[], None]) -> None:
        """Leaves a strip to its users; anything else is computed now."""
        if not self.strips.is_strip(op):
            wall()

    def extract(self, op: tile.ExtractOp) -> None:
        builder, shape = self.builder, shape_of(op.block.type)
        indices = [self.strips.index(index) for index in op.indices]
        zero = builder.scalar(0, op.result.type)
        if 0 in shape:
            self.bind_scalar(op.result, zero)
            return
        if all(isinstance(at, int) and 0 <= at < n for at, n in zip(indices, shape, strict=True)):
            self.bind_scalar(op.result, self._element(op, indices))
            return
        inside = builder.both(
            [builder.compare("ult", builder.ssa(at), builder.ssa(n)) for at, n in zip(indices, shape, strict=True)]
        )
        assert inside is not None
        result = builder.if_(inside, [op.result.type], lambda: [self._element(op, indices)], lambda: [zero])
        self.bind_scalar(op.result, result[0])

    def _element(self, op: tile.ExtractOp, indices: Sequence[Index]) -> SSAValue:
        return self.strips.evaluate(op.block, Point(tuple(indices[:-1]), indices[-1], 1, masked=True), {})

    def dim(self, op: tile.DimOp) -> None:
        axis = self.strips.views[op.ref].axes[op.axis.value.data]
        self.bind_scalar(op.result, self.builder.ssa(axis.size))

    def window(self, op: tile.WindowOp) -> None:
        indices = [self.strips.index(index) for index in op.indices]
        self.strips.views[op.result] = window(self.builder, self.strips.views[op.ref], op, indices)

    def flatten(self, op: tile.FlattenOp) -> None:
        view = self.strips.views[op.ref]
        size: Index = 1
        for axis in view.axes:
            size = self.builder.mul(size, axis.size)
        self.strips.views[op.result] = whole(self.builder, view.memory, view.element, view.root, [size])

    def reinterpret(self, op: tile.ReinterpretOp) -> None:
        builder, view = self.builder, self.strips.views[op.ref]
        sizes = [self.strips.index(extent) for extent in op.extents]
        one: Index = 1
        held = reduce(builder.mul, [axis.size for axis in view.axes], one)
        fits = self._holds(held, sizes)
        if fits is not None and sizes:  # a shape that does not hold as many elements holds none
            sizes[0] = builder.select(fits, builder.ssa(sizes[0]), builder.ssa(0))
        self.strips.views[op.result] = whole(self.builder, view.memory, view.element, view.root, sizes)

    def _holds(self, elements: Index, sizes: Sequence[Index]) -> SSAValue | None:
        """Whether ``sizes`` are positive and multiply to ``elements``, by divisions, which cannot wrap; None: yes."""
        builder, left, conditions = self.builder, elements, []
        if all(isinstance(n, int) for n in (elements, *sizes)):
            return None  # the verifier has compared them
        for size in sizes:
            divisor = builder.max(size, 1)
            rest = builder.rem(left, divisor)
            conditions += [
                builder.compare("sgt", builder.ssa(size), builder.ssa(0)),
                builder.compare("eq", builder.ssa(rest), builder.ssa(0)),
            ]
            left = builder.div(left, divisor)
        return builder.both([*conditions, builder.compare("eq", builder.ssa(left), builder.ssa(1))])

    def alloc(self, op: tile.AllocOp) -> None:
        ref = op.result.type
        assert isinstance(ref, tile.RefType)
        builder, extents = self.builder, ref.extents
        size = 1
        for extent in extents:
            size *= extent
        memory = builder.alloca(storage_type(ref.element_type), size)
        pad = self.strips.encode(self.strips.scalars[op.pad])

        def fill(at: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            builder.store(pad, memory, at)
            return ()

        builder.loop(0, size, 1, (), fill)
        self.bind_ref(op.result, memory, list(extents))

    # -- control flow: scalars are carried as values, blocks in memory

    def _carry(self, argument: SSAValue) -> Materialised:
        """Memory for a block that a loop or a branch gives on."""
        block = self.allocate(shape_of(argument.type), element_type(argument.type))
        self.strips.blocks[argument] = block
        return block

    def _scalars(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.strips.scalars[value] for value in values if not shape_of(value.type)]

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """A nested region: what is materialised inside may not have run when the region is left."""
        outside = dict(self.strips.blocks)
        try:
            yield
        finally:
            self.strips.blocks = outside

    def _write(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        """Puts the blocks among ``values`` where the blocks among ``targets`` live.

        One that is computed from the old contents of a target is copied before any target is written.
        """
        blocks = self.strips.blocks
        pairs = [(v, blocks[t]) for v, t in zip(values, targets, strict=True) if shape_of(v.type)]
        old = {target.memory for _, target in pairs}
        moved = [(v, target) for v, target in pairs if v not in blocks or blocks[v].memory is not target.memory]
        copies = {value: self._copy(value) for value, _ in moved if self._reads(value, old)}
        with self._scope():
            self.strips.blocks |= copies
            for value, target in moved:
                self.write_block(value, target)

    def _copy(self, value: SSAValue) -> Materialised:
        copy = self.allocate(shape_of(value.type), element_type(value.type))
        self.write_block(value, copy)
        return copy

    def _reads(self, value: SSAValue, memories: set[SSAValue]) -> bool:
        """Whether evaluating ``value`` loads from one of ``memories``."""
        waiting, seen = [value], {value}
        while waiting:
            current = waiting.pop()
            block = self.strips.blocks.get(current)
            if block is not None and block.memory in memories:
                return True
            if block is None and isinstance(current.owner, Operation):
                operands = {operand for operand in current.owner.operands if shape_of(operand.type)}
                waiting += operands - seen
                seen |= operands
        return False

    def _share(self, source: SSAValue, other: SSAValue) -> None:
        """``other`` names the same block as ``source``."""
        if shape_of(source.type):
            self.strips.blocks[other] = self.strips.blocks[source]

    def for_(self, op: scf.ForOp) -> None:
        builder, body = self.builder, op.body.block
        induction, carried = body.args[0], body.args[1:]
        for argument in carried:
            if shape_of(argument.type):
                self._carry(argument)
        self._write(op.iter_args, carried)

        def round_at(index: Index, scalars: list[SSAValue]) -> Sequence[SSAValue]:
            self.bind_scalar(induction, builder.ssa(index))
            self._bind_scalars(carried, scalars)
            assert body.last_op is not None
            with self._scope():
                self.block(body)
                self._write(body.last_op.operands, carried)
            return self._scalars(body.last_op.operands)

        lower, upper, step = (self.strips.index(bound) for bound in (op.lb, op.ub, op.step))
        results = builder.counted_loop(lower, upper, step, self._scalars(op.iter_args), round_at)
        self._bind_scalars(op.res, results)
        for argument, result in zip(carried, op.res, strict=True):
            self._share(argument, result)

    def _bind_scalars(self, values: Sequence[SSAValue], lowered: Sequence[SSAValue]) -> None:
        scalars = [value for value in values if not shape_of(value.type)]
        for value, result in zip(scalars, lowered, strict=True):
            self.bind_scalar(value, result)

    def while_(self, op: scf.WhileOp) -> None:
        builder = self.builder
        before, after = op.before_region.block, op.after_region.block
        for argument in (*before.args, *after.args):
            if shape_of(argument.type):
                self._carry(argument)
        self._write(op.arguments, before.args)
        lowered_before = Block(arg_types=[arg.type for arg in before.args if not shape_of(arg.type)])
        with builder.at(lowered_before), self._scope():
            self._bind_scalars(before.args, lowered_before.args)
            self.block(before)
            condition = before.last_op
            assert isinstance(condition, scf.ConditionOp)
            self._write(condition.args, after.args)
            scalars = self._scalars(condition.args)
            decision = self.strips.scalars[condition.condition]
            if self.goes_on is not None:
                decision = builder.binary(arith.AndIOp, decision, self.goes_on())
            builder.insert(scf.ConditionOp(decision, *scalars))
        lowered_after = Block(arg_types=[arg.type for arg in after.args if not shape_of(arg.type)])
        with builder.at(lowered_after), self._scope():
            self._bind_scalars(after.args, lowered_after.args)
            self.block(after)
            assert after.last_op is not None
            self._write(after.last_op.operands, before.args)
            builder.insert(scf.YieldOp(*self._scalars(after.last_op.operands)))
        types = [result.type for result in op.res if not shape_of(result.type)]
        lowered = scf.WhileOp(self._scalars(op.arguments), types, Region(lowered_before), Region(lowered_after))
        self._bind_scalars(op.res, builder.insert(lowered).results)
        for argument, result in zip(after.args, op.res, strict=True):
            self._share(argument, result)

    def if_(self, op: scf.IfOp) -> None:
        for result in op.output:
            if shape_of(result.type):
                self._carry(result)

        def branch(region: Region) -> Callable[[], Sequence[SSAValue]]:
            def build() -> Sequence[SSAValue]:
                block = region.block
                values: Sequence[SSAValue] = block.last_op.operands if block.last_op is not None else ()
                with self._scope():
                    self.block(block)
                    self._write(values, op.output)
                return self._scalars(values)

            return build

        types = [result.type for result in op.output if not shape_of(result.type)]
        otherwise = branch(op.false_region) if op.false_region.blocks else None
        results = self.builder.if_(self.strips.scalars[op.cond], types, branch(op.true_region), otherwise)
        self._bind_scalars(op.output, results)


def _strip(lowering: BodyLowering, op: Operation) -> None:
    """A strip costs nothing where it stands."""


_HANDLERS: dict[type[Operation], Handler] = {
    arith.ConstantOp: lambda b, op: b.constant(op),
    tile.SplatOp: _strip,
    tile.IotaOp: _strip,
    tile.BroadcastOp: _strip,
    tile.LoadOp: _strip,
    tile.ReshapeOp: lambda b, op: b.strip_or(op, lambda: lower_reshape(b.strips, op)),
    tile.TransposeOp: lambda b, op: b.strip_or(op, lambda: lower_gathered(b.strips, op)),
    tile.SliceOp: lambda b, op: b.strip_or(op, lambda: lower_gathered(b.strips, op)),
    tile.ConcatOp: lambda b, op: lower_concat(b.strips, op),
    tile.ExtractOp: lambda b, op: b.extract(op),
    tile.DimOp: lambda b, op: b.dim(op),
    tile.WindowOp: lambda b, op: b.window(op),
    tile.FlattenOp: lambda b, op: b.flatten(op),
    tile.ReinterpretOp: lambda b, op: b.reinterpret(op),
    tile.AllocOp: lambda b, op: b.alloc(op),
    tile.StoreOp: lambda b, op: lower_store(b.strips, op),
    tile.ReduceOp: lambda b, op: lower_reduce(b.strips, op),
    tile.TopMergeOp: lambda b, op: lower_top_merge(b.strips, op),
    tile.DotOp: lambda b, op: lower_dot(b.strips, op),
    scf.ForOp: lambda b, op: b.for_(op),
    scf.WhileOp: lambda b, op: b.while_(op),
    scf.IfOp: lambda b, op: b.if_(op),
}
