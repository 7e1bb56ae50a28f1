"""``drop-unsafe-flags``: takes nnan and ninf off ops where a NaN or an infinity would be more than a wrong number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.tile.types import RefType, element_type
from ..fastmath import carries_flags, own_flags, put_flags

UNSAFE = frozenset({"nnan", "ninf"})

_ALWAYS = (tile.CmpFOp, tile.SelectOp, tile.ReduceOp)
_SHAPING = (
    tile.SplatOp,
    tile.BroadcastOp,
    tile.ReshapeOp,
    tile.IotaOp,
    tile.TransposeOp,
    tile.SliceOp,
    tile.ConcatOp,
    tile.SelectOp,
    tile.CastOp,
    tile.CmpFOp,
    tile.CmpIOp,
    tile.IntDivOp,
    tile.ShiftOp,
    tile.ScaleOp,
    scf.YieldOp,
)
"""Ops whose operands only flow into their results, besides those of ``arith`` and ``math``."""


@dataclass(frozen=True)
class DropUnsafeFlagsPass(ModulePass):
    """LLVM turns the result of an op with ``nnan`` into poison where a NaN meets it, and likewise ``ninf``.

    Poison in a number is a wrong number, which the user asked for. Poison in a branch, a mask or an address is
    undefined behaviour, and poison in a lane that only holds an identity spoils all others. So both flags go from

    * comparisons, selects and reductions;
    * ops from which a branch, a loop bound, a mask, an address, a size or a check is computed;
    * ops which an infinite or NaN constant of the program itself can reach, such as the pad of a load.

    Before::

        %p = tile.load %x other %minus_infinity : ...
        %d = arith.subf %p, %max fastmath<ninf,nsz> : tensor<64xf32>
        %m = tile.cmpf olt %y, %z fastmath<nnan> : tensor<64xf32> -> tensor<64xi1>

    After::

        %p = tile.load %x other %minus_infinity : ...
        %d = arith.subf %p, %max fastmath<nsz> : tensor<64xf32>
        %m = tile.cmpf olt %y, %z : tensor<64xf32> -> tensor<64xi1>

    Values are followed through scratch memory and the buffers of one kernel, not from one kernel to the next.
    """

    name = "drop-unsafe-flags"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for part in op.body.block.ops:
            flagged = [inner for inner in part.walk() if carries_flags(inner) and UNSAFE & (own_flags(inner) or set())]
            if not flagged:
                continue
            flow = _Flow(part)
            unsafe = flow.deciding() | flow.reached_by_constants()
            for inner in flagged:
                if isinstance(inner, _ALWAYS) or inner in unsafe:
                    put_flags(inner, (own_flags(inner) or frozenset()) - UNSAFE)


class _Flow:
    """Where values go and come from inside one kernel or entry function; loops and branches are not told apart."""

    def __init__(self, part: Operation) -> None:
        self.part = part
        self.stored: dict[SSAValue, list[tile.StoreOp]] = defaultdict(list)
        self.loaded: dict[SSAValue, list[Operation]] = defaultdict(list)
        for op in part.walk():
            if isinstance(op, tile.StoreOp):
                self.stored[_root(op.ref)].append(op)
            elif isinstance(op, tile.LoadOp):
                self.loaded[_root(op.ref)].append(op)

    def deciding(self) -> set[Operation]:
        """The ops that a branch, mask, address, size or check depends on."""
        waiting = [value for op in self.part.walk() for value in _decisions(op)]
        seen, ops = set(waiting), set()
        while waiting:
            value = waiting.pop()
            if isinstance(value, OpResult):
                ops.add(value.op)
            for source in self._sources(value):
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return ops

    def _sources(self, value: SSAValue) -> Iterable[SSAValue]:
        owner = value.owner
        op = owner.parent_op() if isinstance(owner, Block) else owner
        if op is None or op is self.part:
            return ()
        if isinstance(op, tile.LoadOp):
            root = _root(op.ref)
            pads = () if op.other is None else (op.other,)
            filled = root.owner.operands if isinstance(root.owner, tile.AllocOp) else ()
            return (*pads, *filled, *(store.value for store in self.stored[root]))
        return (*op.operands, *(operand for end in _terminators(op) for operand in end.operands))

    def reached_by_constants(self) -> set[Operation]:
        """The ops that an infinite or NaN constant, or the identity of a reduction of nothing, can reach."""
        waiting: list[SSAValue] = [op.results[0] for op in self.part.walk() if _gives_identity(op)]
        seen: set[SSAValue] = set(waiting)
        ops: set[Operation] = set()
        while waiting:
            for use in list(waiting.pop().uses):
                ops.add(use.operation)
                for target in self._targets(use.operation):
                    if target not in seen and isinstance(element_type(target.type), AnyFloat):
                        seen.add(target)
                        waiting.append(target)
        return ops

    def _targets(self, op: Operation) -> Iterable[SSAValue]:
        if isinstance(op, tile.StoreOp | tile.AllocOp):
            root = _root(op.ref) if isinstance(op, tile.StoreOp) else op.result
            return (load.results[0] for load in self.loaded[root])
        structure = op.parent_op() if isinstance(op, scf.YieldOp | scf.ConditionOp) else op
        if structure is None:
            return ()
        arguments: Iterator[BlockArgument] = (
            argument for region in structure.regions for block in region.blocks for argument in block.args
        )
        return (*structure.results, *arguments)


def _root(ref: SSAValue) -> SSAValue:
    """The buffer that a reference is a part of."""
    while isinstance(ref, OpResult) and ref.op.operands and isinstance(ref.op.operands[0].type, RefType):
        ref = ref.op.operands[0]
    return ref


def _terminators(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None:
                yield block.last_op


def _decisions(op: Operation) -> Iterable[SSAValue]:
    """The operands of ``op`` that are no numbers of the result but decide what happens, or where."""
    if isinstance(op, _SHAPING) or op.dialect_name() in ("arith", "math"):
        return ()
    if isinstance(op, tile.ReduceOp):
        return () if op.count is None else (op.count,)
    if isinstance(op, tile.LoadOp | tile.StoreOp):
        return () if op.mask is None else (op.mask,)
    if isinstance(op, tile.TopMergeOp):
        return op.operands
    return [value for value in op.operands if not isinstance(element_type(value.type), AnyFloat | RefType)]


def _gives_identity(op: Operation) -> bool:
    if isinstance(op, tile.ReduceOp):
        return op.count is not None
    if not isinstance(op, arith.ConstantOp):
        return False
    if isinstance(op.value, FloatAttr):
        return not isfinite(op.value.value.data)
    is_dense_float = isinstance(op.value, DenseIntOrFPElementsAttr) and isinstance(
        element_type(op.result.type), AnyFloat
    )
    return is_dense_float and not all(map(isfinite, op.value.get_values()))  # type: ignore[union-attr]
