"""From a compiled graph to its program: the entry function parsed, its kernels loaded on each device."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from halfulp.compiler.artifact import BufferRole
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dialects.graph import Graph
from halfulp.compiler.dialects.tile import LaunchOp, Tile
from halfulp.compiler.launch_devices import launch_device
from halfulp.compiler.passes.tile_to_loops.layout import entry_layout
from halfulp.compiler.ptx_artifact import CompiledPtx

from ..binding import ShapePlan
from ..device import Device
from .entry import EntryProgram
from .host_launches import HostProgram
from .launches import PtxProgram

_DIALECTS = (builtin.Builtin, func.Func, arith.Arith, math.Math, scf.Scf, Tile, Graph)


def entry_program(
    compiled: CompiledPtx, devices: Mapping[DeviceRef, Device], plan: ShapePlan, threads: int
) -> EntryProgram:
    """Makes a graph ready to run on ``devices``, its host kernels on so many threads.

    Raises:
        DeviceError: a device refuses the PTX.
    """
    module = _parsed(compiled.entry)
    (function,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    layout = entry_layout(module, function)
    launches: dict[Operation, DeviceRef] = {op: launch_device(op) for op in layout.launches if isinstance(op, LaunchOp)}
    first = sum(spec.role is not BufferRole.INTERMEDIATE for spec in compiled.buffers)
    return EntryProgram(
        compiled=compiled,
        function=function,
        steps=layout.launches,
        devices=launches,
        slots={op: first + number for number, op in enumerate(layout.buffers)},
        ptx={ref: PtxProgram(compiled, devices[ref]) for ref in dict.fromkeys(launches.values()) if not ref.is_host},
        host={kernel.name: HostProgram(kernel, threads) for kernel in compiled.host_kernels},
        heaps={ref: device.heap for ref, device in devices.items()},
        plan=plan,
    )


def _parsed(text: str) -> ModuleOp:
    context = Context()
    for dialect in _DIALECTS:
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()
