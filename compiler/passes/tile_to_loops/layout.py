"""The order of things in an entry function: its buffers, its segments, its launches and their checks.

Lowering and the tables for the runtime both follow it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import tile
from ...errors import near_names
from .grid_limit import grid_limit_message


@dataclass(frozen=True)
class Site:
    """A check: the kernel (or entry) it stands in and its message."""

    kernel: str
    message: str


@dataclass(frozen=True)
class EntryLayout:
    """Of one entry function.

    ``segments`` are runs of its ops, each ending with the ``tile.set_dim`` ops that the next needs; ``launches``
    are its launches, and its own checks, in order, each with its check sites; ``symbols`` the dims it computes.
    """

    buffers: tuple[tile.BufferOp, ...]
    segments: tuple[tuple[Operation, ...], ...]
    symbols: tuple[str, ...]
    launches: dict[Operation, int]
    sites: tuple[tuple[Site, ...], ...]

    def defines(self, segment: int) -> tuple[str, ...]:
        """The symbols that a segment computes."""
        return tuple(op.symbol.data for op in self.segments[segment] if isinstance(op, tile.SetDimOp))


def checks_of(kernel: tile.KernelOp) -> tuple[tile.CheckOp, ...]:
    """The checks of a kernel in the order of its text, which is their number."""
    return tuple(op for op in kernel.body.walk() if isinstance(op, tile.CheckOp))


def kernels_of(module: ModuleOp) -> dict[str, tile.KernelOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tile.KernelOp)}


def _segments(ops: list[Operation]) -> tuple[tuple[Operation, ...], ...]:
    segments: list[list[Operation]] = [[]]
    for op in ops:
        if segments[-1] and isinstance(segments[-1][-1], tile.SetDimOp) and not isinstance(op, tile.SetDimOp):
            segments.append([])
        segments[-1].append(op)
    return tuple(map(tuple, segments))


def entry_layout(module: ModuleOp, entry: func.FuncOp) -> EntryLayout:
    """Reads the layout off the tile IR."""
    kernels, ops = kernels_of(module), list(entry.body.block.ops)
    launches: dict[Operation, int] = {}
    sites: list[tuple[Site, ...]] = []
    for op in ops:
        if isinstance(op, tile.LaunchOp):
            name = op.kernel.string_value()
            if name not in kernels:
                raise DiagnosticException(
                    f"tile.launch @{name}: the module has no kernel of that name{near_names(name, kernels)}"
                )
            checks = checks_of(kernels[name])
            found = tuple(Site(name, check.message.data) for check in checks)
            if op.grid:
                found += (Site(name, grid_limit_message(len(op.grid))),)
        elif isinstance(op, tile.CheckOp):
            found = (Site(entry.sym_name.data, op.message.data),)
        else:
            continue
        launches[op] = len(sites)
        sites.append(found)
    return EntryLayout(
        buffers=tuple(op for op in ops if isinstance(op, tile.BufferOp)),
        segments=_segments(ops),
        symbols=tuple(op.symbol.data for op in ops if isinstance(op, tile.SetDimOp)),
        launches=launches,
        sites=tuple(sites),
    )
