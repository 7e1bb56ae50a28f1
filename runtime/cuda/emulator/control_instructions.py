"""Decodes branches, calls, barriers, warp operations and what ends a thread."""

from __future__ import annotations

from .builder import Builder
from .operands import Scope
from .operation import Modifiers, unsupported
from .program import Barrier, Branch, Exit, Jump, Switch, Trap
from .syntax import BranchTargets, Instruction, Integer, Name, Negated, Pair
from .types import B32, PRED
from .warp import SHUFFLE_MODES, VOTE_MODES, active_mask, shuffle, vote


class ControlDecoder:
    """Decodes what decides which lanes run what; calls are inlined by `decoder`."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.targets: dict[tuple[int, str], BranchTargets] = {}

    def branch(self, scope: Scope, instruction: Instruction) -> None:
        modifiers = Modifiers(instruction)
        modifiers.take("uni")
        modifiers.end()
        (target,) = instruction.operands
        if not isinstance(target, Name):
            raise unsupported(instruction)
        label = self.builder.label(scope, target.text)
        if instruction.guard is None:
            self.builder.end(Jump(label))
            return
        predicate = self.builder.source(scope, Name(instruction.guard.predicate), PRED, instruction)
        after = self.builder.label()
        self.builder.end(Branch(predicate, instruction.guard.negated, label, after))
        self.builder.start(after)

    def switch(self, scope: Scope, instruction: Instruction) -> None:
        """``brx.idx index, list``."""
        modifiers = Modifiers(instruction)
        modifiers.one_of("idx")
        modifiers.take("uni")
        modifiers.end()
        index, name = instruction.operands
        targets = self.targets.get((scope.number, name.text)) if isinstance(name, Name) else None
        if targets is None:
            raise unsupported(instruction, "a brx.idx whose .branchtargets do not stand before it")
        slot = self.builder.source(scope, index, B32, instruction)
        labels = tuple(self.builder.label(scope, label) for label in targets.labels)
        self.builder.end(Switch(instruction, slot, labels))

    def leave(self, scope: Scope, instruction: Instruction) -> None:
        """``ret`` and ``exit``; a ``ret`` of an inlined function goes on behind the call."""
        modifiers = Modifiers(instruction)
        modifiers.take("uni")
        modifiers.end()
        returns = instruction.opcode == "ret" and scope.returns_to is not None
        self.builder.end(Jump(scope.returns_to) if returns and scope.returns_to is not None else Exit())

    def trap(self, scope: Scope, instruction: Instruction) -> None:
        self.builder.end(Trap(instruction))

    def barrier(self, scope: Scope, instruction: Instruction) -> None:
        """``bar.sync 0`` of all threads, ``bar.warp.sync mask``."""
        modifiers = Modifiers(instruction)
        if instruction.opcode == "bar" and modifiers.take("warp"):
            modifiers.one_of("sync")
            modifiers.end()
            members = self.builder.source(scope, instruction.operands[0], B32, instruction)
            self.builder.start_gate(members, instruction, meets=True)
            return
        modifiers.take("cta")
        modifiers.one_of("sync")
        modifiers.take("aligned")
        modifiers.end()
        if len(instruction.operands) != 1 or not isinstance(instruction.operands[0], Integer):
            raise unsupported(instruction, "a barrier for a number of threads, or whose number is in a register")
        after = self.builder.label()
        self.builder.end(Barrier(instruction, after))
        self.builder.start(after)

    def shuffle(self, scope: Scope, instruction: Instruction) -> None:
        """``shfl.sync.bfly.b32 d|p, a, b, c, members``."""
        modifiers = Modifiers(instruction)
        modifiers.one_of("sync")
        mode = modifiers.one_of(*SHUFFLE_MODES)
        modifiers.type("b", (32,))
        modifiers.end()
        result, *operands = instruction.operands
        pair = result if isinstance(result, Pair) else Pair(result if isinstance(result, Name) else None, None)
        if pair.first in (None, Name("_")):
            raise unsupported(instruction, "a shuffle without result")
        value, b, c, members = (self.builder.source(scope, operand, B32, instruction) for operand in operands)
        self.builder.start_gate(members, instruction, meets=False)
        destination, _ = self.builder.slots.destination(scope, pair.first, instruction)
        in_range, _ = self.builder.slots.destination(scope, pair.second, instruction)
        self.builder.emit(shuffle(instruction, mode, (value, b, c, members), destination, in_range))

    def vote(self, scope: Scope, instruction: Instruction) -> None:
        """``vote.sync.any.pred p, q, members``, ``vote.sync.ballot.b32 d, q, members``."""
        modifiers = Modifiers(instruction)
        modifiers.one_of("sync")
        mode = modifiers.one_of(*VOTE_MODES)
        modifiers.one_of("b32" if mode == "ballot" else "pred")
        modifiers.end()
        result, predicate, members = instruction.operands
        negated = isinstance(predicate, Negated)
        name = predicate.name if isinstance(predicate, Negated) else predicate
        slot = self.builder.source(scope, name, PRED, instruction)
        mask = self.builder.source(scope, members, B32, instruction)
        self.builder.start_gate(mask, instruction, meets=False)
        destination, _ = self.builder.slots.destination(scope, result, instruction)
        self.builder.emit(vote(mode, slot, negated, mask, destination))

    def active_mask(self, scope: Scope, instruction: Instruction) -> None:
        modifiers = Modifiers(instruction)
        modifiers.one_of("b32")
        modifiers.end()
        destination, _ = self.builder.slots.destination(scope, instruction.operands[0], instruction)
        self.builder.emit(active_mask(destination))
