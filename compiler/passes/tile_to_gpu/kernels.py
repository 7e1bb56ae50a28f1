"""A kernel of the tile dialect as a function that a GPU launches over blocks of threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, func, gpu, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import gpu_ext, tile
from ...dialects.gpu_ext import (
    GLOBAL_SPACE,
    INDEPENDENT_ROUNDS,
    KERNEL,
    SCRATCH_BYTES,
    SHARED_BYTES,
    THREADS,
    WARP,
    memory_in,
)
from ...dialects.tile.types import shape_of
from ...ptx_artifact import CHECK_BITS, CHECK_VALUES
from ..tile_to_loops.body import Handler
from ..tile_to_loops.columns import ceil_power_of_two
from ..tile_to_loops.functions import bind_arguments, widening
from ..tile_to_loops.grid_limit import MOST_PROGRAMS
from ..tile_to_loops.layout import checks_of
from ..tile_to_loops.loop_builder import INDEX, Index
from ..tile_to_loops.views import storage_type
from .body import ThreadBody
from .threads import ThreadBuilder, X

MOST_THREADS = 256
MOST_SCRATCH = 1 << 26
"""Bytes of global memory for the blocks of one program."""

STATUS = memory_in(i64, DYNAMIC_INDEX, GLOBAL_SPACE)
SCRATCH = memory_in(i8, DYNAMIC_INDEX, GLOBAL_SPACE)
_LEADING = 2  # status and scratch


def split_of(kernel: tile.KernelOp) -> int:
    """How many leading axes are parallel: different points of them may run in different blocks of threads."""
    return next((i for i, axis in enumerate(kernel.axes) if axis.data != tile.PARALLEL), kernel.grid_rank)


def threads_of(kernel: tile.KernelOp) -> int:
    """Threads of a block: as many as have something to do at a time, within what a GPU likes."""
    busy = max(map(_busy_threads, kernel.body.walk()), default=1)
    return min(max(ceil_power_of_two(busy), WARP), MOST_THREADS)


def _busy_threads(op: Operation) -> int:
    """How many threads an op can use; 1 for ops that are computed where they are used."""
    if isinstance(op, tile.StoreOp):
        return prod(shape_of(op.value.type))
    if isinstance(op, tile.TopMergeOp):
        return prod(shape_of(op.values.type))
    if isinstance(op, tile.ReduceOp):
        size = shape_of(op.operand.type)[op.axis.value.data]
        return prod(shape_of(op.result.type)) * min(op.lanes.value.data, ceil_power_of_two(size))
    if isinstance(op, tile.DotOp | tile.ConcatOp | scf.ForOp | scf.WhileOp | scf.IfOp):
        return max((prod(shape_of(result.type)) for result in op.results), default=1)
    return 1


def argument_types(argument: Attribute) -> list[Attribute]:
    """What a kernel's argument becomes: flat global memory and one extent for each axis, or itself."""
    if isinstance(argument, tile.RefType):
        memory = memory_in(storage_type(argument.element_type), DYNAMIC_INDEX, GLOBAL_SPACE)
        return [memory, *[INDEX] * argument.rank]
    return [argument]


def lower_kernel(kernel: tile.KernelOp, symbol: str, contract: StringAttr | None) -> func.FuncOp:
    """``@symbol(status, scratch, grid sizes..., arguments...)``, run by every thread of every block."""
    return KernelLowering(kernel).function(symbol, contract)


