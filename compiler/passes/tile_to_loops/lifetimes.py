"""From when to when a buffer between kernels holds something: its first and last step in the entry function.

Steps are the launches and checks of the entry, in order (`EntryLayout.launches`). Whatever stands between two of them
belongs to the one before. Two buffers whose steps do not overlap may lie in the same memory.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import tile
from .layout import EntryLayout


def lifetimes(layout: EntryLayout) -> list[tuple[int, int]]:
    """(first, last) step of each buffer, both included; (0, 0) for one that nothing touches."""
    step_of = _steps(layout)
    return [_lifetime(buffer, step_of) for buffer in layout.buffers]


def _steps(layout: EntryLayout) -> dict[Operation, int]:
    steps: dict[Operation, int] = {}
    current = 0
    for segment in layout.segments:
        for op in segment:
            current = layout.launches.get(op, current)
            steps[op] = current
    return steps


def _lifetime(buffer: tile.BufferOp, step_of: dict[Operation, int]) -> tuple[int, int]:
    """A value read from the buffer keeps it alive as long as it is used: reads are repeated in later segments."""
    steps: list[int] = []
    seen: set[SSAValue] = {buffer.result}
    waiting: list[SSAValue] = [buffer.result]
    while waiting:
        for use in waiting.pop().uses:
            if isinstance(use.operation, tile.DimOp):
                continue  # an extent is known without the memory
            op = _in_entry(use.operation, step_of)
            steps.append(step_of[op])
            new = [result for result in (*use.operation.results, *op.results) if result not in seen]
            seen.update(new)
            waiting += new
    return (min(steps), max(steps)) if steps else (0, 0)


def _in_entry(op: Operation, step_of: dict[Operation, int]) -> Operation:
    """The op of the entry's own block that ``op`` is, or is inside of."""
    while op not in step_of:
        parent = op.parent_op()
        assert parent is not None, f"{op.name} is outside of the entry"
        op = parent
    return op
