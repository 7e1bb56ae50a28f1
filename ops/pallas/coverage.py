"""Which outputs a kernel surely writes whole, so that they need not be filled with the pad before it runs."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from halfulp.compiler import Dim, ceil_div
from halfulp.compiler.dialects import tile

from .mapping import BlockMapping, GridMapping


def root_of(ref: SSAValue) -> SSAValue:
    """The argument or allocation that a reference is part of."""
    while isinstance(ref.owner, tile.WindowOp | tile.FlattenOp | tile.ReinterpretOp):
        ref = ref.owner.ref
    return ref


def covered_outputs(kernel: tile.KernelOp, mapping: GridMapping) -> frozenset[int]:
    """Outputs whose blocks cover them and are stored whole, always, before anything of them is read."""
    first_output = len(mapping.inputs)
    covered = set()
    for number, block in enumerate(mapping.outputs):
        argument = kernel.arguments[first_output + number]
        if _stores_first(kernel, argument, whole=block.blocks is None) and _blocks_cover(
            kernel, argument, mapping, block
        ):
            covered.add(number)
    return frozenset(covered)


def _stores_first(kernel: tile.KernelOp, argument: SSAValue, *, whole: bool) -> bool:
    """Whether the first access, on the kernel's own level, stores all of the argument or of its one window."""
    for op in kernel.body.block.ops:
        if isinstance(op, tile.StoreOp) and root_of(op.ref) is argument:
            direct = op.ref is argument if whole else _is_block(op.ref, argument)
            return direct and op.mask is None
        for inner in op.walk():
            if isinstance(inner, tile.LoadOp | tile.StoreOp) and root_of(inner.ref) is argument:
                return False
    return False


def _is_block(ref: SSAValue, argument: SSAValue) -> bool:
    return isinstance(ref.owner, tile.WindowOp) and ref.owner.ref is argument


def _blocks_cover(kernel: tile.KernelOp, argument: SSAValue, mapping: GridMapping, block: BlockMapping) -> bool:
    """Whether the windows of all programs together are the whole array: each axis follows a grid axis of its own."""
    grid = mapping.static_grid
    if any(size is not None and size < 1 for size in grid):
        return False
    if block.blocks is None:
        return None not in grid
    windows = {use.operation for use in argument.uses if isinstance(use.operation, tile.WindowOp)}
    if len(windows) != 1 or len(list(argument.uses)) != 1:
        return False
    (window,) = windows
    assert isinstance(window, tile.WindowOp)
    taken = []
    for axis, (index, size) in enumerate(zip(window.indices, block.shape, strict=True)):
        if window.indexing.data != "blocked":
            return False
        extent = window.block_shape[axis]
        if index in kernel.program_ids:
            grid_axis = kernel.program_ids.index(index)
            taken.append(grid_axis)
            if not _enough(mapping.grid[grid_axis], extent, size):
                return False
        elif not (_is_zero(index) and isinstance(size, int) and extent >= size):
            return False
    unknown = {grid_axis for grid_axis, programs in enumerate(grid) if programs is None}
    return len(set(taken)) == len(taken) and unknown <= set(taken)


def _enough(programs: Any, extent: int, size: Any) -> bool:
    """Whether so many blocks reach over an axis, for whatever sizes the symbols stand."""
    if isinstance(programs, int) and isinstance(size, int):
        return programs * extent >= size
    return isinstance(programs, Dim) and isinstance(size, Dim) and programs == ceil_div(size, extent)


def _is_zero(index: SSAValue) -> bool:
    op = index.owner
    return isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr) and op.value.value.data == 0
