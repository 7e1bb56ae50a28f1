"""How many float operations and roundings kernels of tile IR make of one element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from .dialects import tile
from .passes.expand_math import ExpandMathPass
from .passes.expand_small_floats import ExpandSmallFloatsPass

ROUNDING_STEPS: tuple[type[Operation], ...] = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    math_dialect.SqrtOp,
    math_dialect.FmaOp,
)
"""Float ops that round once. An fma is two operations, each of the others one."""


def per_element(kernels: Sequence[tile.KernelOp], *, outside_loops: bool = False) -> tuple[int, int]:
    """Float operations and roundings of kernels for one element of their blocks, scalars aside."""
    module = ModuleOp([kernel.clone() for kernel in kernels])
    roundings = sum(_rounds_small(op) for op in _block_ops(module, outside_loops))
    ExpandSmallFloatsPass().apply(Context(), module)
    ExpandMathPass().apply(Context(), module)
    flops = 0
    for op in _block_ops(module, outside_loops):
        steps = _steps(op)
        roundings += steps > 0
        flops += steps
    return flops, roundings


def _block_ops(module: ModuleOp, outside_loops: bool) -> Iterator[Operation]:
    for op in module.walk():
        block = op.operand if isinstance(op, tile.ReduceOp) else op.results[0] if op.results else None
        if block is None or not isinstance(block.type, TensorType):
            continue
        if not (outside_loops and _in_loop(op)):
            yield op


def _in_loop(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, scf.ForOp | scf.WhileOp):
            return True
        parent = parent.parent_op()
    return False


def _steps(op: Operation) -> int:
    """Float operations of an op for one element."""
    if isinstance(op, tile.ReduceOp):
        return int(op.kind.data in ("add", "mul") and isinstance(_element(op.operand.type), AnyFloat))
    if isinstance(op, ROUNDING_STEPS):
        return 2 if isinstance(op, math_dialect.FmaOp) else 1
    return 0


def _rounds_small(op: Operation) -> bool:
    """Whether an op rounds to a type that it does not compute in: a cast to a narrower one, or work on f16 and bf16."""
    if isinstance(op, tile.CastOp):
        source, target = _element(op.operand.type), _element(op.result.type)
        if not isinstance(target, AnyFloat):
            return False
        return isinstance(source, IntegerType) or (isinstance(source, AnyFloat) and target.bitwidth < source.bitwidth)
    return isinstance(op, ROUNDING_STEPS) and isinstance(_element(op.results[0].type), BFloat16Type | Float16Type)


def _element(block: Attribute) -> Attribute:
    return block.get_element_type() if isinstance(block, TensorType) else block
