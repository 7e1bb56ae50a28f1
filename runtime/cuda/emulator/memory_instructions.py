"""Decodes ld, st, atom, red, cvta, isspacep and fences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from . import access, atomics
from .builder import Builder, pure_step
from .operands import Scope
from .operation import Modifiers, unsupported
from .spaces import WINDOWS, Access, Space
from .syntax import Address, Instruction, Operand, Vector
from .types import B64, PRED, U64, Array, ScalarType

_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("cta", "gpu", "sys")
_SPACES = ("global", "shared", "local", "const", "param")
_CACHE_HINTS = {"weak", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt"}
_VECTORS = {"v2": 2, "v4": 4}
_WIDTHS = (8, 16, 32, 64)

Spaces = Mapping[str, Space]
"""The state spaces by name."""


class MemoryDecoder:
    """Decodes for one set of spaces."""

    def __init__(self, builder: Builder, spaces: Spaces) -> None:
        self.builder = builder
        self.spaces = spaces

    def load(self, scope: Scope, instruction: Instruction) -> None:
        space, strong, count, type = _access_modifiers(instruction)
        space, base, offset = self.address(scope, instruction, instruction.operands[1], space)
        elements = self._elements(instruction, instruction.operands[0], count)
        slots = [self.builder.slots.destination(scope, element, instruction) for element in elements]
        if any(slot >= 0 and bits < type.bits for slot, bits in slots):
            raise unsupported(instruction, f"a register narrower than .{type.name}")
        self._same_width(instruction, slots)
        use = Access(instruction, "reads", type.nbytes, count, strong)
        locate = self.spaces[space].locate
        self.builder.emit(access.load(locate, use, type, base, offset, slots))

    def store(self, scope: Scope, instruction: Instruction) -> None:
        space, strong, count, type = _access_modifiers(instruction)
        space, base, offset = self.address(scope, instruction, instruction.operands[0], space)
        slots = []
        for element in self._elements(instruction, instruction.operands[1], count):
            if element is None:
                raise unsupported(instruction, "a store of nothing")
            slot, bits = self.builder.slots.source(scope, element, type, instruction)
            if bits < type.bits:
                raise unsupported(instruction, f"a register narrower than .{type.name}")
            slots.append(slot)
        use = Access(instruction, "writes", type.nbytes, count, strong)
        self.builder.emit(access.store(self.spaces[space].locate, use, type, base, offset, slots))

    def atomic(self, scope: Scope, instruction: Instruction) -> None:
        """``atom`` gives the old value, ``red`` does not."""
        modifiers = Modifiers(instruction)
        modifiers.take(*_STRONG)
        modifiers.take(*_SCOPES)
        space = _space(modifiers) or "generic"
        modifiers.take(*_SCOPES)
        name = modifiers.one_of("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        modifiers.take("noftz")
        type = modifiers.type()
        modifiers.end()
        change = atomics.change_of(name, type)
        operands = list(instruction.operands)
        result = operands.pop(0) if instruction.opcode == "atom" else None
        if change is None or space not in ("global", "shared", "generic") or len(operands) != 2 + (name == "cas"):
            raise unsupported(instruction)
        space, base, offset = self.address(scope, instruction, operands[0], space)
        slots = tuple(self.builder.source(scope, operand, type, instruction) for operand in operands[1:])
        destination, _ = self.builder.slots.destination(scope, result, instruction)
        use = Access(instruction, "updates", type.nbytes, 1, True)
        locate = self.spaces[space].locate
        self.builder.emit(atomics.atomic(locate, use, type, change, base, offset, slots, destination))

    def to_generic(self, scope: Scope, instruction: Instruction) -> None:
        """``cvta.shared.u64``, and back with ``cvta.to``: the base of the window is added or taken away."""
        modifiers = Modifiers(instruction)
        back = modifiers.take("to") is not None
        space = modifiers.one_of("global", "shared", "local", "const", "shared::cta").partition("::")[0]
        modifiers.type("u", (64,))
        modifiers.end()
        destination, _ = self.builder.slots.destination(scope, instruction.operands[0], instruction)
        slot = self.builder.source(scope, instruction.operands[1], B64, instruction)
        base = np.uint64(WINDOWS.get(space, 0))
        move: Callable[[Array], Array] = (lambda a: a - base) if back else (lambda a: a + base)
        self.builder.emit(pure_step(move, (slot,), destination))

    def is_in_space(self, scope: Scope, instruction: Instruction) -> None:
        """``isspacep.shared p, a``."""
        modifiers = Modifiers(instruction)
        space = modifiers.one_of("global", "shared", "local", "const")
        modifiers.end()
        destination, _ = self.builder.slots.destination(scope, instruction.operands[0], instruction)
        slot = self.builder.source(scope, instruction.operands[1], B64, instruction)
        windows = np.array([base >> 32 for base in WINDOWS.values()], U64)

        def inside(a: Array) -> Array:
            window = a >> np.uint64(32)
            return ~np.isin(window, windows) if space == "global" else window == np.uint64(WINDOWS[space] >> 32)

        self.builder.emit(pure_step(inside, (slot,), destination))

    def fence(self, scope: Scope, instruction: Instruction) -> None:
        """Nothing to do: an access is seen by all lanes as soon as it is made."""
        allowed = ({"gl", "cta", "sys"},) if instruction.opcode == "membar" else ({"sc", "acq_rel"}, set(_SCOPES))
        modifiers = instruction.modifiers
        if len(modifiers) != len(allowed) or not all(m in a for m, a in zip(modifiers, allowed, strict=True)):
            raise unsupported(instruction)

    def address(self, scope: Scope, instruction: Instruction, operand: Operand, space: str) -> tuple[str, int, int]:
        """The state space, the slot of the base and the offset.

        Parameters of functions, and of calls, lie in local memory; those of the kernel in a space of their own.
        """
        if not isinstance(operand, Address):
            raise unsupported(instruction, "an address without brackets")
        if operand.base is None:
            return space, self.builder.slots.constant(operand.offset, U64), 0
        variable = scope.variables.get(operand.base.text)
        if variable is not None:
            found, start = variable
            if space == "param" or (space, found) == ("generic", "global"):
                space = found
            elif found != space:
                raise unsupported(instruction, f"variable {operand.base.text!r} of .{found} as .{space}")
            return space, self.builder.slots.constant(start + operand.offset, U64), 0
        slot, bits = self.builder.slots.register(scope, operand.base.text, instruction)
        if bits not in (32, 64):
            raise unsupported(instruction, f"an address of {bits} bits")
        return space, slot, operand.offset

    def _elements(self, instruction: Instruction, operand: Operand, count: int) -> tuple[Operand | None, ...]:
        elements = operand.items if isinstance(operand, Vector) else (operand,)
        if len(elements) != count:
            raise unsupported(instruction, f"{len(elements)} elements where the type has {count}")
        return elements

    @staticmethod
    def _same_width(instruction: Instruction, slots: Sequence[tuple[int, int]]) -> None:
        if len({bits for slot, bits in slots if slot >= 0}) > 1:
            raise unsupported(instruction, "a vector of registers of different widths")


def _space(modifiers: Modifiers) -> str | None:
    name = modifiers.left[0] if modifiers.left else ""
    if name in _SPACES or name in ("shared::cta", "param::entry", "param::func"):
        return modifiers.left.pop(0).partition("::")[0]
    return None


def _access_modifiers(instruction: Instruction) -> tuple[str, bool, int, ScalarType]:
    """State space, whether the access is strong, how many elements, and their type."""
    modifiers = Modifiers(instruction)
    strong = modifiers.take(*_STRONG) is not None
    if not strong:
        modifiers.take("weak")
    modifiers.take(*_SCOPES)
    space = _space(modifiers) or "generic"
    while modifiers.left and (modifiers.left[0] in _CACHE_HINTS or modifiers.left[0].startswith(("L1::", "L2::"))):
        modifiers.left.pop(0)
    count = _VECTORS[modifiers.left.pop(0)] if modifiers.left and modifiers.left[0] in _VECTORS else 1
    type = modifiers.type("usbf", _WIDTHS)
    modifiers.end()
    if type == PRED or (type.is_float and type.bits == 16):
        raise unsupported(instruction)
    return space, strong, count, type
