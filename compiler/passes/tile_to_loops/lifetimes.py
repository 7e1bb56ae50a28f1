"""From when to when a buffer between kernels holds something: its first and last step in the entry function.

Steps are the launches and checks of the entry, in the order of its text (`EntryLayout.launches`). Whatever stands
between two of them belongs to the one before. Two buffers whose steps do not overlap may lie in the same memory.

A buffer that stands before a loop and is used inside of it lives as long as the loop. One that stands inside holds
nothing from one round to the next.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ...dialects import tile
from .layout import EntryLayout

Steps = dict[Operation, tuple[int, int]]
"""The first and last step of an op; several only for one with regions."""


def lifetimes(layout: EntryLayout) -> list[tuple[int, int]]:
    """(first, last) step of each buffer, both included; (0, 0) for one that nothing touches."""
    steps: Steps = {}
    current = 0
    for segment in layout.segments:
        for op in segment:
            current = _number(op, current, layout, steps)
    return [_lifetime(buffer, steps) for buffer in layout.buffers]


def _number(op: Operation, current: int, layout: EntryLayout, steps: Steps) -> int:
    """Notes the steps of an op and of all inside it, given the last step before; gives the last step now."""
    first = current = layout.launches.get(op, current)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                current = _number(inner, current, layout, steps)
    steps[op] = first, current
    return current


def _lifetime(buffer: tile.BufferOp, steps: Steps) -> tuple[int, int]:
    """A value read from the buffer keeps it alive as long as it is used: reads are repeated in later segments."""
    found: list[int] = []
    seen: set[SSAValue] = {buffer.result}
    waiting: list[SSAValue] = [buffer.result]
    while waiting:
        for use in waiting.pop().uses:
            if isinstance(use.operation, tile.DimOp):
                continue  # an extent is known without the memory
            around = _ops_around(use.operation, buffer)
            loops = [op for op in around if isinstance(op, scf.WhileOp | scf.ForOp)]
            # what a branch decides by is needed where it begins
            found += steps[loops[-1]] if loops else steps[use.operation][:1]
            new = [result for op in around for result in op.results if result not in seen]
            seen.update(new)
            waiting += new
    return (min(found), max(found)) if found else (0, 0)


def _ops_around(op: Operation, buffer: tile.BufferOp) -> list[Operation]:
    """``op`` and what it is inside of, up to the block that the buffer stands in."""
    ops = [op]
    while ops[-1].parent is not buffer.parent:
        parent = ops[-1].parent_op()
        assert parent is not None, f"{op.name} uses a buffer of another block"
        ops.append(parent)
    return ops
