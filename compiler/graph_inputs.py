"""The inputs of a graph under construction: their types and their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence

from .dims import is_legal_name
from .errors import GraphError, GraphTypeError
from .types import TensorType


def checked_input_types(graph: str, input_types: Iterable[TensorType]) -> list[TensorType]:
    """The input types as a list. Raises GraphTypeError where one is something else."""
    if isinstance(input_types, TensorType) or not isinstance(input_types, Iterable):
        raise GraphTypeError(f"graph {graph!r}: input_types must be a list of TensorType, not {input_types!r}")
    types = list(input_types)
    for index, input_type in enumerate(types):
        if not isinstance(input_type, TensorType):
            raise GraphTypeError(f"graph {graph!r}: input_types[{index}] must be a TensorType, not {input_type!r}")
    return types


def input_names_for(
    graph: str, forward: Callable[..., object] | None, given: Sequence[str] | None, count: int
) -> list[str]:
    """The names given, else those of the function's parameters, else ``input0``, ... Raises GraphError."""
    if given is None:
        return _parameter_names(forward, count) or [f"input{index}" for index in range(count)]
    names = list(given)
    if len(names) != count:
        raise GraphError(f"graph {graph!r}: there are {count} input_types, but {len(names)} input_names")
    for name in names:
        if not isinstance(name, str) or not is_legal_name(name):
            raise GraphError(f"graph {graph!r}: an input cannot be named {name!r}; use letters, digits and '_'")
        if names.count(name) > 1:
            raise GraphError(f"graph {graph!r}: input_names must differ, but {name!r} is repeated")
    return names


def _parameter_names(forward: Callable[..., object] | None, count: int) -> list[str]:
    """The names of the first ``count`` parameters of a function; empty if it does not name that many."""
    if forward is None:
        return []
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have no signature
        return []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = positional[:count]
    return names if len(names) == count and all(is_legal_name(name) for name in names) else []
