"""Where the launches of an entry function run: on the device whose memory they are given.

Each buffer of an entry function is on one device. An argument's graph type says which, and a ``tile.buffer`` has it as
an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from .device import DeviceRef
from .dialects import tile
from .dialects.graph import GraphBufferType, GraphTensorType
from .dialects.tile.memory import root_of
from .passes.graph_to_tile.entry import TYPE


def device_of(ref: SSAValue) -> DeviceRef:
    """The device of the buffer that a reference of an entry function is a part of."""
    root = root_of(ref)
    if isinstance(root, BlockArgument):
        return _argument_device(root)
    where = root.owner.attributes.get(tile.DEVICE) if isinstance(root.owner, Operation) else None
    return DeviceRef.parse(where.data) if isinstance(where, StringAttr) else DeviceRef.CPU()


def _argument_device(argument: BlockArgument) -> DeviceRef:
    entry = argument.block.parent_op()
    if isinstance(entry, FuncOp) and entry.arg_attrs is not None:
        kind = entry.arg_attrs.data[argument.index].data.get(TYPE)
        if isinstance(kind, GraphTensorType | GraphBufferType):
            return kind.data.device
    return DeviceRef.CPU()


def launch_device(launch: tile.LaunchOp) -> DeviceRef:
    """Where a launch runs. Beside a GPU's memory it may be given the host's, for operands that are read there.

    Raises:
        DiagnosticException: it is given memory of two GPUs.
    """
    refs = [value for value in launch.arguments if isinstance(value.type, tile.RefType)]
    devices = list(dict.fromkeys(device for ref in refs if not (device := device_of(ref)).is_host))
    if len(devices) > 1:
        raise DiagnosticException(
            f"tile.launch {launch.kernel}: it is given memory of {devices[0]} and of {devices[1]}; a kernel runs on one"
        )
    return devices[0] if devices else DeviceRef.CPU()


def launches_of(module: ModuleOp) -> Iterable[tile.LaunchOp]:
    """The launches of a module of tile IR, in the order of the text."""
    return (op for op in module.walk() if isinstance(op, tile.LaunchOp))


def uses_device(module: ModuleOp) -> bool:
    """Whether anything of a module of tile IR is on a GPU."""
    entries = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    arguments = (argument for entry in entries for argument in entry.body.block.args)
    return any(not _argument_device(argument).is_host for argument in arguments) or any(
        tile.DEVICE in op.attributes for op in module.walk()
    )
