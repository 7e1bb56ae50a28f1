"""convert-loops-to-llvm: functions of the loops stage -> functions of the ``llvm`` dialect.

Before::

    func.func @scale(%x : memref<?xf32>, %n : index) attributes {halfulp.entry} {
      scf.for %i = %c0 to %n step %c16 {
        %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
        ...

After::

    llvm.func internal @scale(%x : !llvm.ptr {llvm.noalias, llvm.align = 4}, %n : i64) {
      llvm.br ^header(%c0)
    ^header(%i : i64):
      %in_range = llvm.icmp "slt" %i, %n : i64
      ...
    llvm.func @scale.call(%buffers : !llvm.ptr, %dims : !llvm.ptr) { ... }

One recursive walk over a table {op class: function}, in ``loops_to_llvm/``. Fastmath flags are carried over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ..errors import CompileError, quoted_list
from .loops_to_llvm import arith, casts, control, gpu, lookups, math, memory, parallel, vectors
from .loops_to_llvm.functions import lower_function
from .loops_to_llvm.lowering import LoweringFunction, LoweringOptions

ARCHITECTURES = ("x86_64", "aarch64", "nvptx64")
PERMUTED_BITS = (0, *lookups.PERMUTATIONS)

TABLE: Mapping[type[Operation], LoweringFunction] = {
    **arith.LOWERINGS,
    **casts.LOWERINGS,
    **control.LOWERINGS,
    **gpu.LOWERINGS,
    **lookups.LOWERINGS,
    **math.LOWERINGS,
    **memory.LOWERINGS,
    **parallel.LOWERINGS,
    **vectors.LOWERINGS,
}


def convert_loops_to_llvm(module: ModuleOp, options: LoweringOptions) -> None:
    """Replaces every ``func.func`` of the module by ``llvm.func``. Ops of the ``llvm`` dialect stay as they are.

    Raises CompileError for an op, type or attribute outside the loops subset.
    """
    new_block = Block()
    calls_pool = False
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp):
            functions = lower_function(op, TABLE, options)
            calls_pool |= parallel.calls_pool(functions)
            new_block.add_ops(functions)
        elif isinstance(op, llvm.FuncOp | llvm.GlobalOp):
            module.body.block.detach_op(op)
            new_block.add_op(op)
        else:
            raise CompileError(f"convert-loops-to-llvm: a module holds functions and globals only, not {op.name}")
    if calls_pool:
        new_block.add_op(parallel.pool_declaration())
    old_body = module.body
    module.detach_region(old_body)
    module.add_region(Region(new_block))


@dataclass(frozen=True)
class ConvertLoopsToLlvmPass(ModulePass):
    """Functions of the loops stage -> functions of the ``llvm`` dialect.

    ``arch``: x86_64, aarch64 or nvptx64. ``permutes``: bits of a register whose f32 one instruction permutes, 256 with
    AVX2, 512 with AVX-512; 0 without one.
    """

    name = "convert-loops-to-llvm"
    arch: str = "x86_64"
    permutes: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.arch not in ARCHITECTURES:
            raise CompileError(
                f"convert-loops-to-llvm: arch must be one of {quoted_list(ARCHITECTURES)}, not {self.arch!r}"
            )
        if self.permutes not in PERMUTED_BITS:
            known = ", ".join(map(str, PERMUTED_BITS))
            raise CompileError(f"convert-loops-to-llvm: permutes must be one of {known}, not {self.permutes}")
        convert_loops_to_llvm(op, LoweringOptions(self.arch, self.permutes))
