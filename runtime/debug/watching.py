"""A graph in which every float value is shown to the runtime as soon as it is computed.

Each op becomes a kernel of its own and each value is handed over right after it, by a print whose label is a number. No
bit changes by that, and a value needs memory only until its last reader is done, as without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from halfulp.compiler.dialects.graph import (
    ApplyOp,
    CondOp,
    ConstantOp,
    CustomOp,
    GraphOp,
    GraphTensorType,
    LoadOp,
    PrintOp,
    RegisteredOp,
    WeightOp,
    WhileOp,
    yielded_values,
)
from halfulp.compiler.dialects.graph.printing import label_text
from halfulp.compiler.dialects.graph.types import tensor_type
from halfulp.compiler.errors import SourceLocation
from halfulp.compiler.graph import Graph
from halfulp.compiler.locations import location_of
from halfulp.compiler.passes.fuse_ops import BOUNDARY
from halfulp.compiler.registry import find_kernel, find_op

WATCHED, SHOWN = "watched:", "shown:"
"""What labels begin with: those of watched values, whose number follows, and those of the graph's own prints."""


@dataclass(frozen=True)
class Operand:
    """A float operand: what messages call it, and the number of its value."""

    name: str
    number: int


@dataclass(frozen=True)
class Watched:
    """A float value of a graph.

    Attributes:
        subject: ``op 'exp'``, ``input 0 ('x')``, ``the buffer of input 1 ('y')``, ``weight 'w'``, ``a constant``.
        computes: whether it comes from an op. Branches and loops only hand on what ops inside of them compute.
        operands: what it is made from, in the order of the op; of what hands on, where the value may come from.
        location: the line of the user's program.
    """

    subject: str
    computes: bool
    operands: tuple[Operand, ...]
    location: SourceLocation | None


@dataclass(frozen=True)
class WatchedGraph:
    """A graph with its values watched. ``outputs`` has the number of each output's value, None where it is no float."""

    graph: Graph
    values: tuple[Watched, ...]
    outputs: tuple[int | None, ...]


def watch(graph: Graph) -> WatchedGraph:
    """A copy of the graph that shows its float values under their numbers, in the order of the program."""
    watcher = _Watcher()
    rewritten = graph.rewritten(watcher.change)
    return WatchedGraph(rewritten, tuple(watcher.values), tuple(watcher.outputs))


class _Watcher:
    def __init__(self) -> None:
        self.values: list[Watched] = []
        self.outputs: list[int | None] = []
        self._numbers: dict[SSAValue, int] = {}
        self._input_names: tuple[str, ...] = ()

    def change(self, module: ModuleOp) -> None:
        (op,) = (part for part in module.body.block.ops if isinstance(part, GraphOp))
        self._input_names = tuple(op.inputs)
        self._number(op.body.block)
        self.values = [self._described(value) for value in self._numbers]
        self.outputs = [self._numbers.get(value) for value in op.outputs]
        for part in list(op.body.walk()):
            if isinstance(part, PrintOp):
                part.properties["label"] = StringAttr(SHOWN + part.label.data)
            elif isinstance(part, ApplyOp):
                part.attributes[BOUNDARY] = UnitAttr()
        for value, number in self._numbers.items():
            _show(value, number)

    def _number(self, block: Block) -> None:
        """Numbers in the order of the program: arguments, then the results of each op, regions before results."""
        for argument in block.args:
            self._add(argument)
        for op in block.ops:
            for region in op.regions:
                for inner in region.blocks:
                    self._number(inner)
            for result in op.results:
                self._add(result)

    def _add(self, value: SSAValue) -> None:
        if isinstance(value.type, GraphTensorType) and tensor_type(value).dtype.is_float:
            self._numbers[value] = len(self._numbers)

    def _described(self, value: SSAValue) -> Watched:
        op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
        assert op is not None
        subject = self._subject(op, value)
        computes = isinstance(op, RegisteredOp)
        return Watched(subject, computes, self._operands(op, value), location_of(op))

    def _subject(self, op: Operation, value: SSAValue) -> str:
        if isinstance(op, GraphOp):
            return self._input(value)
        if isinstance(op, LoadOp):
            return f"the buffer of {self._input(op.buffer)}"
        if isinstance(op, WeightOp):
            return f"weight '{op.weight_name.data}'"
        if isinstance(op, RegisteredOp):
            return f"op '{op.callee.data}'"
        return "a constant" if isinstance(op, ConstantOp) else f"the {op.name.removeprefix('graph.')}"

    def _input(self, value: SSAValue) -> str:
        assert isinstance(value, BlockArgument)
        return f"input {value.index} ('{self._input_names[value.index]}')"

    def _operands(self, op: Operation, value: SSAValue) -> tuple[Operand, ...]:
        if isinstance(op, RegisteredOp):
            names = _operand_names(op)
            pairs: list[tuple[str, SSAValue]] = list(zip(names, op.arguments, strict=True))
        else:
            pairs = [("", source) for source in _sources(op, value)]
        return tuple(Operand(name, self._numbers[v]) for name, v in pairs if v in self._numbers)


def _operand_names(op: RegisteredOp) -> list[str]:
    if isinstance(op, CustomOp):
        declared: Sequence[str] = [spec.name for spec in find_kernel(op.callee.data, op.subject).operands]
    else:
        declared = find_op(op.callee.data, op.subject).operands
    plain = [name for name in declared if not name.startswith("*")]
    return [f"'{plain[i]}'" if i < len(plain) else str(i) for i in range(len(op.arguments))]


def _sources(op: Operation, value: SSAValue) -> list[SSAValue]:
    """Where a value that a branch or a loop hands on may come from; in a loop the last round comes first."""
    assert isinstance(value, OpResult | BlockArgument)
    if isinstance(op, CondOp):
        return [yielded_values(region.block)[value.index] for region in (op.then_region, op.else_region)]
    if isinstance(op, WhileOp):
        return [yielded_values(op.body.block)[value.index], op.initial[value.index]]
    return []


def _show(value: SSAValue, number: int) -> None:
    shown = PrintOp(value, f"{WATCHED}{number}")
    if isinstance(value, BlockArgument):
        block = value.block
        place = next((op for op in block.ops if not _is_shown(op)), None)
        assert place is not None, "a block ends in an op"
        block.insert_op_before(shown, place)
        return
    owner = value.owner
    assert isinstance(owner, Operation)
    block_of_owner = owner.parent_block()
    assert block_of_owner is not None
    last = owner
    while last.next_op is not None and _is_shown(last.next_op) and last.next_op.operands[0].owner is owner:
        last = last.next_op
    block_of_owner.insert_op_after(shown, last)


def _is_shown(op: Operation) -> bool:
    return isinstance(op, PrintOp) and label_text(op.label.data).startswith(WATCHED)
