"""Kernels and entry functions of the tile dialect as functions over flat memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...artifact import (
    MAX_EXTENT,
    MOST_GRID_WORDS,
    STATUS_CHECK,
    STATUS_GRID,
    STATUS_LAUNCH,
    STATUS_LOCK,
    STATUS_PROGRAM,
    STATUS_VALUES,
)
from ...dialects import scf_ext, tile
from ...dialects.tile.kernel import MAX_CHECK_VALUES
from .body import BodyLowering, Handler
from .grid_limit import MOST_PROGRAMS, within_limit
from .launches import verify_launch
from .layout import EntryLayout, Print, checks_of, entry_layout, kernels_of, prints_of
from .loop_builder import INDEX, Index, LoopBuilder
from .prefetch import loads_ahead
from .prints import lower_print, lower_print_tensor
from .sharing import share_programs
from .signatures import STATUS, lowered_types, private_function, still_well, take_block_arguments
from .thread_arena import ArenaBlocks
from .watch import goes_on

FRAME_BYTES = 1 << 20
"""Stack that the blocks of a kernel may take; small threads have little more."""
RECORD_FAILURE = "record_failure"


def bind_arguments(lowering: BodyLowering, arguments: Sequence[SSAValue], lowered: Sequence[SSAValue]) -> None:
    """Binds tile arguments to the function's arguments that stand for them, in order."""
    rest = list(lowered)
    for argument in arguments:
        if isinstance(argument.type, tile.RefType):
            memory, extents = rest[0], rest[1 : 1 + argument.type.rank]
            for extent in extents:
                lowering.builder.mark_natural(extent, MAX_EXTENT)
            lowering.bind_ref(argument, memory, extents)
            rest = rest[1 + argument.type.rank :]
        else:
            lowering.bind_scalar(argument, rest.pop(0))


def record_failure_function() -> func.FuncOp:
    """Keeps the first failing check of a launch: that of the least program, and there the first one reached.

    Programs run on several threads, in any order; the words change under a lock, and the least program wins.
    """
    types: list[Attribute] = [STATUS, INDEX, INDEX, INDEX, *[i64] * MAX_CHECK_VALUES]
    function = private_function(RECORD_FAILURE, types, None)
    block = function.body.block
    builder = LoopBuilder(block)
    status, launch, program, check = block.args[:4]

    def word(at: int) -> SSAValue:
        return builder.load(status, at, 1)

    def wide(index: Index) -> SSAValue:
        return builder.cast(builder.ssa(index), "index_cast", i64, 1)

    def record() -> Sequence[SSAValue]:
        builder.store(wide(builder.add(launch, 1)), status, STATUS_LAUNCH)
        builder.store(wide(program), status, STATUS_PROGRAM)
        builder.store(wide(check), status, STATUS_CHECK)
        for number, value in enumerate(block.args[4:]):
            builder.store(value, status, STATUS_VALUES + number)
        return ()

    locked = Block()
    with builder.at(locked):
        nothing_yet = builder.compare("eq", word(STATUS_LAUNCH), builder.scalar(0, i64))
        earlier = builder.compare("slt", wide(program), word(STATUS_PROGRAM))
        builder.if_(builder.binary(arith.OrIOp, nothing_yet, earlier), [], record)
        builder.insert(scf_ext.YieldOp())
    builder.insert(scf_ext.CriticalOp(status, builder.ssa(STATUS_LOCK), Region(locked)))
    builder.insert(func.ReturnOp())
    return function


def widening(element: Attribute) -> str:
    """The cast from a value of a check to i64: integers are signed, but true is 1."""
    if isinstance(element, IndexType):
        return "index_cast"
    return "extui" if element == i1 else "extsi"