class KernelLowering:
    """One kernel being lowered."""

    def __init__(self, kernel: tile.KernelOp) -> None:
        self.kernel, self.rank = kernel, kernel.grid_rank
        own = [lowered for argument in kernel.arguments for lowered in argument_types(argument.type)]
        self.types: list[Attribute] = [STATUS, SCRATCH, *[INDEX] * self.rank, *own]
        self.block = Block(arg_types=self.types)
        self.status, scratch = self.block.args[:_LEADING]
        self.sizes = self.block.args[_LEADING : _LEADING + self.rank]
        self.builder = ThreadBuilder(self.block, threads_of(kernel), scratch)
        self.block_id = self.builder.emit(gpu.BlockIdOp(X))
        self.numbers = {check: number for number, check in enumerate(checks_of(kernel))}
        self.program: Index = 0
        handlers: dict[type[Operation], Handler] = {tile.CheckOp: self._check, tile.PrintOp: self._refuse_print}
        self.body = ThreadBody(self.builder, kernel.body, handlers)

    def function(self, symbol: str, contract: StringAttr | None) -> func.FuncOp:
        builder, kernel = self.builder, self.kernel
        bind_arguments(self.body, kernel.arguments, self.block.args[_LEADING + self.rank :])
        for size, lowered in zip(kernel.grid_sizes, self.sizes, strict=True):
            builder.mark_natural(lowered)
            self.body.bind_scalar(size, lowered)
        self._tasks()
        builder.insert(func.ReturnOp())
        if builder.scratch_bytes > MOST_SCRATCH:
            raise DiagnosticException(
                f"tile.kernel @{kernel.sym_name.data}: its blocks take {builder.scratch_bytes} bytes of memory, but"
                f" {MOST_SCRATCH} is the most; use smaller blocks"
            )
        op = func.FuncOp(symbol, (self.types, []), Region(self.block))
        op.attributes[KERNEL] = UnitAttr()
        numbers = {THREADS: builder.threads, SHARED_BYTES: builder.shared_bytes, SCRATCH_BYTES: builder.scratch_bytes}
        op.attributes |= {name: IntegerAttr(number, i64) for name, number in numbers.items()}
        if contract is not None:
            op.attributes["halfulp.fp_contract"] = contract
        return op

    def _tasks(self) -> None:
        """A task is a point of the leading parallel axes; block b takes tasks b, b + blocks, ... in that order."""
        builder, split = self.builder, split_of(self.kernel)
        tasks: Index = 1
        for size in self.sizes[:split]:
            tasks = builder.mul(tasks, size)
        blocks = builder.emit(gpu.GridDimOp(X))
        for index in (self.block_id, blocks):
            builder.mark_natural(index)

        def task(number: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            rest = number
            for axis in reversed(range(split)):
                at = builder.rem(rest, self.sizes[axis]) if axis else rest
                rest = builder.div(rest, self.sizes[axis]) if axis else rest
                self.body.bind_scalar(self.kernel.program_ids[axis], builder.ssa(at))
            self._ordered(split, number)
            return ()

        tasks = builder.min(tasks, MOST_PROGRAMS)
        builder.loop(self.block_id, tasks, blocks, (), task)
        loop = self.block.last_op
        assert isinstance(loop, scf.ForOp)
        loop.attributes[INDEPENDENT_ROUNDS] = UnitAttr()

    def _ordered(self, axis: int, number: Index) -> None:
        """The axes from ``axis`` on, in order; ``number`` is that of the program so far, row-major."""
        builder = self.builder
        if axis == self.rank:
            self.program = number
            self.body.block(self.kernel.body.block)
            return

        def one(index: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            self.body.bind_scalar(self.kernel.program_ids[axis], builder.ssa(index))
            self._ordered(axis + 1, builder.add(builder.mul(number, self.sizes[axis]), index))
            return ()

        builder.loop(0, builder.min(self.sizes[axis], MOST_PROGRAMS), 1, (), one)

    # -- checks

    def _check(self, body: ThreadBody, op: tile.CheckOp) -> None:
        """One thread records a failure, if it is that of the least program so far and the program's first."""
        builder, strips = self.builder, body.strips
        failed = builder.binary(arith.XOrIOp, strips.scalars[op.condition], builder.scalar(1, i1))

        def record() -> Sequence[SSAValue]:
            self._record(body, op)
            return ()

        builder.alone(lambda: builder.if_(failed, [], record))

    def _record(self, body: ThreadBody, op: tile.CheckOp) -> None:
        builder = self.builder
        program = builder.cast(builder.ssa(self.program), "index_cast", i64)
        shifted = builder.binary(arith.ShLIOp, program, builder.scalar(CHECK_BITS, i64))
        key = builder.binary(arith.OrIOp, shifted, builder.scalar(self.numbers[op], i64))
        # The least of all and itself: an undivided read. No other block has this program's number.
        before = self._atomic_min(builder.scalar(-1, i64))
        is_earlier = builder.compare("ult", shifted, self._without_check(before))

        def enter() -> Sequence[SSAValue]:
            old = self._atomic_min(key)
            builder.if_(builder.compare("ult", key, old), [], values)
            return ()

        def values() -> Sequence[SSAValue]:
            first = builder.add(builder.mul(self.block_id, CHECK_VALUES), 1)
            for number, value in enumerate(op.values):
                scalar = body.strips.scalars[value]
                wide = scalar if value.type == i64 else builder.cast(scalar, widening(value.type), i64)
                builder.store(wide, self.status, builder.add(first, number))
            return ()

        builder.if_(is_earlier, [], enter)

    def _without_check(self, key: SSAValue) -> SSAValue:
        return self.builder.binary(arith.AndIOp, key, self.builder.scalar(-1 << CHECK_BITS, i64))

    def _atomic_min(self, value: SSAValue) -> SSAValue:
        return self.builder.emit(gpu_ext.AtomicMinOp(self.status, self.builder.ssa(0), value))

    def _refuse_print(self, body: ThreadBody, op: Operation) -> None:
        raise DiagnosticException(
            f"tile.print: kernel @{self.kernel.sym_name.data} prints, which it cannot do on a GPU; run it on the CPU"
        )
