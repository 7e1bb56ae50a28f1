"""Registers, constants and names of a kernel as numbered slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .errors import PtxSyntaxError, UnsupportedPtxError
from .lanes import WARP, Lanes
from .operation import unsupported
from .syntax import FloatBits, Instruction, Integer, Name, Operand, Registers
from .types import RAW, TYPES, U32, U64, Array, DType, ScalarType

Initial = Callable[[Lanes], Array]

_AXES = {"x": 0, "y": 1, "z": 2}


def _thread_index(axis: int) -> Initial:
    def index(lanes: Lanes) -> Array:
        x, y, z = lanes.launch.block
        stride, extent = ((1, x), (x, y), (x * y, z))[axis]
        return ((lanes.lane_in_block // stride) % extent).astype(U32)

    return index


def _block_index(axis: int) -> Initial:
    def index(lanes: Lanes) -> Array:
        indices = np.array([lanes.block_index(block)[axis] for block in lanes.blocks], U32)
        return indices if indices.size == 1 else indices[lanes.block_of_lane]

    return index


def _special_registers() -> dict[str, tuple[int, Initial]]:
    """Name -> bits and value."""
    special: dict[str, tuple[int, Initial]] = {
        "%laneid": (32, lambda lanes: lanes.lane_in_warp),
        "%warpid": (32, lambda lanes: (lanes.lane_in_block // WARP).astype(U32)),
        "%nwarpid": (32, lambda lanes: np.array([lanes.width // WARP], U32)),
        "%dynamic_smem_size": (32, lambda lanes: np.array([lanes.launch.dynamic_shared], U32)),
        "WARP_SZ": (32, lambda lanes: np.array([WARP], U32)),
    }
    for name, axis in _AXES.items():
        special[f"%tid.{name}"] = 32, _thread_index(axis)
        special[f"%ctaid.{name}"] = 32, _block_index(axis)
        special[f"%ntid.{name}"] = 32, lambda lanes, axis=axis: np.array([lanes.launch.block[axis]], U32)  # type: ignore[misc]
        special[f"%nctaid.{name}"] = 32, lambda lanes, axis=axis: np.array([lanes.launch.grid[axis]], U32)  # type: ignore[misc]
    lane_masks: dict[str, Callable[[Array], Array]] = {
        "eq": lambda bit: bit,
        "lt": lambda bit: bit - np.uint32(1),
        "le": lambda bit: bit | (bit - np.uint32(1)),
        "gt": lambda bit: ~(bit | (bit - np.uint32(1))),
        "ge": lambda bit: ~(bit - np.uint32(1)),
    }
    for name, mask in lane_masks.items():
        special[f"%lanemask_{name}"] = 32, lambda lanes, mask=mask: mask(np.uint32(1) << lanes.lane_in_warp)  # type: ignore[misc]
    return special


SPECIAL_REGISTERS = _special_registers()


@dataclass
class Scope:
    """The names of one function, or of one inlined call of it.

    ``variables`` are addresses by name, with the state space; a later declaration of a name hides an earlier one.
    """

    function: str
    number: int
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)
    families: dict[str, tuple[int, int]] = field(default_factory=dict)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    returns_to: int | None = None


class Slots:
    """Hands out slots, and finds the slot of an operand."""

    def __init__(self) -> None:
        self.initial: list[Initial] = []
        self._constants: dict[tuple[int, DType], int] = {}
        self._special: dict[str, int] = {}

    def new(self, raw: DType) -> int:
        """A register; it holds zeros until it is written."""
        zero = np.zeros(1, raw)
        return self.add(lambda lanes: zero)

    def add(self, initial: Initial) -> int:
        self.initial.append(initial)
        return len(self.initial) - 1

    def constant(self, value: int, raw: DType) -> int:
        """A slot that holds a number, modulo the width."""
        key = (value % (1 << 8 * raw.itemsize), raw)
        if key not in self._constants:
            array = np.array([key[0]], raw)
            self._constants[key] = self.add(lambda lanes: array)
        return self._constants[key]

    def declare(self, scope: Scope, registers: Registers) -> None:
        bits = TYPES[registers.type].bits
        for name in registers.names:
            if registers.count is not None:
                scope.families[name] = (registers.count, bits)
            elif scope.registers.get(name, (0, bits))[1] != bits:
                raise UnsupportedPtxError(
                    f"function {scope.function!r} declares register {name!r} with two widths; use two names"
                )
            elif name not in scope.registers:
                scope.registers[name] = (self.new(RAW[bits]), bits)

    def register(self, scope: Scope, name: str, instruction: Instruction) -> tuple[int, int]:
        """The slot and the bits of a register, which may be a special one."""
        found = scope.registers.get(name)
        if found is not None:
            return found
        if name in SPECIAL_REGISTERS:
            bits, initial = SPECIAL_REGISTERS[name]
            if name not in self._special:
                self._special[name] = self.add(initial)
            return self._special[name], bits
        family = name.rstrip("0123456789")
        count, bits = scope.families.get(family, (0, 0))
        number = name[len(family) :]
        if number and int(number) < count:
            scope.registers[name] = (self.new(RAW[bits]), bits)
            return scope.registers[name]
        if name.startswith("%") and not number:
            raise unsupported(instruction, f"the special register {name}")
        raise PtxSyntaxError(f"PTX line {instruction.line}: {instruction.text}: {name!r} is not declared")

    def destination(self, scope: Scope, operand: Operand | None, instruction: Instruction) -> tuple[int, int]:
        """The slot and the bits of a register to write; -1 and 64 for ``_``."""
        if operand is None or operand == Name("_"):
            return -1, 64
        if not isinstance(operand, Name) or operand.text in SPECIAL_REGISTERS:
            raise PtxSyntaxError(f"PTX line {instruction.line}: {instruction.text}: the result must be a register")
        return self.register(scope, operand.text, instruction)

    def source(self, scope: Scope, operand: Operand, type: ScalarType, instruction: Instruction) -> tuple[int, int]:
        """The slot and the bits of an operand of an instruction of that type."""
        if isinstance(operand, Integer) and not (type.is_float and type.bits > 16):
            return self.constant(operand.value, type.raw), type.bits
        if isinstance(operand, FloatBits) and operand.width == type.bits:
            return self.constant(operand.bits, type.raw), type.bits
        if isinstance(operand, Name):
            variable = scope.variables.get(operand.text)
            if variable is None:
                return self.register(scope, operand.text, instruction)
            return self.constant(variable[1], U32 if type.bits == 32 else U64), 32 if type.bits == 32 else 64
        raise unsupported(instruction, f"such an operand of type .{type.name}")
