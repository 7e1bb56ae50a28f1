"""Loops of an entry function call back now and then, so that whoever runs them can end them.

A word of the status buffer counts rounds down; at 0 a loop calls the function whose address another word holds. That
function sets the count anew, and may end all loops as a failed check does.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from ...artifact import STATUS_ROUNDS, STATUS_WATCH
from ...dialects import scf_ext
from .loop_builder import LoopBuilder
from .signatures import STATUS, private_function, still_well

WATCH_LOOP = "watch_loop"


def has_loops(module: ModuleOp) -> bool:
    """Whether an entry function of the module has a loop of which only the run tells how long it goes on."""
    entries = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    return any(isinstance(op, scf.WhileOp) for entry in entries for op in entry.body.walk())


def watch_loop_function() -> func.FuncOp:
    """``@watch_loop(status)`` counts one round."""
    function = private_function(WATCH_LOOP, [STATUS], None)
    block = function.body.block
    (status,) = block.args
    builder = LoopBuilder(block)
    callee, one = builder.load(status, STATUS_WATCH, 1), builder.scalar(1, i64)

    def count() -> Sequence[SSAValue]:
        left = builder.binary(arith.SubiOp, builder.load(status, STATUS_ROUNDS, 1), one)
        builder.store(left, status, STATUS_ROUNDS)

        def call() -> Sequence[SSAValue]:
            builder.insert(scf_ext.CallAddressOp(callee, []))
            return ()

        builder.if_(builder.compare("sle", left, builder.scalar(0, i64)), [], call)
        return ()

    builder.if_(builder.compare("ne", callee, builder.scalar(0, i64)), [], count)
    builder.insert(func.ReturnOp())
    return function


def goes_on(builder: LoopBuilder, status: SSAValue) -> SSAValue:
    """Counts a round of a loop; whether there may be another one.

    After a failed check launches do nothing, and what the loop waits for would never come.
    """
    builder.insert(func.CallOp(WATCH_LOOP, [status], []))
    return still_well(builder, status)
