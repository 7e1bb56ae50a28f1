"""The driver: runs the entry function of a module, or one kernel, on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation

from ..dialects.tile import KernelOp, RefType
from ..errors import near_names
from .control import CONTROL_HANDLERS
from .elementwise import ELEMENTWISE_HANDLERS
from .exact import Array
from .frame import Execution, FailedCheck, Frame, Handler, Observer, Printed, StopExecution
from .launch import LAUNCH_HANDLERS, check_counts, run_programs
from .memory import MEMORY_HANDLERS, Buffer, BufferSource, Reference, reference_to
from .reduction import REDUCTION_HANDLERS
from .shapes import SHAPE_HANDLERS
from .values import InterpreterError, dtype_of

HANDLERS: dict[type[Operation], Handler] = {
    **LAUNCH_HANDLERS,
    **MEMORY_HANDLERS,
    **SHAPE_HANDLERS,
    **ELEMENTWISE_HANDLERS,
    **REDUCTION_HANDLERS,
    **CONTROL_HANDLERS,
}
"""Op class -> what it does. A kernel itself is run by ``tile.launch``, a terminator by what runs its block."""


@dataclass(frozen=True)
class InterpreterResult:
    """What a run left behind.

    Attributes:
        arrays: the array of each reference argument, in order; None for one that a failed check left unmade.
        bindings: the symbolic dims, those set by ``tile.set_dim`` included.
        failed: the first check that did not hold; the run ended with the launch that it belongs to.
        printed: what was printed before a check failed, in order.
    """

    arrays: tuple[Array | None, ...]
    bindings: dict[str, int]
    failed: FailedCheck | None = None
    printed: tuple[Printed, ...] = ()


def interpret(
    module: ModuleOp,
    entry: str,
    buffers: Sequence[BufferSource],
    dims: Mapping[str, int] | None = None,
    observers: Sequence[Observer] = (),
) -> InterpreterResult:
    """Runs the function ``entry`` of a module of tile IR, program after program.

    Args:
        module: kernels and the entry function; it must verify.
        entry: the name of a ``func.func`` whose arguments are references.
        buffers: an array for each argument, of the rank, extents and dtype of its type (integers signed or unsigned),
            changed in place; or a function from the symbolic dims to such an array, called when the argument is first
            used.
        dims: what the symbolic dims are bound to.
        observers: are told of each launch, program, load and store.

    Raises:
        InterpreterError: no such function, a buffer of another type, an op without an implementation, a value without a
            definition, or a processor set to flush subnormals to zero.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    function = functions.get(entry)
    if function is None:
        raise InterpreterError(f"the module has no function @{entry}{near_names(entry, functions)}")
    arguments = function.args
    if len(buffers) != len(arguments):
        raise InterpreterError(f"@{entry} takes {len(arguments)} buffers, not {len(buffers)}")
    execution = Execution(HANDLERS, _kernels(module), dict(dims or {}), observers=observers)
    made = [_argument(argument, source) for argument, source in zip(arguments, buffers, strict=True)]
    frame = Frame(execution, entry)
    with np.errstate(all="ignore"):
        _require_subnormals()
        try:
            frame.run_block(function.body.block, made)
            for buffer in made:
                buffer.reference(execution.bindings)
        except StopExecution:
            pass  # the failed check is in the result
    arrays = tuple(buffer.array for buffer in made)
    return InterpreterResult(arrays, execution.bindings, execution.failed, tuple(execution.printed))


def interpret_kernel(kernel: KernelOp, grid: Sequence[int], arguments: Sequence[Any]) -> FailedCheck | None:
    """Runs one kernel over ``grid``; arrays for references are changed in place, scalars are numbers or numpy scalars.

    Returns:
        the first check that did not hold.

    Raises:
        InterpreterError: the grid or an argument does not match the kernel; and as `interpret` does.
    """
    execution = Execution(HANDLERS, {kernel.sym_name.data: kernel})
    check_counts(kernel, len(arguments), len(grid))
    values = [_kernel_argument(*pair) for pair in zip(kernel.arguments, arguments, strict=True)]
    with np.errstate(all="ignore"):
        _require_subnormals()
        run_programs(execution, kernel, grid, values)
    return execution.failed


def _kernel_argument(parameter: BlockArgument, argument: Array) -> Array | Reference:
    if not isinstance(parameter.type, RefType):
        return np.asarray(argument, dtype_of(parameter.type))
    return reference_to(_name(parameter), argument, parameter.type)


def _kernels(module: ModuleOp) -> dict[str, KernelOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


def _argument(argument: BlockArgument, source: BufferSource) -> Buffer:
    if not isinstance(argument.type, RefType):
        raise InterpreterError(
            f"buffer {_name(argument)} must be for an argument of type !tile.ref, not {argument.type}"
        )
    buffer = Buffer(_name(argument), argument.type, source)
    if not callable(source):
        buffer.reference({})
    return buffer


def _name(argument: BlockArgument) -> str:
    return f"{argument.index} (%{argument.name_hint})" if argument.name_hint else str(argument.index)


def _require_subnormals() -> None:
    """Numpy computes with the flags the thread has; some libraries leave flush-to-zero set in it."""
    smallest = np.array([2.0**-149], np.float32)
    if (smallest * np.float32(1.0) == 0).any():
        raise InterpreterError(
            "this thread flushes subnormal floats to zero, so numpy rounds otherwise than IEEE 754; undo what set it"
            " (a library built with -ffast-math, torch.set_flush_denormal) before interpreting"
        )
