"""Kernels of a graph on two devices that run on the host: each one becomes a function that launches it once.

The entry function of such a graph is walked by the runtime, which calls the function at each launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Region

from .dialects import tile
from .options import CompileOptions
from .passes.tile_to_loops.layout import kernels_of, prints_of
from .pipeline import FP_CONTRACT, faults_of_passes, host_target_of, llvm_text, lower, thread_arena_bytes
from .print_sites import print_site
from .ptx_artifact import HostKernel
from .tile_builder import EntryBuilder, Value

if TYPE_CHECKING:
    from .pipeline import MakeObject

ENTRY = "launch"
"""The function that launches kernel ``k`` is ``k.launch``."""


def compile_host_kernels(
    module: ModuleOp, names: Iterable[str], options: CompileOptions, make_object: MakeObject | None = None
) -> tuple[HostKernel, ...]:
    """The kernels ``names`` of a module of tile IR, for this machine's CPU. CompileError as for a whole graph."""
    kernels = kernels_of(module)
    return tuple(_compile(module, kernels[name], options, make_object) for name in names)


def _compile(
    module: ModuleOp, kernel: tile.KernelOp, options: CompileOptions, make_object: MakeObject | None
) -> HostKernel:
    from .codegen.cpu import compile_to_object

    name = f"{kernel.sym_name.data}.{ENTRY}"
    alone = ModuleOp([kernel.clone(), _launcher(kernel, name)])
    if FP_CONTRACT in module.attributes:
        alone.attributes[FP_CONTRACT] = module.attributes[FP_CONTRACT]
    prints = tuple(map(print_site, prints_of(alone)))
    target = host_target_of(options)
    with faults_of_passes():
        lower(alone, "llvm", options, target)
    code = (make_object or compile_to_object)(llvm_text(alone, target, checked=True), target, options.opt_level)
    return HostKernel(kernel.sym_name.data, f"{name}.0.call", code, thread_arena_bytes(alone), prints)


def _launcher(kernel: tile.KernelOp, name: str) -> FuncOp:
    """A function of the kernel's arguments and then the grid's sizes; a scalar is a reference to one element."""
    types = [_in_memory(argument.type) for argument in kernel.arguments]
    types += [_in_memory(IndexType())] * kernel.grid_rank
    function = FuncOp(name, (types, []), Region(Block(arg_types=types)))
    builder = EntryBuilder(ModuleOp([]), function)
    values = [Value(builder, argument) for argument in function.body.block.args]
    count = len(kernel.arguments)
    wanted = [*(argument.type for argument in kernel.arguments), *[IndexType()] * kernel.grid_rank]
    given = [_read(builder, value, kind) for value, kind in zip(values, wanted, strict=True)]
    arguments, grid = given[:count], given[count:]
    builder.insert(tile.LaunchOp(kernel.sym_name.data, [size.ssa for size in grid], [value.ssa for value in arguments]))
    builder.finish()
    return function


def _in_memory(kind: Attribute) -> Attribute:
    if isinstance(kind, tile.RefType):
        return kind
    return tile.RefType([1], i64 if isinstance(kind, IndexType) else kind)


def _read(builder: EntryBuilder, value: Value, kind: Attribute) -> Value:
    return value if isinstance(kind, tile.RefType) else builder.cast(builder.read(value, 0), kind)
