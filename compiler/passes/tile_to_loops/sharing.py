"""A launch whose programs several threads share, where that pays.

Leading ``parallel`` axes are split: a task is one point of theirs, with all programs of the axes behind. Tasks come in
rounds of equal length, a few for each thread, so that a thread that was held up leaves its share to the others. Which
thread runs a program changes nothing in what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from ...artifact import STATUS_THREADS
from ...dialects import scf_ext, tile
from .loop_builder import INDEX, Index, LoopBuilder

ROUNDS_PER_THREAD = 8
"""More would even out the threads' finishing times further, and cost an atomic instruction and a call each."""

WORTH_SHARING = 1 << 18
"""Elementary operations of a launch from which on several threads share it: about 8 us of vector instructions, four
times what handing out the work costs."""

OPERATIONS_PER_ELEMENT = 4
"""What reading or writing an element of memory counts for."""

MOST_THREADS = 1 << 10
"""More than any pool has; so that the number of rounds stays an index."""

PROGRAMS_OF_WORK = 1 << 31
"""Programs are counted up to here when work is estimated; so the estimate stays an index."""


def _operations(op: Operation) -> int:
    """About how many elementary operations one op on blocks takes."""
    if isinstance(op, tile.DotOp):
        a, result = op.a.type, op.result.type
        assert isinstance(a, TensorType)
        assert isinstance(result, TensorType)
        return math.prod(result.get_shape()) * int(a.get_shape()[-1])
    return max((math.prod(r.type.get_shape()) for r in op.results if isinstance(r.type, TensorType)), default=1)


def operations_per_program(kernel: tile.KernelOp) -> int:
    """A lower estimate: what is inside loops counts once."""
    return sum(map(_operations, kernel.body.walk()))


def _product(builder: LoopBuilder, factors: Sequence[Index]) -> Index:
    result: Index = 1
    for factor in factors:
        result = builder.mul(result, factor)
    return result


def _work(builder: LoopBuilder, kernel: tile.KernelOp, programs: Index, elements: Sequence[Index]) -> Index:
    """About how many operations a launch takes: by its programs, or by the memory it is given."""
    counted = builder.mul(builder.min(programs, PROGRAMS_OF_WORK), min(operations_per_program(kernel), 1 << 31))
    for count in elements:
        touched = builder.mul(builder.min(count, PROGRAMS_OF_WORK), OPERATIONS_PER_ELEMENT)
        counted = builder.max(counted, touched)
    return counted


def share_programs(
    builder: LoopBuilder,
    kernel: tile.KernelOp,
    status: SSAValue,
    sizes: Sequence[Index],
    elements: Sequence[Index],
    run: Callable[[Index, Index, Index], None],
    *,
    numbered: bool = False,
) -> None:
    """Runs all programs of a launch.

    Args:
        builder: where the entry function is being built.
        kernel: whose programs run.
        status: the status words, which say how many threads there may be.
        sizes: the grid's sizes, none negative.
        elements: the element count of each buffer that the launch is given.
        run: emits a call of the kernel for the programs from its first argument up to its second, by the thread whose
            number is the third.
        numbered: whether it matters which thread; else the number is 0 for all.
    """
    split = next((i for i, axis in enumerate(kernel.axes) if axis.data != tile.PARALLEL), len(sizes))
    tasks, unit = _product(builder, sizes[:split]), _product(builder, sizes[split:])
    programs = builder.mul(tasks, unit)
    if isinstance(tasks, int) and tasks <= 1:
        run(0, programs, 0)
        return

    threads = builder.cast(builder.load(status, STATUS_THREADS, 1), "index_cast", INDEX)
    enough = builder.compare("sge", builder.ssa(_work(builder, kernel, programs, elements)), builder.ssa(WORTH_SHARING))
    several = builder.compare("sgt", threads, builder.ssa(1))
    shared = builder.emit(arith.AndIOp(enough, several))

    def all_alone() -> Sequence[SSAValue]:
        run(0, programs, 0)
        return ()

    def in_rounds() -> Sequence[SSAValue]:
        bounded = builder.max(builder.min(threads, MOST_THREADS), 1)
        length = builder.max(_ceil_div(builder, tasks, builder.mul(bounded, ROUNDS_PER_THREAD)), 1)
        rounds = _ceil_div(builder, tasks, length)
        block = Block(arg_types=[INDEX, INDEX] if numbered else [INDEX])
        builder.mark_natural(block.args[0])
        with builder.at(block):
            first = builder.mul(block.args[0], length)
            last = builder.min(builder.add(first, length), tasks)
            run(builder.mul(first, unit), builder.mul(last, unit), block.args[1] if numbered else 0)
            builder.insert(scf_ext.YieldOp())
        builder.insert(scf_ext.ForallOp(builder.ssa(rounds), threads, Region(block)))
        return ()

    builder.if_(shared, [], in_rounds, all_alone)


def _ceil_div(builder: LoopBuilder, a: Index, b: Index) -> Index:
    """``a`` is not negative, ``b`` positive."""
    return builder.div(builder.add(a, builder.sub(b, 1)), b)
