"""A call on tensors of a graph: the traced kernel is registered under the hash of its IR and becomes a custom op."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from halfulp.compiler import DeviceRef, Graph, GraphError, TensorType, TensorValue, Weight
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, register_kernel
from halfulp.compiler.tile_builder import Value

from .emission import Plan, emit_call
from .errors import fault
from .prepare import Prepared
from .specs import MemorySpace

PREFIX = "pallas_call."

_plans: dict[str, Plan] = {}
"""By key, what the kernels that are registered emit."""


def call_in_graph(prepared: Prepared, operands: Sequence[Any]) -> list[TensorValue]:
    """Builds the call into the graph being built; arrays among the operands become constants.

    Raises:
        GraphError: tensors of several devices, or compiler parameters that belong to the options of the graph.
    """
    call, graph = prepared.call, Graph.current("pl.pallas_call")
    if options := call.params.compile_options:
        raise fault(
            f"kernel {call.name!r}: compiler_params[{next(iter(options))!r}] is an option of the whole graph; pass it "
            "to session.load(graph, options=CompileOptions(...))"
        )
    device = _device(prepared, operands)
    values = [
        value if isinstance(value, TensorValue | Weight) else _constant(graph, value, device) for value in operands
    ]
    kernel = register_kernel(kernel_def(prepared), replace=True)
    out_types = [TensorType(t.dtype, t.shape, device) for t in prepared.output_types]
    sizes = prepared.plan.grid_operands
    return graph.custom(kernel.name, device, [*values, *sizes], out_types, fastmath=call.params.fastmath)


def _device(prepared: Prepared, operands: Sequence[Any]) -> DeviceRef:
    """The device of the operands that need not be on the host."""
    devices = {
        operand.device
        for operand, block in zip(operands, prepared.mapping.inputs, strict=True)
        if isinstance(operand, TensorValue | Weight) and block.memory_space is not MemorySpace.HOST
    }
    if len(devices) > 1:
        listed = " and ".join(sorted(map(str, devices)))
        raise fault(f"kernel {prepared.call.name!r} has operands on {listed}; move them to one device with .to()")
    return devices.pop() if devices else DeviceRef.CPU()


def _constant(graph: Graph, value: Any, device: DeviceRef) -> TensorValue:
    import numpy as np

    from .call import array_type

    array = np.ascontiguousarray(value)
    given = array_type(value)
    return graph.constant(array.tobytes(), TensorType(given.dtype, given.shape, device))


def kernel_name(prepared: Prepared) -> str:
    """The name of the call in graphs: equal for equal calls, in every process."""
    digest = hashlib.sha256(prepared.plan.key().encode()).hexdigest()[:16]
    return f"{PREFIX}{prepared.call.name}.{digest}"


def kernel_def(prepared: Prepared) -> KernelDef:
    """The call as a kernel that graphs can name."""
    plan = prepared.plan
    operands = [
        OperandSpec(own or f"input {number}", block.dtype, None, block.memory_space is MemorySpace.HOST)
        for number, (own, block) in enumerate(zip(prepared.names, plan.mapping.inputs, strict=False))
    ]
    operands += [OperandSpec(f"grid size {number}", size.dtype, ()) for number, size in enumerate(plan.grid_operands)]
    outputs = [OutputSpec(f"output {number}", t.dtype, None) for number, t in enumerate(prepared.output_types)]
    registered = _Registered(plan.key())
    _plans[registered.key] = plan
    return KernelDef(kernel_name(prepared), tuple(operands), tuple(outputs), registered.build, check=registered.check)


@dataclass(frozen=True)
class _Registered:
    """What the registry holds of a call: its key. So a cache key can be made of the definition."""

    key: str

    @property
    def plan(self) -> Plan:
        """The plan that has the key."""
        return _plans[self.key]

    def build(self, builder: Any, call: KernelCall, operands: Sequence[Value], outputs: Sequence[Value], /) -> None:
        """Emits the call when the graph is lowered."""
        emit_call(builder, self.plan, operands, outputs)

    def check(self, call: KernelCall) -> None:
        """The types that the kernel was traced for are the only ones that it takes; GraphError for others."""
        for given, block in zip((*call.operands, *call.outputs), _in_call_order(self.plan), strict=False):
            if block is not None and given.shape != TensorType(block.dtype, block.shape).shape:
                raise GraphError(
                    f"kernel {self.plan.kernel.op.sym_name.data!r} was traced for shape {list(map(str, block.shape))}, "
                    f"not {list(map(str, given.shape))}; call its pallas_call again for these tensors"
                )


def _in_call_order(plan: Plan) -> list[Any]:
    mapping = plan.mapping
    return [*mapping.inputs, *[None] * len(plan.grid_operands), *mapping.outputs]