def _lower_check(
    lowering: BodyLowering, op: tile.CheckOp, status: SSAValue, launch: Index, program: Index, number: int
) -> None:
    builder = lowering.builder
    values = []
    for value in op.values:
        scalar = lowering.strips.scalars[value]
        values.append(scalar if value.type == i64 else builder.cast(scalar, widening(value.type), i64, 1))
    values += [builder.scalar(0, i64)] * (MAX_CHECK_VALUES - len(values))

    def fail() -> Sequence[SSAValue]:
        arguments = [builder.ssa(index) for index in (launch, program, number)]
        builder.insert(func.CallOp(RECORD_FAILURE, [status, *arguments, *values], []))
        return ()

    failed = builder.binary(arith.XOrIOp, lowering.strips.scalars[op.condition], builder.scalar(1, i1))
    builder.if_(failed, [], fail)


def _verify_frame(kernel: tile.KernelOp, nbytes: int) -> None:
    if nbytes > FRAME_BYTES:
        raise DiagnosticException(
            f"tile.kernel @{kernel.sym_name.data}: its blocks take {nbytes} bytes of stack, but"
            f" {FRAME_BYTES} is the most; use fewer blocks"
        )


def lower_kernel(
    kernel: tile.KernelOp, lanes: int, contract: StringAttr | None, prints: Mapping[Print, int]
) -> tuple[func.FuncOp, ArenaBlocks]:
    """``@kernel(status, launch, first, last, grid sizes..., arguments..., blocks...)`` runs programs [first, last).

    ``prints`` has the numbers of the module's prints. The blocks are those that lie in the arena of a thread.
    """
    rank = kernel.grid_rank
    own = [lowered for argument in kernel.arguments for lowered in lowered_types(argument.type)]
    function = private_function(kernel.sym_name.data, [STATUS, *[INDEX] * (3 + rank), *own], contract)
    block = function.body.block
    status, launch = block.args[:2]
    builder = LoopBuilder(block)
    blocks = ArenaBlocks(kernel.sym_name.data, block)
    builder.allocate_large = blocks.take
    numbers = {check: number for number, check in enumerate(checks_of(kernel))}

    def check(lowering: BodyLowering, op: Operation) -> None:
        assert isinstance(op, tile.CheckOp)
        _lower_check(lowering, op, status, launch, program[0], numbers[op])

    def show(lowering: BodyLowering, op: tile.PrintOp) -> None:
        lower_print(lowering, op, status, prints[op])

    program: list[Index] = []
    lowering = BodyLowering(builder, lanes, kernel.body, {tile.CheckOp: check, tile.PrintOp: show})
    lowering.ahead = loads_ahead(lowering.placement)
    bind_arguments(lowering, kernel.arguments, block.args[4 + rank :])
    _run_programs(lowering, kernel, block.args[2 : 4 + rank], program)
    builder.insert(func.ReturnOp())
    _verify_frame(kernel, builder.frame_bytes)
    blocks.verify()
    take_block_arguments(function)
    return function, blocks


