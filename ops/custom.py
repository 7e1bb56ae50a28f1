"""`custom` and `inplace_custom`: calling a registered kernel from a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from halfulp.compiler import (
    BufferValue,
    DeviceRef,
    Graph,
    GraphError,
    GraphTypeError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.locations import Located
from halfulp.compiler.registry import find_kernel


def custom(
    name: str,
    device: DeviceRef,
    values: Sequence[TensorValue | Weight],
    out_types: Sequence[TensorType],
    parameters: Mapping[str, Any] | None = None,
    *,
    fastmath: str | Iterable[str] | None = None,
) -> list[TensorValue]:
    """Call the kernel registered under ``name`` (`halfulp.compiler.registry.register_kernel`).

    Args:
        name: the kernel.
        device: where it runs.
        values: the operands, in the kernel's order.
        out_types: the types of the outputs, in the kernel's order. A size that only the data decides gets a new
            symbol, defined from here on.
        parameters: what the kernel must know while the graph is built: bools, ints, floats, strings, DTypes, Dims
            and lists of them.
        fastmath: fastmath flags of this call, over those of a region and of the options.

    Returns:
        One value for each output type.

    Raises:
        NotFoundError: no graph is being built, or no kernel has the name (a LookupError).
        GraphError: an operand, output or parameter is missing, unknown or of the wrong shape (a ValueError).
        GraphTypeError: something of the wrong type (a TypeError).
    """
    subject = f"ops.custom({name!r})"
    graph = Graph.current(subject)
    _check(subject, device, values, out_types)
    return graph.custom(name, device, values, out_types, parameters, fastmath)


def inplace_custom(
    name: str,
    device: DeviceRef,
    values: Sequence[TensorValue | Weight | BufferValue],
    out_types: Sequence[TensorType] = (),
    parameters: Mapping[str, Any] | None = None,
    *,
    fastmath: str | Iterable[str] | None = None,
) -> list[TensorValue]:
    """Call a kernel that changes some of its operands: those that it declares ``mutable``, which must be buffers.

    Calls, loads and stores of buffers run in the order of the program. So everything that is loaded before holds the
    old contents, everything after the new ones, and whoever owns the memory sees the last.

    Args:
        values: the operands, in the kernel's order; a buffer for each mutable one, tensors for the rest.
        out_types: the types of the outputs, if there are any.

    Other arguments, results and errors are those of `custom`.

    Raises:
        GraphError: one buffer stands for two operands, or no operand is a buffer.
        GraphTypeError: a buffer where the kernel takes a tensor, or the reverse.
    """
    subject = f"ops.inplace_custom({name!r})"
    graph = Graph.current(subject)
    _check(subject, device, values, out_types)
    with Located():
        find_kernel(name, subject)
        buffers = [id(value.ssa) for value in values if isinstance(value, BufferValue)]
        if not buffers:
            raise GraphError(f"{subject}: no operand is a buffer, so it changes nothing; call it by ops.custom")
        if len(set(buffers)) < len(buffers):
            raise GraphError(f"{subject}: one buffer stands for two operands; a kernel takes each once")
    return graph.custom(name, device, values, out_types, parameters, fastmath, inplace=True)


def _check(subject: str, device: object, values: object, out_types: object) -> None:
    if not isinstance(device, DeviceRef):
        raise GraphTypeError(f"{subject}: device must be a DeviceRef, not {device!r}; write DeviceRef.CPU()")
    if not isinstance(values, Sequence):
        raise GraphTypeError(f"{subject}: values must be a list of values, not {values!r}; write [value]")
    if not isinstance(out_types, Sequence):
        raise GraphTypeError(f"{subject}: out_types must be a list of TensorType, not {out_types!r}; write [type]")
    for index, out_type in enumerate(out_types):
        if not isinstance(out_type, TensorType):
            raise GraphTypeError(f"{subject}: out_types[{index}] must be a TensorType, not {out_type!r}")
