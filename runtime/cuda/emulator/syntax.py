"""A PTX module as it is written: what the parser makes and the decoder reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Name:
    """A register, special register, variable, function or label."""

    text: str


@dataclass(frozen=True)
class Integer:
    """A whole number, or the truth of a predicate."""

    value: int


@dataclass(frozen=True)
class FloatBits:
    """``0f3F800000`` or ``0d3FF0...``: the bits of a float of 32 or 64 bits."""

    bits: int
    width: int


@dataclass(frozen=True)
class Negated:
    """``!%p1``."""

    name: Name


@dataclass(frozen=True)
class Address:
    """``[base+offset]``; the base of an absolute address is None."""

    base: Name | None
    offset: int


@dataclass(frozen=True)
class Vector:
    """``{a, b}``; None is ``_``."""

    items: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Pair:
    """``%r1|%p1``; None is ``_``."""

    first: Name | None
    second: Name | None


@dataclass(frozen=True)
class Group:
    """``(a, b)``: the results or arguments of a call."""

    items: tuple[Operand, ...]


Operand: TypeAlias = "Name | Integer | FloatBits | Negated | Address | Vector | Pair | Group"


@dataclass(frozen=True)
class Guard:
    """``@%p1`` or ``@!%p1``."""

    predicate: str
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """``@guard opcode.modifiers operands;`` and where it stands."""

    line: int
    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None = None

    @property
    def name(self) -> str:
        """The opcode with all its modifiers."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Label:
    """A place to jump to."""

    name: str


@dataclass(frozen=True)
class BranchTargets:
    """The labels that a ``brx.idx`` chooses from."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Registers:
    """``.reg .b32 %r<5>``: the names are ``%r0`` to ``%r4``; without a count it is one name."""

    type: str
    names: tuple[str, ...]
    count: int | None


@dataclass(frozen=True)
class Variable:
    """A variable of a state space: its alignment and size in bytes, and its initial bytes, if it has any.

    ``size`` is None for ``.extern .shared`` arrays without a length: the launch decides.
    """

    line: int
    space: str
    name: str
    alignment: int
    size: int | None
    initial: bytes | None = None
    type: str = "b8"
    is_array: bool = False


Item: TypeAlias = "Instruction | Label | BranchTargets | Registers | Variable"


@dataclass(frozen=True)
class Function:
    """A kernel (``.entry``) or a function, with the body in order; None for a declaration."""

    line: int
    name: str
    is_kernel: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    body: tuple[Item, ...] | None
    required_threads: tuple[int, int, int] | None = None
    most_threads: int | None = None


@dataclass
class Module:
    """A whole file."""

    version: str = ""
    target: str = ""
    variables: list[Variable] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
