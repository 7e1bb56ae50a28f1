"""Structured control flow: the ops of ``scf`` on scalars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from .memory import Reference
from .values import InterpreterError, dtype_of

if TYPE_CHECKING:
    from .frame import Frame, Handler, Value


def _if(frame: Frame, op: scf.IfOp) -> Iterable[Value]:
    region = op.true_region if frame.array(op.cond) else op.false_region
    return frame.run_block(region.block) if region.blocks else ()


def _for(frame: Frame, op: scf.ForOp) -> Iterable[Value]:
    lower, upper, step = frame.integers((op.lb, op.ub, op.step))
    if step <= 0:
        raise InterpreterError(f"@{frame.name}: the step of scf.for must be positive, not {step}")
    dtype = dtype_of(op.lb.type)
    carried: Sequence[Value] = frame.values(op.iter_args)
    for index in range(lower, upper, step):
        carried = frame.run_block(op.body.block, [np.array(index, dtype), *carried])
    return carried


def _while(frame: Frame, op: scf.WhileOp) -> Iterable[Value]:
    carried: Sequence[Value] = frame.values(op.arguments)
    while True:
        condition, *passed = frame.run_block(op.before_region.block, carried)
        assert not isinstance(condition, Reference)
        if not condition:
            return passed
        carried = frame.run_block(op.after_region.block, passed)


def _index_switch(frame: Frame, op: scf.IndexSwitchOp) -> Iterable[Value]:
    chosen = frame.integer(op.arg)
    for case, region in zip(op.cases.iter_values(), op.case_regions, strict=True):
        if case == chosen:
            return frame.run_block(region.block)
    return frame.run_block(op.default_region.block)


CONTROL_HANDLERS: dict[type[Operation], Handler] = {
    scf.IfOp: _if,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.IndexSwitchOp: _index_switch,
}