def _run_programs(
    lowering: BodyLowering, kernel: tile.KernelOp, arguments: Sequence[SSAValue], program: list[Index]
) -> None:
    """The loop over programs, given first, last and grid sizes; ``program`` holds the number of the one that runs."""
    builder = lowering.builder
    first, last, *sizes = arguments
    for argument in arguments:
        builder.mark_natural(argument)
    for size, lowered in zip(kernel.grid_sizes, sizes, strict=True):
        lowering.bind_scalar(size, lowered)

    def one(index: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
        program[:] = [index]
        for axis in reversed(range(len(sizes))):
            at = builder.rem(index, sizes[axis]) if axis else index
            index = builder.div(index, sizes[axis]) if axis else index
            lowering.bind_scalar(kernel.program_ids[axis], builder.ssa(at))
        lowering.block(kernel.body.block)
        return ()

    builder.loop(first, builder.min(last, MOST_PROGRAMS), 1, (), one)


def launch_name(kernel: str) -> str:
    """The function that runs a whole launch of a kernel."""
    return f"{kernel}.launch"


def launch_function(
    kernel: tile.KernelOp, contract: StringAttr | None, blocks: ArenaBlocks, arena_bytes: int
) -> func.FuncOp:
    """``@kernel.launch(status, launch, grid sizes..., arguments...)`` runs all programs, unless a check has failed.

    Several threads share them where that pays, each with an arena of ``arena_bytes`` for ``blocks``. This stands once
    for each kernel, so that an entry function, which may launch hundreds, stays without control flow: passes take time
    quadratic in the blocks of a function.
    """
    rank, name = kernel.grid_rank, kernel.sym_name.data
    own = [lowered for argument in kernel.arguments for lowered in lowered_types(argument.type)]
    function = private_function(launch_name(name), [STATUS, *[INDEX] * (1 + rank), *own], contract)
    block = function.body.block
    status, launch, *rest = block.args
    builder = LoopBuilder(block)
    for size in rest[:rank]:
        builder.mark_natural(size)

    def run(first: Index, last: Index, thread: Index) -> None:
        memory = blocks.arguments(builder, status, thread, arena_bytes)
        arguments = [status, launch, builder.ssa(first), builder.ssa(last), *rest, *memory]
        builder.insert(func.CallOp(name, arguments, []))

    def share() -> Sequence[SSAValue]:
        counts = _element_counts(builder, kernel, rest[rank:])
        share_programs(builder, kernel, status, rest[:rank], counts, run, numbered=len(blocks) > 0)
        return ()

    def start() -> Sequence[SSAValue]:
        if checks_of(kernel) and 1 < rank <= MOST_GRID_WORDS:
            for axis, size in enumerate(rest[:rank]):
                builder.store(builder.cast(size, "index_cast", i64, 1), status, STATUS_GRID + axis)
        within_limit(builder, status, launch, len(checks_of(kernel)), rest[:rank], share)
        return ()

    builder.if_(still_well(builder, status), [], start)
    builder.insert(func.ReturnOp())
    return function


def _element_counts(builder: LoopBuilder, kernel: tile.KernelOp, lowered: Sequence[SSAValue]) -> list[Index]:
    """The elements of each buffer among a kernel's arguments."""
    counts: list[Index] = []
    position = 0
    for argument in kernel.arguments:
        if isinstance(argument.type, tile.RefType):
            count: Index = 1
            for axis, extent in enumerate(argument.type.extents):
                size = lowered[position + 1 + axis]
                builder.mark_natural(size, MAX_EXTENT)
                count = builder.mul(count, size if extent == DYNAMIC_INDEX else extent)
            counts.append(count)
        position += len(lowered_types(argument.type))
    return counts


def _holds(op: Operation, kinds: Collection[type[Operation]]) -> bool:
    """Whether ``op`` is of one of these kinds, or has one inside."""
    return any(type(inner) in kinds for inner in op.walk())


class EntryLowering:
    """Lowers an entry function to one function for each of its segments.

    Every segment takes the status words, the computed dims, then flat memory and extents of each buffer. The pure
    ops of earlier segments stand in later ones too; LLVM drops those that are not used. A size that an earlier
    segment has set is read back, since the memory it was computed from may serve another buffer by then.
    """

    def __init__(self, module: ModuleOp, entry: func.FuncOp, lanes: int, contract: StringAttr | None) -> None:
        self.entry, self.lanes, self.contract = entry, lanes, contract
        self.layout: EntryLayout = entry_layout(module, entry)
        self.kernels = kernels_of(module)
        self.prints = prints_of(module)

    def functions(self) -> list[func.FuncOp]:
        return [self._segment(number) for number in range(len(self.layout.segments))]

    def _segment(self, number: int) -> func.FuncOp:
        refs = [*self.entry.body.block.args, *[op.result for op in self.layout.buffers]]
        own = [lowered for ref in refs for lowered in lowered_types(ref.type)]
        name = f"{self.entry.sym_name.data}.{number}"
        arguments = sum(len(lowered_types(argument.type)) for argument in self.entry.body.block.args)
        # Buffers may lie in the same memory, one after another.
        shared = [i for i, t in enumerate(own, 2) if i >= 2 + arguments and isinstance(t, MemRefType)]
        function = private_function(name, [STATUS, STATUS, *own], self.contract, shared)
        function.attributes["halfulp.entry"] = UnitAttr()
        block = function.body.block
        builder = LoopBuilder(block)
        effects: dict[type[Operation], Handler] = {
            tile.BufferOp: lambda lowering, op: None,
            tile.LaunchOp: lambda lowering, op: self._launch(lowering, op, block.args[0]),
            tile.CheckOp: lambda lowering, op: self._check(lowering, op, block.args[0]),
            tile.PrintOp: lambda lowering, op: lower_print(lowering, op, block.args[0], self.prints[op]),
            tile.PrintTensorOp: lambda lowering, op: lower_print_tensor(lowering, op, block.args[0], self.prints[op]),
            tile.SetDimOp: lambda lowering, op: self._set_dim(lowering, op, block.args[1]),
            tile.StoreOp: self._refuse_store,
        }
        lowering = BodyLowering(builder, self.lanes, self.entry.body, effects)
        lowering.goes_on = lambda: goes_on(builder, block.args[0])
        bind_arguments(lowering, refs, block.args[2:])
        for earlier, ops in enumerate(self.layout.segments[: number + 1]):
            for op in ops:
                if isinstance(op, tile.SetDimOp) and earlier < number:
                    self._read_dim(lowering, op, block.args[1])
                elif not isinstance(op, func.ReturnOp) and (earlier == number or not _holds(op, effects)):
                    lowering.op(op)
        builder.insert(func.ReturnOp())
        return function

    def _launch(self, lowering: BodyLowering, op: Operation, status: SSAValue) -> None:
        assert isinstance(op, tile.LaunchOp)
        builder, name = lowering.builder, op.kernel.string_value()
        verify_launch(op, self.kernels[name])
        sizes = [builder.max(lowering.strips.index(size), 0) for size in op.grid]
        arguments = [builder.ssa(index) for index in (self.layout.launches[op], *sizes)]
        for argument in op.arguments:
            arguments += self._argument(lowering, argument)
        builder.insert(func.CallOp(launch_name(name), [status, *arguments], []))

    def _argument(self, lowering: BodyLowering, argument: SSAValue) -> list[SSAValue]:
        if not isinstance(argument.type, tile.RefType):
            return [lowering.strips.scalars[argument]]
        view = lowering.strips.views[argument]
        return [view.memory, *[lowering.builder.ssa(axis.size) for axis in view.axes]]

    def _check(self, lowering: BodyLowering, op: Operation, status: SSAValue) -> None:
        assert isinstance(op, tile.CheckOp)

        def check() -> Sequence[SSAValue]:
            _lower_check(lowering, op, status, self.layout.launches[op], 0, 0)
            return ()

        lowering.builder.if_(still_well(lowering.builder, status), [], check)

    def _set_dim(self, lowering: BodyLowering, op: Operation, computed: SSAValue) -> None:
        assert isinstance(op, tile.SetDimOp)
        at = self.layout.symbols.index(op.symbol.data)
        value = lowering.builder.cast(lowering.builder.ssa(lowering.strips.index(op.value)), "index_cast", i64, 1)
        lowering.builder.store(value, computed, at)

    def _read_dim(self, lowering: BodyLowering, op: tile.SetDimOp, computed: SSAValue) -> None:
        at = self.layout.symbols.index(op.symbol.data)
        value = lowering.builder.load(computed, at, 1)
        lowering.bind_scalar(op.value, lowering.builder.cast(value, "index_cast", INDEX, 1))

    def _refuse_store(self, lowering: BodyLowering, op: Operation) -> None:
        raise DiagnosticException(
            f"tile.store: stands in a kernel, not in the entry function @{self.entry.sym_name.data};"
            " launch a kernel that writes"
        )
