"""A parsed kernel -> a `Program`: every instruction becomes a step, or is refused by name, before anything runs.

Calls are inlined, each with registers and parameters of its own. Guarded instructions become a branch around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from .access import Step
from .builder import Builder, copied, pure_step
from .control_instructions import ControlDecoder
from .errors import PtxSyntaxError, UndefinedResultError, UnsupportedPtxError
from .families import operation_of
from .lanes import Lanes
from .memory_instructions import MemoryDecoder, Spaces
from .operands import Scope
from .operation import Modifiers, Operation, unsupported
from .program import Branch, Program
from .spaces import LocalSpace, SharedSpace
from .syntax import (
    BranchTargets,
    Function,
    Group,
    Instruction,
    Item,
    Label,
    Module,
    Name,
    Operand,
    Registers,
    Variable,
    Vector,
)
from .types import PRED, RAW, TYPES, Array, DType, ScalarType

Decode = Callable[[Scope, Instruction], None]
Compute = Callable[..., Array]


def decode_kernel(
    module: Module,
    kernel: Function,
    variables: Mapping[str, tuple[str, int]],
    make_spaces: Callable[[SharedSpace, LocalSpace], Spaces],
) -> Program:
    """Decodes a kernel.

    Args:
        module: for the functions that it calls and for variables in shared memory.
        kernel: has a body.
        variables: state space and address of the module's variables in global and constant memory, and of the
            kernel's parameters.
        make_spaces: gives the state spaces by name, from the two that belong to the kernel.

    Raises:
        UnsupportedPtxError, UnroundedOperationError, PtxSyntaxError: with line and text.
    """
    return _Decoder(module, variables, make_spaces).program(kernel)


class _Decoder:
    def __init__(
        self,
        module: Module,
        variables: Mapping[str, tuple[str, int]],
        make_spaces: Callable[[SharedSpace, LocalSpace], Spaces],
    ) -> None:
        self.module = module
        self.variables = dict(variables)
        self.builder = Builder()
        spaces = make_spaces(SharedSpace(self.builder.shared), LocalSpace(self.builder.local))
        self.memory = MemoryDecoder(self.builder, spaces)
        self.control = ControlDecoder(self.builder)
        self.decoders = self._decoders()

    def _decoders(self) -> dict[str, Decode]:
        memory, control = self.memory, self.control
        return {
            "mov": self.move,
            "call": self.call,
            "ld": memory.load,
            "ldu": memory.load,
            "st": memory.store,
            "atom": memory.atomic,
            "red": memory.atomic,
            "cvta": memory.to_generic,
            "isspacep": memory.is_in_space,
            "membar": memory.fence,
            "fence": memory.fence,
            "bra": control.branch,
            "brx": control.switch,
            "ret": control.leave,
            "exit": control.leave,
            "trap": control.trap,
            "bar": control.barrier,
            "barrier": control.barrier,
            "shfl": control.shuffle,
            "vote": control.vote,
            "activemask": control.active_mask,
        }

    def program(self, kernel: Function) -> Program:
        static_shared, dynamic = self.place_shared(kernel)
        scope = self.builder.new_scope(kernel.name)
        scope.variables.update(self.variables)
        self.statements(scope, kernel.body or ())
        builder = self.builder
        return Program(
            kernel,
            builder.finish(),
            builder.slots.initial,
            builder.shared,
            builder.local,
            static_shared,
            dynamic,
        )

    def place_shared(self, kernel: Function) -> tuple[int, bool]:
        """Places all variables in shared memory: how many bytes the device needs for them, and is there an array of
        the launch's size. All arrays without a length begin at the same address, behind the others."""
        functions = [kernel, *(f for f in self.module.functions.values() if not f.is_kernel)]
        items = [*self.module.variables, *(item for f in functions for item in f.body or ())]
        shared = [item for item in items if isinstance(item, Variable) and item.space == "shared"]
        nbytes = 0
        for variable in shared:
            if variable.size is not None:
                alignment = variable.alignment
                nbytes = -(-nbytes // alignment) * alignment + variable.size
                address = self.builder.shared.place(variable.name, variable.size, alignment)
                self.variables[variable.name] = "shared", address
        dynamic = [variable for variable in shared if variable.size is None]
        if dynamic:
            address = self.builder.shared.place(dynamic[0].name, 0, max(16, *(v.alignment for v in dynamic)))
            self.variables.update({variable.name: ("shared", address) for variable in dynamic})
        return nbytes, bool(dynamic)

    def statements(self, scope: Scope, body: tuple[Item, ...]) -> None:
        for item in body:
            if isinstance(item, Instruction):
                self.instruction(scope, item)
            elif isinstance(item, Label):
                self.builder.start(self.builder.label(scope, item.name))
            elif isinstance(item, Registers):
                self.builder.slots.declare(scope, item)
            elif isinstance(item, BranchTargets):
                self.control.targets[scope.number, item.name] = item
            else:
                scope.variables[item.name] = self.declared(item)

    def declared(self, variable: Variable) -> tuple[str, int]:
        """State space and address of a variable that a function declares."""
        if variable.space == "shared":
            return self.variables[variable.name]
        if variable.space in ("local", "param") and variable.size is not None:
            return "local", self.builder.local.place(variable.name, variable.size, variable.alignment)
        raise UnsupportedPtxError(
            f"PTX line {variable.line}: the emulator has no .{variable.space} variables inside functions, such as "
            f"{variable.name!r}"
        )

    def instruction(self, scope: Scope, instruction: Instruction) -> None:
        self.builder.note(instruction)
        try:
            decode = self.decoders.get(instruction.opcode)
            if instruction.guard is not None and instruction.opcode != "bra":
                self.guarded(scope, instruction)
            elif decode is not None:
                decode(scope, instruction)
            else:
                self.pure(scope, instruction)
        except (ValueError, IndexError) as error:
            if isinstance(error, UnsupportedPtxError | PtxSyntaxError):
                raise
            # an operand too few or too many: unpacking fails
            raise PtxSyntaxError(
                f"PTX line {instruction.line}: {instruction.text}: {instruction.name} does not take "
                f"{len(instruction.operands)} operands"
            ) from error

    def guarded(self, scope: Scope, instruction: Instruction) -> None:
        assert instruction.guard is not None
        predicate = self.builder.source(scope, Name(instruction.guard.predicate), PRED, instruction)
        inside, after = self.builder.label(), self.builder.label()
        self.builder.end(Branch(predicate, instruction.guard.negated, inside, after))
        self.builder.start(inside)
        self.instruction(scope, replace(instruction, guard=None))
        self.builder.start(after)

    def pure(self, scope: Scope, instruction: Instruction) -> None:
        operation = operation_of(instruction)
        if operation is None:
            raise unsupported(instruction)
        result, *operands = instruction.operands
        pairs = zip(operands, operation.sources, strict=True)
        sources = tuple(self.builder.source(scope, operand, type, instruction) for operand, type in pairs)
        slot, bits = self.builder.slots.destination(scope, result, instruction)
        function = operation.function
        if bits != operation.result.bits:
            if bits < operation.result.bits or instruction.opcode != "cvt" or slot < 0:
                raise unsupported(instruction, f"a result of {bits} bits")
            function = _extended(function, operation.result, bits)
        if operation.undefined is not None:
            self.builder.emit(_check(instruction, operation, sources))
        self.builder.emit(pure_step(function, sources, slot))

    def move(self, scope: Scope, instruction: Instruction) -> None:
        """``mov``: also packs registers into a wider one, and unpacks."""
        modifiers = Modifiers(instruction)
        type = modifiers.type("usbfp", (16, 32, 64))
        modifiers.end()
        result, source = instruction.operands
        if isinstance(source, Vector):
            self.pack(scope, instruction, type, source)
            return
        slot = self.builder.source(scope, source, type, instruction)
        for part, function in _parts(result, type, instruction):
            destination, bits = self.builder.slots.destination(scope, part, instruction)
            if bits != (type.bits // len(result.items) if isinstance(result, Vector) else type.bits):
                raise unsupported(instruction, f"a result of {bits} bits")
            self.builder.emit(pure_step(function, (slot,), destination))

    def pack(self, scope: Scope, instruction: Instruction, type: ScalarType, source: Vector) -> None:
        part_bits = type.bits // len(source.items)
        if part_bits not in RAW or None in source.items:
            raise unsupported(instruction)
        part = TYPES[f"b{part_bits}"]
        slots = tuple(self.builder.source(scope, item, part, instruction) for item in source.items if item is not None)
        destination, _ = self.builder.slots.destination(scope, instruction.operands[0], instruction)

        def packed(*parts: Array) -> Array:
            whole = parts[0].astype(type.raw)
            for number, value in enumerate(parts[1:], 1):
                whole = whole | (value.astype(type.raw) << type.raw.type(number * part_bits))
            return whole

        self.builder.emit(pure_step(packed, slots, destination))

    def call(self, scope: Scope, instruction: Instruction) -> None:
        """``call.uni (result), function, (arguments)``: the body is put in place, with the caller's parameters."""
        modifiers = Modifiers(instruction)
        modifiers.take("uni")
        modifiers.end()
        groups = [operand for operand in instruction.operands if isinstance(operand, Group)]
        name = next(operand for operand in instruction.operands if isinstance(operand, Name))
        function = self.module.functions.get(name.text)
        if function is None or function.body is None or function.is_kernel:
            raise unsupported(instruction, f"a call of {name.text!r}, which the module does not define")
        if name.text in self.builder.calls:
            raise unsupported(instruction, f"recursion: {' -> '.join([*self.builder.calls, name.text])}")
        results_first = isinstance(instruction.operands[0], Group)
        results = groups.pop(0).items if results_first else ()
        arguments = groups.pop(0).items if groups else ()
        inner = self.builder.new_scope(name.text)
        inner.variables.update(self.variables)
        formal = (*function.results, *function.parameters)
        for parameter, actual in zip(formal, (*results, *arguments), strict=True):
            if not isinstance(actual, Name) or actual.text not in scope.variables:
                raise unsupported(instruction, "an argument that is no .param variable")
            inner.variables[parameter.name] = scope.variables[actual.text]
        inner.returns_to = self.builder.label()
        self.builder.calls.append(name.text)
        self.statements(inner, function.body)
        self.builder.calls.pop()
        self.builder.start(inner.returns_to)


def _parts(result: Operand, type: ScalarType, instruction: Instruction) -> list[tuple[Operand | None, Compute]]:
    """The registers that a move writes, and how each follows from the source."""
    if not isinstance(result, Vector):
        return [(result, copied)]
    bits = type.bits // len(result.items)
    if bits not in RAW:
        raise unsupported(instruction)
    return [(item, _part(number * bits, type, RAW[bits])) for number, item in enumerate(result.items) if item]


def _part(shift: int, type: ScalarType, part: DType) -> Compute:
    return lambda a: (a >> type.raw.type(shift)).astype(part)


def _extended(function: Compute, type: ScalarType, bits: int) -> Compute:
    """The result of a ``cvt`` in a wider register: sign or zero extended."""
    if not type.is_signed:
        return lambda a: function(a).astype(RAW[bits])
    wide = np.dtype(f"i{bits // 8}")
    return lambda a: function(a).view(type.dtype).astype(wide).view(RAW[bits])


def _check(instruction: Instruction, operation: Operation, sources: tuple[int, ...]) -> Step:
    """Finds lanes for which PTX leaves the result undefined."""
    undefined = operation.undefined
    assert undefined is not None

    def step(lanes: Lanes) -> None:
        wrong = undefined(*(lanes.taking_part(lanes.registers[source]) for source in sources))
        if np.count_nonzero(wrong):
            raise UndefinedResultError(lanes.fault(instruction, int(np.argmax(wrong))), operation.complaint)

    return step
