"""Which outputs a kernel surely writes whole, so that they need not be filled with the pad before it runs."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from halfulp.compiler import Dim, ceil_div
from halfulp.compiler.dialects import tile
from halfulp.compiler.dialects.tile.memory import root_of

from .mapping import BlockMapping, GridMapping

MOST_COUNTED = 1 << 16
"""Elements of a block up to which stores of its parts are added up."""


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
    """Whether the first accesses, on the kernel's own level, store all of the argument, or of its one window.

    One store may do that, or several, each of a part.
    """
    missing: npt.NDArray[np.bool_] | None = None
    for op in kernel.body.block.ops:
        if isinstance(op, tile.StoreOp) and root_of(op.ref) is argument:
            block = _block_around(op.ref, argument, whole=whole)
            if op.mask is not None or block is None:
                return False
            if op.ref is block:
                return True
            if missing is None:
                missing = _elements(block)
            if not _strike(missing, op.ref):
                return False
            if not missing.any():
                return True
            continue
        for inner in op.walk():
            if isinstance(inner, tile.LoadOp | tile.StoreOp) and root_of(inner.ref) is argument:
                return False
    return False


def _block_around(ref: SSAValue, argument: SSAValue, *, whole: bool) -> SSAValue | None:
    """What the kernel sees of ``argument`` as a whole, if ``ref`` is that or a window of it."""
    for candidate in (ref, ref.owner.ref if isinstance(ref.owner, tile.WindowOp) else None):
        if candidate is not None and (candidate is argument if whole else _is_block(candidate, argument)):
            return candidate
    return None


def _is_block(ref: SSAValue, argument: SSAValue) -> bool:
    return isinstance(ref.owner, tile.WindowOp) and ref.owner.ref is argument


def _elements(block: SSAValue) -> npt.NDArray[np.bool_]:
    """True for each element of a block; none if they are too many, or if their number is not known."""
    assert isinstance(block.type, tile.RefType)
    extents = block.type.extents
    known = block.type.is_static and prod(extents) <= MOST_COUNTED
    return np.ones(extents if known else (0,), bool)


def _strike(missing: npt.NDArray[np.bool_], part: SSAValue) -> bool:
    """Marks the elements of a window of the block as stored; False if it is not known which ones they are."""
    window = part.owner
    assert isinstance(window, tile.WindowOp)
    starts = [_known(index) for index in window.indices]
    if not missing.size or window.indexing.data != "element" or any(start is None or start < 0 for start in starts):
        return False
    missing[tuple(slice(n, n + size) for n, size in zip(starts, window.block_shape, strict=True) if n is not None)] = (
        False
    )
    return True


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
        elif not (_known(index) == 0 and isinstance(size, int) and extent >= size):
            return False
    unknown = {grid_axis for grid_axis, programs in enumerate(grid) if programs is None}
    return len(set(taken)) == len(taken) and unknown <= set(taken)


def _enough(programs: Any, extent: int, size: Any) -> bool:
    """Whether so many blocks reach over an axis, for whatever sizes the symbols stand."""
    if isinstance(programs, int) and isinstance(size, int):
        return programs * extent >= size
    return isinstance(programs, Dim) and isinstance(size, Dim) and programs == ceil_div(size, extent)


def _known(index: SSAValue) -> int | None:
    """The value of a constant."""
    op = index.owner
    if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None
