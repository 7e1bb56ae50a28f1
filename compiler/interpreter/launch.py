"""What the entry function does: buffers, symbolic dims, launches of kernels; checks and prints of both."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from ..artifact import PrintedValue
from ..dialects import tile
from ..dialects.tile import KernelOp, RefType
from ..dims import parse_dim
from ..errors import near_names
from ..print_sites import print_site
from .casts import is_float
from .exact import Array
from .frame import Execution, FailedCheck, Frame, Printed, StopExecution, Value
from .memory import Reference
from .values import InterpreterError, dtype_of

if TYPE_CHECKING:
    from .frame import Handler


def run_programs(execution: Execution, kernel: KernelOp, grid: Sequence[int], arguments: Sequence[Value]) -> None:
    """Runs a kernel over a grid, one program after another, the last axis fastest.

    A failed check is noted in ``execution`` (the first one only) and stops nothing.

    Raises:
        InterpreterError: the grid or the arguments do not match the kernel.
    """
    name = kernel.sym_name.data
    check_counts(kernel, len(arguments), len(grid))
    sizes = [np.array(size, np.int64) for size in grid]
    for observer in execution.observers:
        observer.launch(name, arguments)
    for program in itertools.product(*(range(size) for size in grid)):
        frame = Frame(execution, name, program)
        ids = [np.array(i, np.int64) for i in program]
        for observer in execution.observers:
            observer.program(name, program)
        frame.run_block(kernel.body.block, [*arguments, *ids, *sizes])


def check_counts(kernel: KernelOp, arguments: int, sizes: int) -> None:
    """Checks how many arguments and grid sizes a kernel is given.

    Raises:
        InterpreterError: it takes other numbers of them.
    """
    if arguments != len(kernel.arguments) or sizes != kernel.grid_rank:
        raise InterpreterError(
            f"kernel @{kernel.sym_name.data} takes {len(kernel.arguments)} arguments and {kernel.grid_rank} grid sizes,"
            f" not {arguments} and {sizes}"
        )


def _launch(frame: Frame, op: tile.LaunchOp) -> Iterable[Value]:
    name, kernels = op.kernel.root_reference.data, frame.execution.kernels
    kernel = kernels.get(name)
    if kernel is None:
        raise InterpreterError(
            f"@{frame.name}: launches kernel @{name}, which does not exist{near_names(name, kernels)}"
        )
    run_programs(frame.execution, kernel, frame.integers(op.grid), frame.values(op.arguments))
    if frame.execution.failed is not None:
        raise StopExecution
    return ()


def _buffer(frame: Frame, op: tile.BufferOp) -> Iterable[Reference]:
    ref_type = op.result.type
    assert isinstance(ref_type, RefType)
    extents = [parse_dim(text.data).evaluate(frame.execution.bindings) for text in op.shape]
    for text, extent, wanted in zip(op.shape, extents, ref_type.extents, strict=True):
        if extent < 0 or wanted not in (DYNAMIC_INDEX, extent):
            rule = "must not be negative" if extent < 0 else f"must be {wanted}, as in {ref_type}"
            raise InterpreterError(f"@{frame.name}: extent '{text.data}' of a tile.buffer {rule}; it is {extent}")
    return (Reference.whole(_undefined(extents, ref_type)),)


def _undefined(extents: Sequence[int], ref_type: RefType) -> Array:
    """Memory nothing was written to: NaN, or a number no test would expect, so that reading it shows."""
    dtype = dtype_of(ref_type.element_type)
    if is_float(dtype):
        return np.full(extents, np.nan, dtype)
    return np.full(extents, True if dtype == np.bool_ else np.iinfo(dtype).min, dtype)


def _set_dim(frame: Frame, op: tile.SetDimOp) -> Iterable[Value]:
    frame.execution.bindings[op.symbol.data] = frame.integer(op.value)
    return ()


def _check(frame: Frame, op: tile.CheckOp) -> Iterable[Value]:
    if frame.array(op.condition) or frame.execution.failed is not None:
        return ()
    first, *rest = op.message.data.split("{}")
    values = frame.integers(op.values)
    message = first + "".join(f"{value}{text}" for value, text in zip(values, rest, strict=True))
    frame.execution.failed = FailedCheck(frame.name, frame.program, message, op.is_bounds)
    if frame.program is None:
        raise StopExecution
    return ()


def _print(frame: Frame, op: tile.PrintOp | tile.PrintTensorOp) -> Iterable[Value]:
    if frame.execution.failed is None:
        site = print_site(op)
        held = frame.arrays(op.values) if isinstance(op, tile.PrintOp) else [frame.reference(op.ref).array]
        frame.execution.printed.append(Printed(site, tuple(map(_shown, site.values, held))))
    return ()


def _shown(value: PrintedValue, held: Array) -> Array:
    """A copy in the printed type; integers of the IR have no sign."""
    array = np.array(held).view(value.dtype.to_numpy())
    return array if value.shape else array.reshape(())


def _transfer(frame: Frame, op: tile.TransferOp) -> Iterable[Value]:
    source, target = frame.reference(op.source).array, frame.reference(op.target).array
    target[...] = source.reshape(target.shape)
    return ()


LAUNCH_HANDLERS: dict[type[Operation], Handler] = {
    tile.LaunchOp: _launch,
    tile.BufferOp: _buffer,
    tile.SetDimOp: _set_dim,
    tile.TransferOp: _transfer,
    tile.CheckOp: _check,
    tile.PrintOp: _print,
    tile.PrintTensorOp: _print,
}
