"""``convert-tile-to-loops``: grid kernels on blocks become functions with explicit vectors over flat memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..dialects import tile
from .tile_to_loops.functions import EntryLowering, launch_function, lower_kernel, record_failure_function
from .tile_to_loops.layout import prints_of
from .tile_to_loops.prints import report_print_function
from .tile_to_loops.thread_arena import ARENA_ATTRIBUTE
from .tile_to_loops.watch import has_loops, watch_loop_function

VECTOR_BITS = (128, 256, 512)
LANE_BITS = 32
"""Lanes are counted in f32; a vector of wider elements has as many lanes and takes several registers."""


@dataclass(frozen=True)
class ConvertTileToLoopsPass(ModulePass):
    """Lowers ``tile`` to ``scf``, ``memref``, ``vector``, ``arith``, ``math`` and ``vector_ext``.

    Before::

        tile.kernel @double(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>)
            grid(%i of %n) axes [parallel] {
          %a = tile.window %x[%i] blocked [4096] squeezed [] : ...
          %b = tile.load %a : ...
          %c = arith.addf %b, %b : tensor<4096xf32>
          ...

    After: one loop over the programs, in it one over full vectors and one over masked vectors::

        func.func private @double(%status, %launch, %first, %last, %n, %x, %x_extent, %y, %y_extent) {
          scf.for %program = %first to %last step %c1 {
            scf.for %column = %c0 to %full step %c64 {
              %b = vector.load %x[%at] : memref<?xf32>, vector<16xf32>
              %c = arith.addf %b, %b : vector<16xf32>
              ...

    Requires ``expand-math`` before it. Results do not depend on ``vector-bits``.
    """

    name = "convert-tile-to-loops"

    vector_bits: int = 512

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.vector_bits not in VECTOR_BITS:
            raise DiagnosticException(
                f"convert-tile-to-loops: vector-bits must be one of {VECTOR_BITS}, not {self.vector_bits}"
            )
        lanes = self.vector_bits // LANE_BITS
        contract = op.attributes.pop("halfulp.fp_contract", None)
        assert contract is None or isinstance(contract, StringAttr)
        prints = prints_of(op)
        lowered: list[func.FuncOp] = [report_print_function()] if prints else []
        if has_loops(op):
            lowered.append(watch_loop_function())
        old = list(op.body.block.ops)
        kernels = {k: lower_kernel(k, lanes, contract, prints) for k in old if isinstance(k, tile.KernelOp)}
        arena_bytes = max((blocks.nbytes for _, blocks in kernels.values()), default=0)
        if arena_bytes:
            op.attributes[ARENA_ATTRIBUTE] = IntegerAttr(arena_bytes, i64)
        branches = any(_branches(part) for part in old if isinstance(part, func.FuncOp))
        for part in old:
            if isinstance(part, tile.KernelOp):
                kernel, blocks = kernels[part]
                launch = launch_function(part, contract, blocks, arena_bytes)
                if branches:
                    launch.attributes["halfulp.no_inline"] = UnitAttr()
                lowered += [kernel, launch]
            elif isinstance(part, func.FuncOp):
                lowered += EntryLowering(op, part, lanes, contract).functions()
        for part in reversed(old):
            part.detach()
            part.erase(safe_erase=False)
        op.body.block.add_ops([record_failure_function(), *lowered])


def _branches(entry: func.FuncOp) -> bool:
    """Whether an entry function decides by what a kernel has put into memory.

    Under nnan or ninf that may be poison, which is harmless as a number and undefined behaviour in a branch. LLVM can
    tell only where it sees the kernel and the branch in one function, so launches are not inlined then.
    """
    return any(isinstance(op, scf.IfOp | scf.WhileOp) for op in entry.body.walk())
