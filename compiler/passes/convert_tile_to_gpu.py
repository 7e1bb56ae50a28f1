"""``convert-tile-to-gpu``: grid kernels on blocks become functions for the threads of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ..dialects import tile
from .tile_to_gpu.kernels import lower_kernel
from .tile_to_gpu.symbols import symbols_of


@dataclass(frozen=True)
class ConvertTileToGpuPass(ModulePass):
    """Lowers ``tile`` to ``gpu``, ``scf``, ``memref``, ``arith``, ``math``, ``gpu_ext`` and ``vector_ext`` on scalars.

    Before::

        tile.kernel @double(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>)
            grid(%i of %n) axes [parallel] {
          %a = tile.window %x[%i] blocked [4096] squeezed [] : ...
          %b = tile.load %a : ...
          %c = arith.addf %b, %b : tensor<4096xf32>
          ...

    After: a block of threads takes programs one after another; in each, a thread takes every 256th element::

        func.func @kernel_double(%status, %scratch, %n, %x, %x_extent, %y, %y_extent) attributes {gpu.kernel, ...} {
          %thread = gpu.thread_id x
          %block = gpu.block_id x
          scf.for %program = %block to %n step %blocks {
            scf.for %element = %thread to %c4096 step %c256 {
              %b = memref.load %x[%at] : memref<?xf32, 1 : i32>
              %c = arith.addf %b, %b : f32
              ...

    The entry function, which runs on the host, is dropped. Requires ``expand-math`` before it and ``insert-barriers``
    after it: no thread waits for another yet.
    """

    name = "convert-tile-to-gpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        contract = op.attributes.pop("halfulp.fp_contract", None)
        assert contract is None or isinstance(contract, StringAttr)
        old = list(op.body.block.ops)
        kernels = [part for part in old if isinstance(part, tile.KernelOp)]
        symbols = symbols_of(kernel.sym_name.data for kernel in kernels)
        lowered = [lower_kernel(kernel, symbols[kernel.sym_name.data], contract) for kernel in kernels]
        for part in reversed(old):
            part.detach()
            part.erase(safe_erase=False)
        op.body.block.add_ops(lowered)
