"""``fuse-ops``: decides which ops of a graph become one kernel, and writes it on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation
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
    layer norm are one group each. An op with kernels of its own that has an epilogue (a product of matrices) takes in
    the maps behind it, over the space of its result. An op joins the groups of its operands, and joins them to each
    other, where no path leads out of the group and back into it. Each block is grouped by itself: no group reaches into
    a branch or a loop, or out of it.

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
                count = 0
                for block in graph.blocks_of(part):
                    count = Grouping(block).mark(count)


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


def has_epilogue(op: Operation) -> bool:
    """Whether an op has kernels of its own, and maps behind it can be computed before they store its result."""
    definition = definition_of(op)
    return definition is not None and definition.has_epilogue


@dataclass
class Group:
    """Ops that become one kernel. ``space`` None: an op that is no part of one, or has kernels of its own."""

    members: list[Operation]
    space: Space | None
    depends: set[int] = field(default_factory=set)


class Grouping:
    """The groups of one block of a graph, built in the order of its ops."""

    def __init__(self, block: Block) -> None:
        self.groups: dict[int, Group] = {}
        self.group_of: dict[Operation, int] = {}
        self.waits_for = {later: earlier for earlier, later in graph.effects_in_order(block)}
        for number, part in enumerate(block.ops):
            if isinstance(part, graph.RegisteredOp):
                self._place(part, number)
            else:
                self.groups[number] = Group([part], None, self._depends(part))
                self.group_of[part] = number

    def mark(self, count: int) -> int:
        """Writes the group of every op that can share a kernel; numbers start at ``count``; gives the next one."""
        numbers: dict[int, int] = {}
        for op, key in self.group_of.items():
            if self.groups[key].space is not None and not _stands_alone(self.groups[key]):
                op.attributes[GROUP] = IntegerAttr(numbers.setdefault(key, count + len(numbers)), i64)
        return count + len(numbers)

    def _place(self, op: graph.RegisteredOp, number: int) -> None:
        self.groups[number] = Group([op], _space_of(op), self._depends(op))
        self.group_of[op] = number
        if self.groups[number].space is None:
            return
        for candidate in sorted(self._producers(op), reverse=True):
            self._try_merge(self.group_of[op], candidate)

    def _operand_groups(self, op: Operation) -> Iterator[tuple[Operation, int]]:
        for operand in graph.values_read(op):
            producer = operand.owner
            if isinstance(producer, Operation) and producer in self.group_of:
                yield producer, self.group_of[producer]

    def _depends(self, op: Operation) -> set[int]:
        before = self.waits_for.get(op)
        effects = set() if before is None else {self.group_of[before]}
        return {key for _, key in self._operand_groups(op)} | effects

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
        if self._feeds_epilogue_op(key, other) or self._feeds_epilogue_op(other, key):
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

    def _feeds_epilogue_op(self, key: int, other: int) -> bool:
        """Whether an op of ``key`` that has an epilogue reads from ``other``, which it needs in memory."""
        heads = filter(has_epilogue, self.groups[key].members)
        return any(source == other for op in heads for _, source in self._operand_groups(op))

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
        heads = [op for op in (*group.members, *other.members) if has_epilogue(op)]
        if heads:
            alone = len(heads) == 1 and not _has_reductions(group) and not _has_reductions(other)
            return a if a == b and alone else None
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


def _stands_alone(group: Group) -> bool:
    """Whether the group computes nothing, so that whoever reads its views looks through them, or has one op that has
    kernels of its own."""
    if len(group.members) == 1 and has_epilogue(group.members[0]):
        return True
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
    if definition.kind == "map" or definition.has_epilogue:
        return shape_in_memory(op.outputs[0])
    if definition.kind == "reduce" and reduces_rows(op):
        return shape_in_memory(op.arguments[0])
    if definition.kind == "view" and broadcasts_rows(op):
        return shape_in_memory(op.outputs[0])
    return None
