"""What a launch must be for the kernel to touch nothing but its buffers; checked while the entry is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import tile
from ...dialects.tile.memory import root_of


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def verify_launch(op: tile.LaunchOp, kernel: tile.KernelOp) -> None:
    """Checks that the launch fits the kernel.

    A kernel relies on the static extents of its arguments, and on each buffer that it writes to being a buffer apart.

    Raises:
        DiagnosticException: other grid sizes or argument types than the kernel's, a window as an argument, or one
            buffer as two arguments of which one is written to.
    """
    name = kernel.sym_name.data
    given, wanted = [value.type for value in op.arguments], [value.type for value in kernel.arguments]
    if len(op.grid) != kernel.grid_rank or given != wanted:
        raise DiagnosticException(
            f"tile.launch @{name}: the kernel takes {kernel.grid_rank} grid sizes and ({_listed(wanted)}),"
            f" not {len(op.grid)} and ({_listed(given)})"
        )
    for number, argument in enumerate(op.arguments):
        if isinstance(argument.owner, tile.WindowOp):
            raise DiagnosticException(
                f"tile.launch @{name}: argument {number} is a window, but a kernel takes whole buffers;"
                " take the window inside the kernel"
            )
    _verify_apart(op, kernel)


def _verify_apart(op: tile.LaunchOp, kernel: tile.KernelOp) -> None:
    written = {root_of(store.ref) for store in kernel.body.walk() if isinstance(store, tile.StoreOp)}
    refs: list[tuple[int, SSAValue, bool]] = [
        (number, root_of(given), own in written)
        for number, (given, own) in enumerate(zip(op.arguments, kernel.arguments, strict=True))
        if isinstance(given.type, tile.RefType)
    ]
    for (first, root, is_written), (second, other, is_other_written) in combinations(refs, 2):
        if root is other and (is_written or is_other_written):
            raise DiagnosticException(
                f"tile.launch @{kernel.sym_name.data}: arguments {first} and {second} are the same buffer, and the"
                " kernel writes to it; pass it once"
            )
