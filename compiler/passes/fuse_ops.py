"""``fuse-ops``: decides which ops of a graph become one kernel, and writes it on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects import graph
from ..dims import Dim
from ..opdef import OpDef
from ..registry import find_op
from .graph_to_tile.access import Position, Space, identity, shape_in_memory, through

GROUP = "halfulp.group"
"""On ``graph.apply``: ops with the same number become one kernel."""
BOUNDARY = "halfulp.boundary"
"""On ``graph.apply``: its results go through memory, nothing that uses them joins its kernel."""

MOST_OPS = 64
MOST_REDUCTIONS = 4
"""Of one group. Each pass over a row computes anew what it needs, so a long row of reductions one behind another
costs more than the memory that it saves. Layer norm and softmax have two."""


@dataclass(frozen=True)
class FuseOpsPass(ModulePass):
    """Groups ops that work on the same elements, producers into consumers. No bit of a result changes.

    A group has a space, a shape ``[outer..., n]``. Its ops are maps over the space or over its rows
    (``[outer..., 1]``), reductions along the last axis, and broadcasts of a row's value over the row. So softmax and
    layer norm are one group each. An op joins the groups of its operands, and joins them to each other, where
    no path leads out of the group and back into it.

    Before::

        %0 = graph.apply "mul"(%x, %y) : ...
        %1 = graph.apply "add"(%0, %z) : ...

    After::

        %0 = graph.apply "mul"(%x, %y) attributes {halfulp.group = 0 : i64} : ...
        %1 = graph.apply "add"(%0, %z) attributes {halfulp.group = 0 : i64} : ...
    """

    name = "fuse-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for part in op.body.block.ops:
            if isinstance(part, graph.GraphOp):
                Grouping(part).mark()


def definition_of(op: Operation) -> OpDef | None:
    """What the registry says about a ``graph.apply``; None for other ops."""
    return find_op(op.callee.data, op.subject) if isinstance(op, graph.ApplyOp) else None


def space_of(members: Sequence[graph.ApplyOp]) -> Space:
    """The space of a group: the shape of its widest op."""
    spaces = [space for op in members if (space := _space_of(op)) is not None]
    wide = [space for space in spaces if space[-1] != Dim(1)]
    return (wide or spaces)[0]


def row_of(space: Space) -> Space:
    """The shape of one value for each row of a space."""
    return (*space[:-1], Dim(1))


def reduces_rows(op: graph.ApplyOp) -> bool:
    """Whether a reduction runs along the last axis of its operand."""
    rank = len(shape_in_memory(op.arguments[0]))
    axis = op.parameter_values["axis"]
    assert isinstance(axis, int)
    return axis % rank == rank - 1


def broadcasts_rows(op: graph.ApplyOp) -> bool:
    """Whether a view repeats one value for each row over the row."""
    source, result = shape_in_memory(op.arguments[0]), shape_in_memory(op.outputs[0])
    rank = len(result)
    if len(source) != rank or source != row_of(result):
        return False
    return through(op, identity(rank)) == (*identity(rank - 1), Position(None))


@dataclass
class Group:
    """Ops that become one kernel. ``space`` None: an op with kernels of its own."""

    members: list[Operation]
    space: Space | None
    depends: set[int] = field(default_factory=set)


class Grouping:
    """The groups of one graph, built in the order of its ops."""

    def __init__(self, op: graph.GraphOp) -> None:
        self.groups: dict[int, Group] = {}
        self.group_of: dict[Operation, int] = {}
        for number, part in enumerate(op.body.block.ops):
            if isinstance(part, graph.RegisteredOp):
                self._place(part, number)

    def mark(self) -> None:
        """Writes the group of every op that can share a kernel."""
        numbers: dict[int, int] = {}
        for op, key in self.group_of.items():
            if self.groups[key].space is not None and not _only_views(self.groups[key]):
                op.attributes[GROUP] = IntegerAttr(numbers.setdefault(key, len(numbers)), i64)

    def _place(self, op: graph.RegisteredOp, number: int) -> None:
        self.groups[number] = Group([op], _space_of(op), self._depends(op))
        self.group_of[op] = number
        if self.groups[number].space is None:
            return
        for candidate in sorted(self._producers(op), reverse=True):
            self._try_merge(self.group_of[op], candidate)

    def _operand_groups(self, op: graph.RegisteredOp) -> Iterator[tuple[Operation, int]]:
        for operand in op.arguments:
            producer = operand.owner
            if isinstance(producer, Operation) and producer in self.group_of:
                yield producer, self.group_of[producer]

    def _depends(self, op: graph.RegisteredOp) -> set[int]:
        return {key for _, key in self._operand_groups(op)}

    def _producers(self, op: graph.RegisteredOp) -> set[int]:
        """Groups that ``op`` could join: of operands that need not go through memory."""
        return {
            key
            for producer, key in self._operand_groups(op)
            if self.groups[key].space is not None and BOUNDARY not in producer.attributes
        }

    def _try_merge(self, key: int, other: int) -> None:
        if key == other:
            return
        space = self._joint_space(self.groups[key], self.groups[other])
        if space is None or _too_large(self.groups[key], self.groups[other]):
            return
        if self._path_between(key, other) or self._path_between(other, key):
            return
        if self._crosses_boundary(self.groups[key], self.groups[other]):
            return
        low, high = sorted((key, other))
        merged, gone = self.groups[low], self.groups.pop(high)
        merged.members += gone.members
        merged.space = space
        merged.depends = (merged.depends | gone.depends) - {low, high}
        for op in gone.members:
            self.group_of[op] = low
        for group in self.groups.values():
            if high in group.depends:
                group.depends = (group.depends - {high}) | {low}

    def _crosses_boundary(self, group: Group, other: Group) -> bool:
        """Whether an op of one uses a boundary op of the other."""
        return any(
            use.operation in user.members
            for user, producer in ((group, other), (other, group))
            for op in producer.members
            if BOUNDARY in op.attributes
            for result in op.results
            for use in result.uses
        )

    def _joint_space(self, group: Group, other: Group) -> Space | None:
        """The space of both together: equal ones, or a space and its rows."""
        a, b = group.space, other.space
        assert a is not None
        assert b is not None
        if a == b:
            return a
        if len(a) != len(b):
            return None
        if b == row_of(a) and not _has_reductions(other):
            return a
        if a == row_of(b) and not _has_reductions(group):
            return b
        return None

    def _path_between(self, start: int, end: int) -> bool:
        """Whether ``start`` depends on ``end`` by way of another group."""
        seen = {start}
        pending = [key for key in self.groups[start].depends if key != end]
        while pending:
            key = pending.pop()
            if key == end:
                return True
            if key not in seen:
                seen.add(key)
                pending += self.groups[key].depends
        return False


def _too_large(group: Group, other: Group) -> bool:
    """Whether both together would make a kernel that takes long to compile and gains nothing."""
    members = [*group.members, *other.members]
    reductions = [op for op in members if (found := definition_of(op)) is not None and found.kind == "reduce"]
    return len(members) > MOST_OPS or len(reductions) > MOST_REDUCTIONS


def _only_views(group: Group) -> bool:
    """Whether the group computes nothing: whoever reads a view then looks through it."""
    return all(definition is not None and definition.kind == "view" for definition in map(definition_of, group.members))


def _has_reductions(group: Group) -> bool:
    return any(
        definition is not None and definition.kind == "reduce" for definition in map(definition_of, group.members)
    )


def _space_of(op: graph.RegisteredOp) -> Space | None:
    """The space of a group of ``op`` alone."""
    definition = definition_of(op)
    if definition is None or len(op.outputs) != 1:
        return None
    assert isinstance(op, graph.ApplyOp)
    if definition.kind == "map":
        return shape_in_memory(op.outputs[0])
    if definition.kind == "reduce" and reduces_rows(op):
        return shape_in_memory(op.arguments[0])
    if definition.kind == "view" and broadcasts_rows(op):
        return shape_in_memory(op.outputs[0])
    return None
