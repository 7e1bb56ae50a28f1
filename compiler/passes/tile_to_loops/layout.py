"""The order of things in an entry function: its buffers, its segments, its launches and their checks.

Lowering and the tables for the runtime both follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException

from ...artifact import CheckSite
from ...dialects import tile
from ...errors import near_names
from .grid_limit import grid_limit_message

Print: TypeAlias = tile.PrintOp | tile.PrintTensorOp


@dataclass(frozen=True)
class EntryLayout:
    """Of one entry function.

    ``segments`` are runs of its ops, each ending with the ``tile.set_dim`` ops that the next needs; ``launches``
    are its launches, and its own checks, in the order of the text, each with its check sites; ``symbols`` the dims it
    computes. Buffers, launches and checks may stand in branches and loops.
    """

    buffers: tuple[tile.BufferOp, ...]
    segments: tuple[tuple[Operation, ...], ...]
    symbols: tuple[str, ...]
    launches: dict[Operation, int]
    sites: tuple[tuple[CheckSite, ...], ...]

    def defines(self, segment: int) -> tuple[str, ...]:
        """The symbols that a segment computes."""
        return tuple(op.symbol.data for op in self.segments[segment] if isinstance(op, tile.SetDimOp))


def checks_of(kernel: tile.KernelOp) -> tuple[tile.CheckOp, ...]:
    """The checks of a kernel in the order of its text, which is their number."""
    return tuple(op for op in kernel.body.walk() if isinstance(op, tile.CheckOp))


def prints_of(module: ModuleOp) -> dict[Print, int]:
    """The prints of a module in the order of its text, with their numbers."""
    prints = (op for op in module.walk() if isinstance(op, tile.PrintOp | tile.PrintTensorOp))
    return {op: number for number, op in enumerate(prints)}


def kernels_of(module: ModuleOp) -> dict[str, tile.KernelOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tile.KernelOp)}


def _segments(ops: list[Operation]) -> tuple[tuple[Operation, ...], ...]:
    segments: list[list[Operation]] = [[]]
    for op in ops:
        if segments[-1] and isinstance(segments[-1][-1], tile.SetDimOp) and not isinstance(op, tile.SetDimOp):
            segments.append([])
        segments[-1].append(op)
    return tuple(map(tuple, segments))


def _refuse_inner_dims(entry: func.FuncOp) -> None:
    for op in entry.body.walk():
        if isinstance(op, tile.SetDimOp) and op.parent is not entry.body.block:
            raise DiagnosticException(
                f"tile.set_dim {op.symbol}: stands in a branch or a loop of the entry function "
                f"@{entry.sym_name.data}, whose buffers have their sizes before it runs; move it out"
            )


def entry_layout(module: ModuleOp, entry: func.FuncOp) -> EntryLayout:
    """Reads the layout off the tile IR."""
    kernels, ops = kernels_of(module), list(entry.body.walk())
    _refuse_inner_dims(entry)
    launches: dict[Operation, int] = {}
    sites: list[tuple[CheckSite, ...]] = []
    for op in ops:
        if isinstance(op, tile.LaunchOp):
            name = op.kernel.string_value()
            if name not in kernels:
                raise DiagnosticException(
                    f"tile.launch @{name}: the module has no kernel of that name{near_names(name, kernels)}"
                )
            checks = checks_of(kernels[name])
            found = tuple(CheckSite(name, check.message.data, len(op.grid), check.is_bounds) for check in checks)
            if op.grid:
                found += (CheckSite(name, grid_limit_message(len(op.grid))),)
        elif isinstance(op, tile.CheckOp):
            found = (CheckSite(entry.sym_name.data, op.message.data),)
        else:
            continue
        launches[op] = len(sites)
        sites.append(found)
    return EntryLayout(
        buffers=tuple(op for op in ops if isinstance(op, tile.BufferOp)),
        segments=_segments(list(entry.body.block.ops)),
        symbols=tuple(op.symbol.data for op in ops if isinstance(op, tile.SetDimOp)),
        launches=launches,
        sites=tuple(sites),
    )
