"""A decoded kernel: basic blocks of steps, and how each of them ends.

Registers are numbered slots. Constants, addresses of variables and special registers have slots too, filled before a
batch starts, so that a step reads everything it needs from one list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from .access import Step
from .lanes import Lanes
from .layout import Layout
from .syntax import Function, Instruction
from .types import Array


@dataclass(frozen=True)
class Jump:
    """All lanes go on at ``target``."""

    target: int


@dataclass(frozen=True)
class Branch:
    """Lanes whose predicate holds (does not, if ``negated``) go to ``target``, the others to ``otherwise``."""

    predicate: int
    negated: bool
    target: int
    otherwise: int


@dataclass(frozen=True)
class Switch:
    """``brx.idx``: the slot chooses among the targets."""

    instruction: Instruction
    slot: int
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Barrier:
    """``bar.sync``: lanes wait until all threads of their block have come."""

    instruction: Instruction
    target: int


@dataclass(frozen=True)
class Exit:
    """The lanes are done."""


@dataclass(frozen=True)
class Trap:
    """The launch fails."""

    instruction: Instruction


Ending: TypeAlias = "Jump | Branch | Switch | Barrier | Exit | Trap"


@dataclass
class BasicBlock:
    """Steps that the same lanes execute one after the other.

    A block with a ``gate`` starts with a warp operation: the slot of its member mask. Lanes wait there for the others
    that the mask names. ``meets`` tells that these are then ordered (``bar.warp.sync``).
    """

    steps: list[Step] = field(default_factory=list)
    ending: Ending | None = None
    first: Instruction | None = None
    gate: int | None = None
    meets: bool = False


@dataclass
class Program:
    """A kernel that can run.

    Attributes:
        initial: for each slot a function from the batch to its first value.
        static_shared: bytes that a real device needs for shared variables of known size.
        dynamic_shared: whether the last shared variable is an array of the size that the launch gives.
    """

    function: Function
    blocks: list[BasicBlock]
    initial: list[Callable[[Lanes], Array]]
    shared: Layout
    local: Layout
    static_shared: int
    dynamic_shared: bool
