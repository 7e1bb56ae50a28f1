"""`transfer_to`: a tensor on another device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfulp.compiler import DeviceRef, Graph, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, Value

from .promotion import TensorValueLike, as_tensor


def _infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    return [TensorType(x.dtype, x.shape, DeviceRef.parse(parameters["device"]))]


def _transfer(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    entry.transfer(operands[0], results[0])


TRANSFER_TO = register_op(
    OpDef("transfer_to", "opaque", ("x",), _infer, parameters=(ParameterSpec("device", str),), recipe=_transfer)
)


def transfer_to(x: TensorValueLike, device: DeviceRef) -> TensorValue:
    """A copy of ``x`` on ``device``; ``x`` itself if it is there already.

    This is the only op that moves anything: all others want their operands on one device, and leave results there.

    Raises:
        GraphTypeError: ``x`` is no tensor, or ``device`` no `DeviceRef`.
    """
    subject = "ops.transfer_to"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if not isinstance(device, DeviceRef):
            raise GraphTypeError(f"{subject}: device must be a DeviceRef such as DeviceRef.GPU(0), not {device!r}")
    return value if value.device == device else graph.apply(TRANSFER_TO, [value], {"device": str(device)})[0]
