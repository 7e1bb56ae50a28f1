"""Builds the basic blocks of a kernel: what the decoders of instructions write to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .access import Step
from .errors import PtxSyntaxError
from .lanes import Lanes
from .layout import Layout
from .operands import Scope, Slots
from .program import Barrier, BasicBlock, Branch, Ending, Exit, Jump, Switch, Trap
from .syntax import Instruction, Negated, Operand
from .types import PRED, Array, ScalarType


class Builder:
    """The program so far. Targets of endings are labels: numbers, whose blocks are known in the end."""

    def __init__(self) -> None:
        self.slots = Slots()
        self.shared, self.local = Layout(), Layout()
        self.blocks: list[BasicBlock] = [BasicBlock()]
        self._labels: dict[tuple[int, str], int] = {}
        self._block_of_label: dict[int, int] = {}
        self._unnamed = 0
        self.scopes = 0
        self.calls: list[str] = []  # the functions being inlined, to find recursion

    def new_scope(self, function: str) -> Scope:
        self.scopes += 1
        return Scope(function, self.scopes)

    # blocks

    @property
    def block(self) -> BasicBlock:
        return self.blocks[-1]

    def emit(self, step: Step) -> None:
        self.block.steps.append(step)

    def note(self, instruction: Instruction) -> None:
        """Remembers which instruction a block begins with, for messages."""
        if self.block.first is None:
            self.block.first = instruction

    def label(self, scope: Scope | None = None, name: str = "") -> int:
        """The label of that name, or a new one without name."""
        if scope is None:
            self._unnamed += 1
            return -self._unnamed
        return self._labels.setdefault((scope.number, name), len(self._labels))

    def start(self, label: int) -> None:
        """From here on code belongs to ``label``; what came before falls through."""
        if label in self._block_of_label:
            name = next((n for (_, n), value in self._labels.items() if value == label), "")
            raise PtxSyntaxError(f"the label {name!r} stands twice in one function")
        if self.block.ending is None and not self.block.steps and self.block.gate is None:
            self._block_of_label[label] = len(self.blocks) - 1
            return
        if self.block.ending is None:
            self.block.ending = Jump(label)
        self.blocks.append(BasicBlock())
        self._block_of_label[label] = len(self.blocks) - 1

    def end(self, ending: Ending) -> None:
        """Ends the block; what follows is reached by labels only."""
        self.block.ending = ending
        self.blocks.append(BasicBlock())

    def start_gate(self, members: int, instruction: Instruction, meets: bool) -> None:
        """A block that begins with a warp operation. Nothing of it may stand in the block before: it runs first."""
        if self.block.steps or self.block.gate is not None:
            after = self.label()
            self.end(Jump(after))
            self.start(after)
        self.block.gate, self.block.first, self.block.meets = members, instruction, meets

    def finish(self) -> list[BasicBlock]:
        """The blocks, with numbers of blocks in place of labels."""
        if self.block.ending is None:
            self.block.ending = Exit()
        for block in self.blocks:
            block.ending = self._resolved(block.ending)
        return self.blocks

    def _resolved(self, ending: Ending | None) -> Ending:
        if isinstance(ending, Jump | Barrier):
            return replace(ending, target=self._place(ending.target))
        if isinstance(ending, Branch):
            return replace(ending, target=self._place(ending.target), otherwise=self._place(ending.otherwise))
        if isinstance(ending, Switch):
            return replace(ending, targets=tuple(self._place(t) for t in ending.targets))
        assert isinstance(ending, Exit | Trap)
        return ending

    def _place(self, label: int) -> int:
        place = self._block_of_label.get(label)
        if place is None:
            name = next((n for (_, n), value in self._labels.items() if value == label), "")
            raise PtxSyntaxError(f"there is no label {name!r} to jump to")
        return place

    # operands

    def source(self, scope: Scope, operand: Operand, type: ScalarType, instruction: Instruction) -> int:
        """The slot of an operand with the bits of ``type``; ``cvt`` may read the low part of a wider register."""
        if isinstance(operand, Negated) and type == PRED:
            return self._inverted(self.source(scope, operand.name, type, instruction))
        slot, bits = self.slots.source(scope, operand, type, instruction)
        if bits == type.bits:
            return slot
        if bits > type.bits and instruction.opcode == "cvt":
            return self._computed(slot, type, lambda a: a.astype(type.raw))
        raise PtxSyntaxError(
            f"PTX line {instruction.line}: {instruction.text}: an operand has {bits} bits where .{type.name} needs "
            f"{type.bits}"
        )

    def _inverted(self, slot: int) -> int:
        return self._computed(slot, PRED, np.invert)

    def _computed(self, slot: int, type: ScalarType, function: np.ufunc | object) -> int:
        result = self.slots.new(type.raw)
        self.emit(unary_step(function, slot, result))
        return result


def unary_step(function: object, source: int, result: int) -> Step:
    """A step with one operand; see `pure_step`."""
    return pure_step(function, (source,), result)


def pure_step(function: object, sources: tuple[int, ...], result: int) -> Step:
    """A step that computes a register from others, in all lanes; those that take no part keep their value.

    One closure for each number of operands: these are the steps that most time goes into.
    """
    call: Step
    compute = function
    assert callable(compute)
    where = np.where
    if len(sources) == 1:
        (a,) = sources

        def call(lanes: Lanes) -> None:
            registers = lanes.registers
            value = compute(registers[a])
            mask = lanes.mask
            registers[result] = value if mask is None else where(mask, value, registers[result])

    elif len(sources) == 2:
        a, b = sources

        def call(lanes: Lanes) -> None:
            registers = lanes.registers
            value = compute(registers[a], registers[b])
            mask = lanes.mask
            registers[result] = value if mask is None else where(mask, value, registers[result])

    else:

        def call(lanes: Lanes) -> None:
            registers = lanes.registers
            value = compute(*[registers[source] for source in sources])
            mask = lanes.mask
            registers[result] = value if mask is None else where(mask, value, registers[result])

    return call


def copied(value: Array) -> Array:
    """A move: registers are never changed in place, so the array itself can be shared."""
    return value
