"""Weights: what a registry must hold for a compiled graph, checked before anything reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dims import Dim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError, near_names, quoted_list

from .arrays import contiguous, element_type, from_object, is_direct, shape_text
from .buffer import Buffer
from .device import Device
from .memory import Array

if TYPE_CHECKING:
    from halfulp.compiler.ptx_artifact import CompiledPtx

SHOWN_NAMES = 5
"""The most names of weights that nobody asked for in one message."""


class Declared(Protocol):
    """What is known of a weight before it has content: a graph's `Weight`, or its entry in a compiled graph."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Dim, ...]:
        """Static dims only."""
        ...


def bind_weights(graph: str, declared: Iterable[Declared], registry: Mapping[str, Any]) -> dict[str, Array]:
    """The array of each weight. It shares memory with the registry's entry where native code can read that in place.

    Args:
        graph: the graph's name, for messages.
        declared: the weights of the graph.
        registry: by name, a `Buffer`, a numpy array, or an object with DLPack or ``__array__``.

    Raises:
        GraphError: a weight is missing, one is given that the graph does not have, or a shape is wrong.
        GraphTypeError: an entry is no array or has another element type.
    """
    declared = list(declared)
    check_names(graph, declared, registry)
    return {weight.name: _checked(graph, weight, registry[weight.name]) for weight in declared}


def bind_device_weights(
    compiled: CompiledPtx, devices: Mapping[DeviceRef, Device], registry: Mapping[str, Any]
) -> dict[str, Buffer]:
    """The buffer of each weight of a graph for accelerators: where the graph has it, or in host memory.

    Raises:
        GraphError: as `bind_weights`; a weight on another accelerator than the graph says.
        GraphTypeError: as `bind_weights`.
    """
    declared = compiled.role(BufferRole.WEIGHT)
    check_names(compiled.name, declared, registry)
    return {spec.name: _buffer(compiled.name, spec, devices.get(spec.device), registry) for spec in declared}


def _buffer(graph: str, spec: BufferSpec, device: Device | None, registry: Mapping[str, Any]) -> Buffer:
    value, subject = registry[spec.name], f"graph '{graph}': weight '{spec.name}'"
    if not isinstance(value, Buffer) or value.device.is_host:
        return Buffer.from_numpy(_checked(graph, spec, value))
    if value.device != device:
        place = "on the host" if device is None else f"on {spec.device} ({device!r}) or on the host"
        raise GraphError(f"{subject} must be {place}, got a buffer on {value.device!r}; move it with .to()")
    _check_type(subject, spec, value.dtype, value.shape)
    return value


def check_names(graph: str, declared: Iterable[Declared], registry: Mapping[str, Any]) -> None:
    """Check that a registry has all weights and nothing else. GraphError if not."""
    names = [weight.name for weight in declared]
    if missing := [name for name in names if name not in registry]:
        unused = [name for name in registry if name not in names][:SHOWN_NAMES]
        remedy = (
            f"unused in it: {quoted_list(unused)}" if unused else "pass them in weights_registry"
        )
        raise GraphError(
            f"graph '{graph}' needs weights that the registry does not have: {quoted_list(missing)}; {remedy}"
        )
    for name in registry:
        if name not in names:
            hint = near_names(name, names) or f"; its weights are {quoted_list(names)}"
            raise GraphError(f"graph '{graph}' has no weight {name!r}{hint}")


def _checked(graph: str, weight: Declared, value: Any) -> Array:
    subject = f"graph '{graph}': weight '{weight.name}'"
    array = value.to_numpy() if isinstance(value, Buffer) else from_object(value, subject)
    _check_type(subject, weight, element_type(array, subject), array.shape)
    return array if is_direct(array) else contiguous(array)


def _check_type(subject: str, weight: Declared, dtype: DType, shape: tuple[int, ...]) -> None:
    if dtype is not weight.dtype:
        raise GraphTypeError(
            f"{subject} must be {weight.dtype}, got {dtype}; halfulp never converts types unasked, use x.astype(...)"
        )
    if shape != tuple(int(dim) for dim in weight.shape):
        raise GraphError(f"{subject} must have shape {shape_text(weight.shape)}, got {shape_text(shape)}")
