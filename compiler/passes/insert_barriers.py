"""``insert-barriers``: the threads of a block wait for each other wherever one reads what another has written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, gpu, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ..dialects import gpu_ext
from ..dialects.gpu_ext import INDEPENDENT_ROUNDS, KERNEL

_DIVERGENT_OPS = gpu.ThreadIdOp | gpu.LaneIdOp | gpu_ext.ShuffleDownOp | gpu_ext.AtomicMinOp
_NO_ACCESSES = memref.CastOp | memref.DimOp | gpu_ext.BlockScratchOp


@dataclass(frozen=True)
class InsertBarriersPass(ModulePass):
    """Puts a ``gpu.barrier`` between two accesses of one memory, unless both read, in functions for a GPU.

    Before::

        memref.store %sum, %slots[%thread] : memref<64xf32, 3 : i32>
        %other = memref.load %slots[%neighbour] : memref<64xf32, 3 : i32>

    After::

        memref.store %sum, %slots[%thread] : memref<64xf32, 3 : i32>
        gpu.barrier
        %other = memref.load %slots[%neighbour] : memref<64xf32, 3 : i32>

    All threads must reach a barrier. So it never stands inside of what depends on the thread's number: a loop or branch
    that does is one access of all the memory that it touches, and its own accesses must not disturb each other.
    Different arguments and allocations never overlap. An op that is given memory and not known here counts as a write.
    """

    name = "insert-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp) and KERNEL in function.attributes:
                _Barriers(function).insert()


@dataclass(frozen=True)
class _State:
    """The memory that some thread may have written, or read, since all last waited for each other."""

    written: frozenset[SSAValue] = frozenset()
    read: frozenset[SSAValue] = frozenset()

    def __or__(self, other: _State) -> _State:
        return _State(self.written | other.written, self.read | other.read)

    def without(self, memories: frozenset[SSAValue]) -> _State:
        return _State(self.written - memories, self.read - memories)

    def disturbs(self, access: _State) -> bool:
        """Whether ``access`` must wait for what is in this state."""
        return bool(self.written & (access.read | access.written) or self.read & access.written)


class _Barriers:
    """The barriers of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.body = function.body.block
        # Status words: failed checks are recorded by atomic operations, and each block of threads has words of its own.
        self.exempt = set(self.body.args[:1])
        self.arguments = frozenset(self.body.args)
        self.divergent = divergent_values(function.body)

    def insert(self) -> None:
        self._block(self.body, _State())

    def _block(self, block: Block, state: _State) -> _State:
        for op in list(block.ops):
            state = self._op(op, state)
        return state

    def _op(self, op: Operation, state: _State) -> _State:
        if isinstance(op, gpu.BarrierOp):
            return _State()
        if not op.regions or self._is_divergent(op):
            access = self._accesses(op)
            if state.disturbs(access):
                block = op.parent
                assert block is not None
                block.insert_op_before(gpu.BarrierOp(), op)
                state = _State()
            return state | access
        if isinstance(op, scf.IfOp):
            ends = [self._block(region.block, state) for region in op.regions if region.blocks]
            return ends[0] | (ends[1] if len(ends) > 1 else state)
        return self._loop(op, state)

    def _loop(self, op: Operation, state: _State) -> _State:
        """Rounds are taken until what one may find from the round before it is known."""
        first, *rest = [region.block for region in op.regions]
        while True:
            end = tested = self._block(first, state)
            for block in rest:
                end = self._block(block, end)
            following = end.without(self.arguments) if INDEPENDENT_ROUNDS in op.attributes else end
            if following | state == state:
                # A while loop is left where its condition is tested, a for loop there or before its first round.
                return tested if rest else tested | state
            state = state | following

    def _is_divergent(self, op: Operation) -> bool:
        """Whether threads may run through ``op`` differently."""
        if isinstance(op, scf.WhileOp):
            condition = op.before_region.block.last_op
            assert isinstance(condition, scf.ConditionOp)
            return condition.condition in self.divergent
        if isinstance(op, scf.ForOp):
            return any(bound in self.divergent for bound in (op.lb, op.ub, op.step))
        assert isinstance(op, scf.IfOp), f"{op.name} has regions that are not understood here"
        return op.cond in self.divergent

    def _accesses(self, op: Operation) -> _State:
        written, read = set(), set()
        for inner in op.walk():
            if isinstance(inner, memref.StoreOp):
                written.add(_root(inner.memref))
            elif isinstance(inner, memref.LoadOp):
                read.add(_root(inner.memref))
            elif not isinstance(inner, _NO_ACCESSES):
                written |= {_root(operand) for operand in inner.operands if isinstance(operand.type, MemRefType)}
        return _State(frozenset(written - self.exempt), frozenset(read - self.exempt))


def _root(memory: SSAValue) -> SSAValue:
    while isinstance(memory.owner, memref.CastOp):
        memory = memory.owner.source
    return memory


def divergent_values(body: Region) -> set[SSAValue]:
    """The values that may differ from thread to thread: what comes from its number, or by a path of its own."""
    divergent: set[SSAValue] = set()
    while True:
        before = len(divergent)
        for op in body.walk():
            divergent.update(_newly_divergent(op, divergent))
        if len(divergent) == before:
            return divergent


def _newly_divergent(op: Operation, divergent: set[SSAValue]) -> Iterator[SSAValue]:
    if isinstance(op, _DIVERGENT_OPS):
        yield from op.results
    elif isinstance(op, scf.IfOp):
        for region in op.regions:
            if region.blocks and region.block.last_op is not None:
                yield from _same(op.results, region.block.last_op.operands, divergent, op.cond in divergent)
    elif isinstance(op, scf.ForOp):
        yield from _of_for(op, divergent)
    elif isinstance(op, scf.WhileOp):
        yield from _of_while(op, divergent)
    elif any(operand in divergent for operand in op.operands):
        yield from op.results


def _same(
    targets: Sequence[SSAValue],
    sources: Sequence[SSAValue],
    divergent: set[SSAValue],
    all_of_them: bool = False,
) -> Iterator[SSAValue]:
    for target, source in zip(targets, sources, strict=True):
        if all_of_them or source in divergent:
            yield target


def _of_for(op: scf.ForOp, divergent: set[SSAValue]) -> Iterator[SSAValue]:
    body = op.body.block
    assert body.last_op is not None
    bounds = any(bound in divergent for bound in (op.lb, op.ub, op.step))
    if bounds:
        yield body.args[0]
    for sources in (op.iter_args, body.last_op.operands):
        yield from _same(body.args[1:], sources, divergent, bounds)
        yield from _same(op.results, sources, divergent, bounds)


def _of_while(op: scf.WhileOp, divergent: set[SSAValue]) -> Iterator[SSAValue]:
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert after.last_op is not None
    own_path = condition.condition in divergent
    for sources in (op.arguments, after.last_op.operands):
        yield from _same(before.args, sources, divergent, own_path)
    yield from _same(after.args, condition.args, divergent, own_path)
    yield from _same(op.results, condition.args, divergent, own_path)
