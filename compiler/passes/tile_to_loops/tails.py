"""What lies behind the last valid column of a row: the pads of its loads, and so one value over and over.

A block that hangs over the end of a buffer may consist of little else. A loop that sees that this value changes nothing
any more need not go on to the end of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import tile
from ...dialects.tile.types import shape_of
from .loop_builder import INDEX, Index
from .scalars import is_elementwise
from .strips import Bounds, Point, Strips, repeats_column

FEWEST_VECTORS = 16
"""In a row, from which on it is worth looking."""


def uniform_tail(strips: Strips, value: SSAValue, lanes: int) -> bool:
    """Whether all columns of ``value`` where no load is valid are equal, and the row is long."""
    if shape_of(value.type)[-1] < FEWEST_VECTORS * lanes:
        return False
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        op = current.owner
        if current in strips.blocks or not isinstance(op, Operation):
            return False
        if isinstance(op, tile.LoadOp | tile.SplatOp | arith.ConstantOp) or repeats_column(op):
            continue  # a constant that is a strip is the same everywhere, and a load gives its pad
        if not is_elementwise(op):
            return False
        new = [operand for operand in op.operands if shape_of(operand.type) and operand not in seen]
        waiting += new
        seen |= set(new)
    return True


def quiet_from(
    strips: Strips,
    value: SSAValue,
    row: tuple[Index, ...],
    bounds: Bounds,
    changes_nothing: Callable[[SSAValue], SSAValue],
) -> Index:
    """The column from which on every element of a row is one value that changes nothing; the row's length if none is.

    ``value`` has a uniform tail, ``bounds`` are those of its loads, and ``changes_nothing`` asks about an element.
    """
    size, builder = shape_of(value.type)[-1], strips.builder
    if not bounds.limits:
        return size
    end = builder.max(reduce(builder.max, bounds.limits), 0)
    if isinstance(end, int) and end >= size:
        return size

    def ask() -> list[SSAValue]:
        element = strips.evaluate(value, Point(row, size - 1, 1, masked=True), {})
        return [builder.select(changes_nothing(element), builder.ssa(end), builder.ssa(size))]

    has_tail = builder.compare("slt", builder.ssa(end), builder.ssa(size))
    (quiet,) = builder.if_(has_tail, [INDEX], ask, lambda: [builder.ssa(size)])
    builder.mark_natural(quiet, size)
    return quiet
