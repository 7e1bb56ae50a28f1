"""Inputs for an experiment: those of a file, checked, or seeded ones of sizes that are chosen here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from halfulp.compiler.dims import StaticDim
from halfulp.compiler.errors import GraphError, GraphTypeError, near_names, quoted_list
from halfulp.compiler.graph import Graph
from halfulp.compiler.types import TensorType, shape_text

from ..arrays import shape_text as sizes_text
from .ulps import Array

SEED = 0
MOST_ELEMENTS = 2**20
"""Of a seeded input whose sizes are symbols."""
LARGEST_SYMBOL = 4096


def bound_inputs(graph: Graph, given: Mapping[str, Any] | Sequence[Any] | None) -> list[Array]:
    """The inputs in order, checked against the graph's types; seeded ones for None.

    Raises:
        GraphError: an input or weight is missing or unknown, or shapes do not fit the graph.
        GraphTypeError: an array of another element type.
    """
    names = graph.input_names
    if given is None:
        return seeded_inputs(graph)
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise GraphError(f"graph '{graph.name}' takes {len(names)} inputs ({', '.join(names)}), not {len(given)}")
        given = dict(zip(names, given, strict=True))
    _check_names(graph, given, "input", names)
    if missing := [name for name in names if name not in given]:
        raise GraphError(f"graph '{graph.name}': there is no array for {quoted_list(missing)}; add it by that name")
    arrays = [np.asarray(given[name]) for name in names]
    bindings: dict[str, int] = {}
    for name, input_type, array in zip(names, graph.input_types, arrays, strict=True):
        _check(f"graph '{graph.name}': input '{name}'", input_type, array, bindings)
    return arrays


def bound_weights(graph: Graph, given: Mapping[str, Any] | None) -> dict[str, Array]:
    """The weights by name: those given, seeded ones for all others; arrays for inputs among them are passed over.

    Raises:
        GraphError: a name is unknown, or a shape does not fit the graph.
        GraphTypeError: an array of another element type.
    """
    _check_names(graph, given or {}, "weight", list(graph.weights))
    generator = np.random.default_rng(SEED + 1)
    result = {}
    for name, weight in graph.weights.items():
        if given is not None and name in given:
            result[name] = np.asarray(given[name])
            _check(f"graph '{graph.name}': weight '{name}'", weight.type, result[name], {})
        else:
            shape = tuple(int(dim) for dim in weight.type.shape)
            # so that a matrix product has about the size of its operand
            scale = 1.0 / max(shape[0] if shape else 1, 1) ** 0.5
            result[name] = _random(generator, weight.type, shape, scale)
    return result


def _check_names(graph: Graph, given: Mapping[str, Any], kind: str, names: Sequence[str]) -> None:
    """Every name is one of the graph's: a file may hold inputs and weights together."""
    known = [*graph.input_names, *graph.weights]
    for name in given:
        if name not in known:
            hint = near_names(name, known) or f"; its {kind}s are {quoted_list(names)}"
            raise GraphError(f"graph '{graph.name}' has no {kind} '{name}'{hint}")


def _check(subject: str, wanted: TensorType, array: Array, bindings: dict[str, int]) -> None:
    """The type fits, and a symbol has one size."""
    fitting = len(wanted.shape) == array.ndim
    for dim, size in zip(wanted.shape, array.shape, strict=False):
        if isinstance(dim, StaticDim):
            fitting &= int(dim) == size
        else:
            known = bindings.setdefault(str(dim), size)
            if known != size:
                raise GraphError(
                    f"{subject} has shape {sizes_text(array.shape)}, but '{dim}' is {known} in another input; "
                    f"its type is {wanted.dtype} {shape_text(wanted.shape)}"
                )
    if not fitting:
        raise GraphError(
            f"{subject} must have shape {shape_text(wanted.shape)}, not {sizes_text(array.shape)}; "
            "give an array of that shape"
        )
    if array.dtype != wanted.dtype.to_numpy():
        raise GraphTypeError(
            f"{subject} must be {wanted.dtype}, not {array.dtype}; convert it with .astype({wanted.dtype.value!r})"
        )


def seeded_inputs(graph: Graph) -> list[Array]:
    """Normal numbers, integers 0 and 1, bools; the same for each run. All symbols get one size, at most 4096."""
    size = symbol_size(graph)
    generator = np.random.default_rng(SEED)
    arrays = []
    for input_type in graph.input_types:
        shape = tuple(int(dim) if isinstance(dim, StaticDim) else size for dim in input_type.shape)
        arrays.append(_random(generator, input_type, shape, 1.0))
    return arrays


def symbol_size(graph: Graph) -> int:
    """One size for all symbols of the inputs, such that none has many elements."""
    size = LARGEST_SYMBOL
    while size > 1 and any(_elements(input_type, size) > MOST_ELEMENTS for input_type in graph.input_types):
        size //= 2
    return size


def _elements(tensor: TensorType, size: int) -> int:
    symbols = [dim for dim in tensor.shape if not isinstance(dim, StaticDim)]
    return prod(int(dim) if isinstance(dim, StaticDim) else size for dim in tensor.shape) if symbols else 0


def _random(generator: np.random.Generator, tensor: TensorType, shape: tuple[int, ...], scale: float) -> Array:
    if tensor.dtype.is_float:
        return (generator.standard_normal(shape) * scale).astype(tensor.dtype.to_numpy())
    return generator.integers(0, 2, shape).astype(tensor.dtype.to_numpy())


def origin_text(graph: Graph, arrays: Sequence[Array], *, seeded: bool) -> str:
    """Where inputs came from, and their shapes: ``seeded with 0: a [4096], b [4096]``."""
    shapes = ", ".join(f"{name} {sizes_text(a.shape)}" for name, a in zip(graph.input_names, arrays, strict=True))
    return f"{f'seeded with {SEED}' if seeded else 'given'}: {shapes or 'none'}"
