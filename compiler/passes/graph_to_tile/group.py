"""A group of fused ops: what it reads, what it gives out, and over which space."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ...dialects import graph
from ...dialects.graph.types import tensor_type
from ...dims import Dim, StaticDim
from ...registry import find_op
from .access import Position, Positions, Space, identity, resolve, shape_in_memory

FIRST = Position(None)


@dataclass
class FusedGroup:
    """Ops that become one kernel, the values of them that others want, and their space ``[outer..., n]``."""

    members: list[graph.ApplyOp]
    outputs: list[SSAValue]
    space: Space
    inside: set[Operation] = field(init=False)

    def __post_init__(self) -> None:
        self.inside = set(self.members)

    @property
    def name(self) -> str:
        """A name for the kernel: the first few ops."""
        names = [op.callee.data for op in self.members] or ["copy"]
        return "_".join(names[:4]) + ("_etc" if len(names) > 4 else "")

    @property
    def reductions(self) -> list[graph.ApplyOp]:
        """The reductions, in order."""
        return [op for op in self.members if find_op(op.callee.data, op.subject).kind == "reduce"]

    def is_row_value(self, value: SSAValue) -> bool:
        """Whether a value has one element for each row of the space."""
        shape = shape_in_memory(value)
        return shape != self.space and shape[-1] == Dim(1)

    def positions(self, value: SSAValue) -> Positions:
        """Where a value of the space, or of its rows, is read."""
        rank = len(self.space)
        if tensor_type(value).rank == 0:
            return ()
        last = Position(None) if self.is_row_value(value) else Position(rank - 1)
        return (*[Position(axis) for axis in range(rank - 1)], last)

    def sources(self) -> list[tuple[SSAValue, Positions]]:
        """The values from outside that the group reads, and where; each once."""
        operands = [operand for op in self.members for operand in op.arguments]
        wanted = operands if self.members else list(self.outputs)
        found = [
            resolve(value, self.positions(value), self.inside) for value in wanted if value.owner not in self.inside
        ]
        return list(dict.fromkeys(found))

    def offsets(self) -> list[Dim]:
        """Where the views that the group reads through start, as far as these are no numbers; each once."""
        found = dict.fromkeys(position.offset for _, at in self.sources() for position in at)
        return [offset for offset in found if not isinstance(offset, StaticDim)]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the widest type of the group; 0 if the row's size is known at run time only."""
        n = self.space[-1]
        widest = max((value.dtype.size_in_bytes for op in self.members for value in op.output_types), default=1)
        return int(n) * widest if isinstance(n, StaticDim) else 0

    @property
    def is_flat(self) -> bool:
        """Whether every access is element i for element i, or the first element for all: axes do not matter then."""
        if self.reductions or any(self.is_row_value(value) for value in self.outputs):
            return False
        whole = identity(len(self.space))
        return all(
            (at == whole and shape_in_memory(value) == self.space) or all(position == FIRST for position in at)
            for value, at in self.sources()
        )
