"""``deduplicate-kernels``: equal kernels become one, which all their launches call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.passes import ModulePass

from ..dialects import tile


@dataclass(frozen=True)
class DeduplicateKernelsPass(ModulePass):
    """Keeps the first of kernels that differ in their name only.

    Before::

        tile.kernel @exp(...) { ... }
        tile.kernel @exp_2(...) { ... }
        ... tile.launch @exp grid(%n) (%x, %y) ...
        ... tile.launch @exp_2 grid(%n) (%y, %z) ...

    After::

        tile.kernel @exp(...) { ... }
        ... tile.launch @exp grid(%n) (%x, %y) ...
        ... tile.launch @exp grid(%n) (%y, %z) ...
    """

    name = "deduplicate-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        renamed: dict[str, str] = {}
        for kernels in _alike(op):
            first: dict[str, str] = {}
            for kernel in kernels:
                name = kernel.sym_name.data
                kept = first.setdefault(_text_without_name(kernel), name)
                if kept != name:
                    renamed[name] = kept
                    op.body.block.erase_op(kernel)
        for launch in op.walk() if renamed else ():
            if isinstance(launch, tile.LaunchOp) and launch.kernel.string_value() in renamed:
                launch.kernel = SymbolRefAttr(renamed[launch.kernel.string_value()])


def _alike(module: ModuleOp) -> Iterator[list[tile.KernelOp]]:
    """Kernels that are the same ops in the same order: few, so that only their texts need to be compared."""
    kernels: dict[tuple[str, ...], list[tile.KernelOp]] = {}
    for kernel in module.body.block.ops:
        if isinstance(kernel, tile.KernelOp):
            kernels.setdefault(tuple(op.name for op in kernel.walk()), []).append(kernel)
    return (group for group in kernels.values() if len(group) > 1)


def _text_without_name(kernel: tile.KernelOp) -> str:
    """The kernel's IR from its arguments on. Two kernels are equal if their texts are: values are numbered anew."""
    _, _, text = str(kernel).partition(f"@{kernel.sym_name.data}")
    return text
