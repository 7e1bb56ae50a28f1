"""Where an element of a value lies: through views, down to a buffer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from ...dialects import graph
from ...dialects.graph.types import tensor_type
from ...dims import Dim
from ...opdef import OpCall, OpDef
from ...registry import find_op

NO_OFFSET = Dim(0)
Space = tuple[Dim, ...]
"""The shape that a kernel runs over, ``[outer..., n]``."""


@dataclass(frozen=True)
class Position:
    """Along one axis: ``offset`` plus the index along axis ``axis`` of the kernel's space (None: offset alone)."""

    axis: int | None
    offset: Dim = NO_OFFSET


Positions = tuple[Position, ...]


def call_of(definition: OpDef, op: graph.ApplyOp) -> OpCall:
    """What the recipe of ``op`` gets to see."""
    return OpCall(definition, op.argument_types, op.output_types, op.parameter_values)


def identity(rank: int) -> Positions:
    """Every axis of a value is the axis of the space."""
    return tuple(Position(axis) for axis in range(rank))


def shape_in_memory(value: SSAValue) -> Space:
    """The shape of a value, that of a scalar being one element."""
    return tensor_type(value).shape or (Dim(1),)


def view_of(value: SSAValue) -> graph.ApplyOp | None:
    """The view that computes ``value``; None if there is none."""
    op = value.owner
    if isinstance(op, graph.ApplyOp) and find_op(op.callee.data, op.subject).kind == "view":
        return op
    return None


def through(op: graph.ApplyOp, positions: Sequence[Position]) -> Positions:
    """Positions in the operand of a view for positions in its result."""
    definition = find_op(op.callee.data, op.subject)
    assert definition.access is not None
    found: list[Position] = []
    for access in definition.access(call_of(definition, op)):
        at = Position(None) if access.axis is None else positions[access.axis]
        found.append(replace(at, offset=at.offset + Dim(access.start)))
    return tuple(found)


def resolve(value: SSAValue, positions: Positions, inside: Collection[Operation]) -> tuple[SSAValue, Positions]:
    """Follows views that are not among ``inside`` down to a value that is computed or lies in a buffer."""
    op = view_of(value)
    while op is not None and op not in inside:
        value, positions = op.arguments[0], through(op, positions)
        op = view_of(value)
    return value, positions
