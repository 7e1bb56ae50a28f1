"""Grids of more programs than a launch could ever run: an error, where the count would wrap around.

It is one more check of each launch, behind those of its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ...artifact import STATUS_CHECK, STATUS_LAUNCH, STATUS_PROGRAM, STATUS_VALUES
from ...dialects import vector_ext
from ...dialects.tile.kernel import MAX_CHECK_VALUES
from .loop_builder import LoopBuilder

MOST_PROGRAMS = 1 << 48
"""More programs than any launch can finish; so a program id times a block size is still an index."""


def grid_limit_message(rank: int) -> str:
    """What the check says about a grid of this rank; it records all sizes, or none where there are too many."""
    sizes = f" {' x '.join(['{}'] * rank)}" if rank <= MAX_CHECK_VALUES else ""
    return f"the grid{sizes} has more than 2**48 programs; let each program do more"


def within_limit(
    builder: LoopBuilder,
    status: SSAValue,
    launch: SSAValue,
    check: int,
    sizes: Sequence[SSAValue],
    run: Callable[[], Sequence[SSAValue]],
) -> None:
    """Emits ``run`` for a grid within the limit, else the failure of check number ``check`` of the launch.

    No other thread is in this execution, so the status words are written without their lock.
    """

    def fail() -> Sequence[SSAValue]:
        builder.store(builder.cast(builder.ssa(builder.add(launch, 1)), "index_cast", i64), status, STATUS_LAUNCH)
        builder.store(builder.scalar(0, i64), status, STATUS_PROGRAM)
        builder.store(builder.scalar(check, i64), status, STATUS_CHECK)
        for number, size in enumerate(sizes[:MAX_CHECK_VALUES]):
            builder.store(builder.cast(size, "index_cast", i64), status, STATUS_VALUES + number)
        return ()

    if not sizes:
        run()
        return
    # in f64, which is exact up to the limit and does not wrap beyond
    programs, *others = [builder.cast(builder.cast(size, "index_cast", i64), "sitofp", f64) for size in sizes]
    for size in others:
        programs = builder.binary(arith.MulfOp, programs, size)
    few = builder.emit(vector_ext.CmpFOp("ole", programs, builder.scalar(float(MOST_PROGRAMS), f64)))
    builder.if_(few, [], run, fail)
