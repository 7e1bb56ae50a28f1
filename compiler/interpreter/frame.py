"""The state of a run: what the SSA values of one program hold, and what all programs share.

Ops find their implementation in the table of the `Execution`, so loops and branches can run the blocks inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from xdsl.dialects.func import ReturnOp as FunctionReturnOp
from xdsl.dialects.scf import ConditionOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from ..artifact import PrintSite
from ..dialects.tile import KernelOp, RefType
from ..dialects.tile import ReturnOp as KernelReturnOp
from ..dialects.tile.types import shape_of
from .exact import Array
from .memory import Buffer, Reference
from .values import InterpreterError, dtype_of

Value: TypeAlias = "Array | Reference"
Handler: TypeAlias = "Callable[[Frame, Any], Iterable[Value]]"
"""Runs one op in a frame; gives the values of its results in order."""

TERMINATORS = (KernelReturnOp, FunctionReturnOp, YieldOp, ConditionOp)
"""They end a block and hand their operands to whoever runs it."""


@dataclass(frozen=True)
class FailedCheck:
    """A ``tile.check`` that did not hold, its message filled in.

    ``kernel`` is the name of the kernel (of the entry function for a check outside all kernels) and ``program`` the
    program id along each axis of the grid, None outside kernels. ``is_bounds``: it is about an index.
    """

    kernel: str
    program: tuple[int, ...] | None
    message: str
    is_bounds: bool = False

    def __str__(self) -> str:
        program = "" if self.program is None else f"program {list(self.program)} of "
        return f"{self.message} (in {program}@{self.kernel})"


@dataclass(frozen=True)
class Printed:
    """What one print showed: copies of its values, in numpy's types."""

    site: PrintSite
    arrays: tuple[Array, ...]

    @property
    def line(self) -> str:
        """What a kernel's print shows."""
        return self.site.line(self.arrays)


class Observer(Protocol):
    """Is told what programs do, in the order in which they do it."""

    def launch(self, kernel: str, buffers: Sequence[Value]) -> None:
        """A kernel is launched with these arguments."""

    def program(self, kernel: str, program: tuple[int, ...]) -> None:
        """A program starts."""

    def access(self, reference: Reference, mask: Array | None, *, writes: bool) -> None:
        """The program reads or writes the valid elements of a reference that the mask does not leave out."""


@dataclass
class Execution:
    """What all programs of a run share."""

    handlers: Mapping[type[Operation], Handler]
    kernels: Mapping[str, KernelOp]
    bindings: dict[str, int] = field(default_factory=dict)
    failed: FailedCheck | None = None
    observers: Sequence[Observer] = ()
    printed: list[Printed] = field(default_factory=list)


class StopExecution(Exception):  # noqa: N818 (no error: a check of the program did not hold)
    """Leaves the entry function after a failed check."""


class Frame:
    """The values of one program of a kernel, or of the entry function."""

    def __init__(self, execution: Execution, name: str, program: tuple[int, ...] | None = None) -> None:
        self.execution = execution
        self.name = name
        self.program = program
        """The program id; None in the entry function."""
        self._values: dict[SSAValue, Value | Buffer] = {}

    def set(self, target: SSAValue, value: Value | Buffer) -> None:
        """Gives an SSA value what it holds; an array must have exactly the type that the IR says.

        Raises:
            InterpreterError: it has another shape or dtype, or is no reference where one is wanted.
        """
        if isinstance(target.type, RefType) == isinstance(value, Reference | Buffer):
            if isinstance(value, Reference | Buffer):
                self._values[target] = value
                return
            array = np.asarray(value)
            if array.dtype == dtype_of(target.type) and array.shape == shape_of(target.type):
                self._values[target] = array
                return
        raise InterpreterError(f"@{self.name}: {_owner(target)} of type {target.type} cannot hold {_describe(value)}")

    def _get(self, source: SSAValue) -> Value:
        value = self._values.get(source)
        if value is None:
            raise InterpreterError(
                f"@{self.name}: {_owner(source)} is used before it has a value; the definition must dominate the use"
            )
        return value.reference(self.execution.bindings) if isinstance(value, Buffer) else value

    def array(self, source: SSAValue) -> Array:
        """What a scalar or block holds."""
        value = self._get(source)
        assert not isinstance(value, Reference)
        return value

    def arrays(self, sources: Sequence[SSAValue]) -> list[Array]:
        """What scalars and blocks hold."""
        return [self.array(source) for source in sources]

    def integer(self, source: SSAValue) -> int:
        """What a scalar integer or index holds, as a signed number; 0 or 1 for i1."""
        return int(self.array(source))

    def integers(self, sources: Sequence[SSAValue]) -> list[int]:
        """What scalar integers hold."""
        return [self.integer(source) for source in sources]

    def reference(self, source: SSAValue) -> Reference:
        """What a value of type ``!tile.ref`` refers to."""
        value = self._get(source)
        assert isinstance(value, Reference)
        return value

    def values(self, sources: Sequence[SSAValue]) -> list[Value]:
        """What values of any kind hold."""
        return [self._get(source) for source in sources]

    def run_block(self, block: Block, arguments: Sequence[Value | Buffer] = ()) -> list[Value]:
        """Runs the ops of a block in order; the values of its terminator's operands.

        Raises:
            InterpreterError: an op has no implementation.
        """
        for target, value in zip(block.args, arguments, strict=True):
            self.set(target, value)
        return self.run_ops(block)

    def run_ops(self, block: Block) -> list[Value]:
        """As `run_block`, where the arguments of the block have been set; at the latest before they are used."""
        for op in block.ops:
            if isinstance(op, TERMINATORS):
                return self.values(op.operands)
            self._run(op)
        return []

    def _run(self, op: Operation) -> None:
        handler = self.execution.handlers.get(type(op))
        if handler is None:
            raise InterpreterError(
                f"@{self.name}: the interpreter has no implementation of '{op.name}'; lower it to ops of tile, arith,"
                " math or scf that it knows"
            )
        for result, value in zip(op.results, handler(self, op), strict=True):
            self.set(result, value)


def _owner(value: SSAValue) -> str:
    name = f"%{value.name_hint} " if value.name_hint else ""
    owner = value.owner
    return f"{name}(a result of '{owner.name}')" if isinstance(owner, Operation) else f"{name}(a block argument)"


def _describe(value: Value | Buffer) -> str:
    if isinstance(value, Reference | Buffer):
        return "a reference"
    array = np.asarray(value)
    return f"{array.dtype} of shape {list(array.shape)}"
