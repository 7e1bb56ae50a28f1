"""From a graph, or a module of tile IR, to PTX and what its launcher must know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from .artifact import Segment
from .codegen.ptx import DEFAULT_ARCHITECTURE, PtxTarget, compile_to_ptx, ptx_target
from .dialects import tile
from .dialects.gpu_ext import KERNEL, SCRATCH_BYTES, SHARED_BYTES, THREADS
from .graph import Graph
from .host_kernels import compile_host_kernels
from .launch_devices import launch_device, launches_of, uses_device
from .numerics import contractions_of
from .options import CompileOptions
from .passes.tile_to_gpu.kernels import argument_types, split_of
from .passes.tile_to_gpu.symbols import symbols_of
from .passes.tile_to_loops.layout import checks_of, entry_layout, kernels_of, prints_of
from .pipeline import buffers_of, faults_of_passes, llvm_text, lower, passes_of, step_name
from .print_sites import print_site
from .ptx_artifact import CompiledPtx, HostKernel, PtxKernel, PtxParameter
from .steps import Progress, Steps

if TYPE_CHECKING:
    from .pipeline import MakeObject

_IR_STAGES = ("graph", "tile", "gpu", "llvm")


def compile_graph_to_ptx(
    graph: Graph,
    options: CompileOptions | None = None,
    *,
    target: str = DEFAULT_ARCHITECTURE,
    progress: Progress | None = None,
    make_object: MakeObject | None = None,
) -> CompiledPtx:
    """Compiles a graph for a GPU. The graph is not changed.

    Args:
        graph: a complete graph.
        options: None reads the environment for what `CompileOptions` takes from it. ``vector_bits`` and ``threads`` are
            of CPUs and change nothing.
        target: ``sm_80``, ``sm_90`` or ``sm_100``; later GPUs run it as well.
        progress: called as ``progress(done, total, step)`` after each step.
        make_object: how LLVM text becomes object code, for the kernels of a graph on two devices that the host runs.

    Raises:
        CompileError: the graph cannot be taken further, or is not meant for a GPU; the message names the op.
    """
    options, gpu = options or CompileOptions(), ptx_target(target)
    module = graph.module.clone()
    steps = Steps(graph.name, sum(len(passes_of(stage, options, gpu)) for stage in _IR_STAGES) + 2, progress)
    with faults_of_passes():
        lower(module, "tile", options, gpu, steps)
    (entry,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    layout = entry_layout(module, entry)
    text, contractions = str(module), contractions_of(module)
    buffers, prints = tuple(buffers_of(entry, layout)), tuple(map(print_site, prints_of(module)))
    host_kernels = _take_host_kernels(module, options, make_object) if uses_device(module) else ()
    kernels, ptx = compile_tile_to_ptx(module, options, gpu, steps)
    return CompiledPtx(
        name=entry.sym_name.data,
        ptx=ptx,
        target=target,
        kernels=kernels,
        entry=text,
        buffers=buffers,
        launches=layout.sites,
        steps=tuple(map(step_name, layout.launches)),
        prints=prints,
        options=options,
        contractions=contractions,
        segments=tuple(Segment("", layout.defines(number)) for number in range(len(layout.segments))),
        host_kernels=host_kernels,
    )


def _take_host_kernels(
    module: ModuleOp, options: CompileOptions, make_object: MakeObject | None
) -> tuple[HostKernel, ...]:
    """Compiles the kernels that the host launches; those that no device does leave the module."""
    with faults_of_passes():
        users = [(launch.kernel.string_value(), launch_device(launch)) for launch in launches_of(module)]
    on_host = dict.fromkeys(name for name, device in users if device.is_host)
    on_devices = {name for name, device in users if not device.is_host}
    host_kernels = compile_host_kernels(module, on_host, options, make_object)
    for launch in list(launches_of(module)):
        if launch.kernel.string_value() not in on_devices:
            Rewriter.erase_op(launch)
    for name, kernel in kernels_of(module).items():
        if name not in on_devices:
            Rewriter.erase_op(kernel)
    return host_kernels


def compile_tile_to_ptx(
    module: ModuleOp, options: CompileOptions, target: PtxTarget, steps: Steps | None = None
) -> tuple[tuple[PtxKernel, ...], str]:
    """The kernels of a module of tile IR and their PTX; the module is lowered in place. CompileError as above."""
    symbols, tiles = symbols_of(kernels_of(module)), kernels_of(module)
    records = {name: _describe(kernel, symbols[name]) for name, kernel in tiles.items()}
    with faults_of_passes():
        lower(module, "gpu", options, target, steps)
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
    kernels = tuple(_sized(record, functions[record.symbol]) for record in records.values())
    with faults_of_passes():
        lower(module, "llvm", options, target, steps)
    text = llvm_text(module, target, checked=True)
    if steps is not None:
        steps.done("emit-llvm", lambda: text, "ll")
    ptx = compile_to_ptx(text, target, options.opt_level) if kernels else ""
    if steps is not None:
        steps.done("emit-ptx", lambda: ptx, "ptx")
    return kernels, ptx


def _describe(kernel: tile.KernelOp, symbol: str) -> PtxKernel:
    """What the tile IR says of a kernel; its sizes are known after the lowering only."""
    parameters = [PtxParameter("status", "i64"), PtxParameter("scratch", "i64")]
    parameters += [PtxParameter("grid", "i64")] * kernel.grid_rank
    for number, argument in enumerate(kernel.arguments):
        first, *extents = argument_types(argument.type)
        if isinstance(first, MemRefType):
            parameters.append(PtxParameter("pointer", "i64", number))
            parameters += [PtxParameter("extent", "i64", number)] * len(extents)
        else:
            parameters.append(PtxParameter("scalar", _type_name(first), number))
    name, checks = kernel.sym_name.data, len(checks_of(kernel))
    return PtxKernel(name, symbol, 0, 0, 0, kernel.grid_rank, split_of(kernel), tuple(parameters), checks)


def _type_name(t: Attribute) -> str:
    return "i64" if str(t) == "index" else str(t)


def _sized(record: PtxKernel, function: func.FuncOp) -> PtxKernel:
    assert KERNEL in function.attributes
    threads, shared, scratch = (_number(function, name) for name in (THREADS, SHARED_BYTES, SCRATCH_BYTES))
    return replace(record, threads=threads, shared_bytes=shared, scratch_bytes=scratch)


def _number(function: func.FuncOp, name: str) -> int:
    value = function.attributes[name]
    assert isinstance(value, IntegerAttr)
    return int(value.value.data)
