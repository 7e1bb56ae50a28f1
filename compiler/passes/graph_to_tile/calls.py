"""Lowers ops whose meaning is in the registry: custom kernels, and ops of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import graph
from ...dialects.graph.types import tensor_type
from ...kernel_call import KernelCall, match_call
from ...registry import find_kernel, find_op
from ...tile_builder import Value
from .access import call_of, shape_in_memory
from .copies import emit_copy
from .entry import Entry, adopt_numerics, ref_type
from .epilogue import Destination
from .group import FusedGroup


def lower_custom(entry: Entry, op: graph.KernelCallOp) -> None:
    """Sizes that the kernel computes first, then its kernels and launches."""
    kernel = find_kernel(op.callee.data, op.subject)
    call = match_call(kernel, op.device_ref, op.argument_types, op.output_types, op.parameter_values, op.subject)
    operands = [entry.ref(value) for value in op.arguments]
    adopt_numerics(entry.builder, op, entry.fp_contract)
    if kernel.build_dims is not None:
        _set_dims(entry, op, call, kernel.build_dims(entry.builder, call, operands))
    kernel.build(entry.builder, call, operands, [entry.ref(value) for value in op.outputs])


def _set_dims(entry: Entry, op: graph.KernelCallOp, call: KernelCall, sizes: Mapping[str, Value]) -> None:
    """Gives the symbols that the call defines their values; a size that was there before must agree."""
    stated = [(name, str(dim)) for name in call.kernel.computed for dim in call.computed[name]]
    for name, dim in stated:
        if dim in op.defined_symbols:
            entry.builder.set_dim(dim, sizes[name])
    for name, dim in stated:
        if dim not in op.defined_symbols:
            _check_dim(entry, op, call, name, dim, sizes[name])


def _check_dim(entry: Entry, op: graph.KernelCallOp, call: KernelCall, name: str, dim: str, size: Value) -> None:
    """The computed size must equal the size that the caller stated; an output's own extent holds that."""
    axes = [
        (value, axis)
        for value, spec in zip(op.outputs, call.kernel.outputs, strict=True)
        for axis, pattern in enumerate(spec.shape or ())
        if pattern == name and str(tensor_type(value).shape[axis]) == dim
    ]
    value, axis = axes[0]
    stated = entry.builder.dim(entry.ref(value), axis)
    message = f"{op.subject}: it computes the size {name!r} as {{}}, but the graph states {dim!r}, which is {{}}"
    entry.builder.check(size == stated, message, size, stated)


def lower_opaque(entry: Entry, op: graph.ApplyOp, behind: Sequence[graph.ApplyOp], stored: Sequence[SSAValue]) -> None:
    """An op with kernels of its own, the maps behind it that are computed there, and the values to store."""
    definition = find_op(op.callee.data, op.subject)
    if definition.recipe is None:
        raise DiagnosticException(f"{op.subject}: the op has no recipe, so it cannot be compiled")
    operands = [entry.ref(value) for value in op.arguments]
    results: Destination | list[Value]
    if definition.has_epilogue:
        (result,) = op.outputs
        results = Destination(entry, result, FusedGroup(list(behind), list(stored), shape_in_memory(result)))
    else:
        results = [entry.ref(value) for value in op.outputs]
    adopt_numerics(entry.builder, op, entry.fp_contract)
    definition.recipe(entry.builder, call_of(definition, op), operands, results)


def lower_alias(entry: Entry, op: graph.ApplyOp) -> None:
    """The operand's memory under another shape; a copy only if the graph returns it."""
    source, result = entry.ref(op.arguments[0]), op.outputs[0]
    if result in entry.refs:
        emit_copy(entry.builder, source, entry.refs[result])
        return
    shape = ref_type(op.output_types[0]).extents
    extents = [entry.dim(dim) for dim in op.output_types[0].shape] or [entry.builder.index(1)]
    entry.refs[result] = entry.builder.reinterpret(source, extents, shape)
