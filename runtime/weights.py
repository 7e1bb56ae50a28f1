"""Weights: what a registry must hold for a compiled graph, checked before anything reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from halfulp.compiler.dims import Dim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError, near_names, quoted_list

from .arrays import contiguous, element_type, from_object, is_direct, shape_text
from .buffer import Buffer
from .memory import Array


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
    names = [weight.name for weight in declared]
    if missing := [name for name in names if name not in registry]:
        raise GraphError(
            f"graph '{graph}' needs weights that the registry does not have: {quoted_list(missing)}; "
            "pass them in weights_registry"
        )
    for name in registry:
        if name not in names:
            hint = near_names(name, names) or f"; its weights are {quoted_list(names)}"
            raise GraphError(f"graph '{graph}' has no weight {name!r}{hint}")
    return {weight.name: _checked(graph, weight, registry[weight.name]) for weight in declared}


def _checked(graph: str, weight: Declared, value: Any) -> Array:
    subject = f"graph '{graph}': weight '{weight.name}'"
    array = value.to_numpy() if isinstance(value, Buffer) else from_object(value, subject)
    dtype = element_type(array, subject)
    if dtype is not weight.dtype:
        raise GraphTypeError(
            f"{subject} must be {weight.dtype}, got {dtype}; halfulp never converts types unasked, use x.astype(...)"
        )
    if array.shape != tuple(int(dim) for dim in weight.shape):
        raise GraphError(f"{subject} must have shape {shape_text(weight.shape)}, got {shape_text(array.shape)}")
    return array if is_direct(array) else contiguous(array)
