"""Control flow: `cond` runs one of two branches, `while_loop` runs a body again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from halfulp.compiler import DType, Graph, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.control_flow import build_cond, build_while
from halfulp.compiler.locations import Located

from .promotion import TensorValueLike, as_constant, as_tensor, is_tensor

Returned: TypeAlias = "TensorValueLike | Iterable[TensorValueLike] | None"
"""What the functions return: a value, several in a list or tuple, or nothing. Numbers and arrays become constants."""


def cond(
    pred: TensorValueLike,
    out_types: Iterable[TensorType] | None,
    then_fn: Callable[[], Returned],
    else_fn: Callable[[], Returned],
) -> list[TensorValue]:
    """Run one of two branches; only the ops of that one run.

    Both functions are called once, while the graph is built, and may use any value and weight around them. What they
    print is printed only if their branch runs.

    Args:
        pred: one bool, a scalar or of size 1 on every axis.
        out_types: the types of the results; None or empty if there are none.
        then_fn: builds what runs if ``pred`` is true; returns a value for each type.
        else_fn: the same, if it is false.

    Returns:
        A value for each of ``out_types``.

    Raises:
        NotFoundError: no graph is being built.
        GraphError: ``pred`` is not one bool, or a branch returns another number of values or another shape.
        GraphTypeError: ``pred`` is no bool, or a branch returns another element type.
    """
    subject = "ops.cond"
    graph = Graph.current(subject)
    with Located():
        types = _types(subject, out_types)
        condition = _predicate(graph, subject, "pred", pred)
        _check_function(subject, "then_fn", then_fn)
        _check_function(subject, "else_fn", else_fn)
    roles = {f"out_types[{index}]": out_type for index, out_type in enumerate(types)}
    then_branch = _branch(graph, subject, "then_fn", then_fn, roles)
    return build_cond(graph, condition, types, then_branch, _branch(graph, subject, "else_fn", else_fn, roles))


def while_loop(
    initial_values: TensorValueLike | Iterable[TensorValueLike],
    predicate: Callable[..., TensorValueLike],
    body: Callable[..., Returned],
) -> list[TensorValue]:
    """Run ``body`` as long as ``predicate`` gives true, with values carried from each round to the next.

    Both functions are called once, while the graph is built, with a value for each that is carried. They may use any
    value and weight around them. Types and sizes of what is carried stay as they are.

    Args:
        initial_values: what the first round starts with; one value, or several.
        predicate: gives one bool from the carried values, before each round.
        body: gives the next values from the carried ones.

    Returns:
        The values carried at the end: the initial ones if there was no round.

    Raises:
        NotFoundError: no graph is being built.
        GraphError: nothing is carried, or what a function returns has another number or shape than it must have.
        GraphTypeError: a function returns another element type, or an initial value is no tensor.
    """
    subject = "ops.while_loop"
    graph = Graph.current(subject)
    with Located():
        given = _listed(initial_values)
        initial = [as_tensor(graph, subject, f"initial_values[{i}]", value) for i, value in enumerate(given)]
        _check_function(subject, "predicate", predicate)
        _check_function(subject, "body", body)
    roles = {f"carried value {index}": value.type for index, value in enumerate(initial)}

    def condition(*carried: TensorValue) -> Sequence[object]:
        results = _listed(predicate(*carried))
        with Located():
            return [_predicate(graph, subject, "the result of predicate", value) for value in results]

    return build_while(graph, initial, condition, _branch(graph, subject, "body", body, roles))


def _listed(values: Any) -> list[Any]:
    if values is None:
        return []
    if is_tensor(values) or hasattr(values, "__array__") or not isinstance(values, Iterable):
        return [values]
    return list(values)


def _types(subject: str, out_types: Iterable[TensorType] | None) -> list[TensorType]:
    if isinstance(out_types, TensorType) or not (out_types is None or isinstance(out_types, Iterable)):
        raise GraphTypeError(f"{subject}: out_types must be a list of TensorType, not {out_types!r}; write [type]")
    types = list(out_types or ())
    for index, out_type in enumerate(types):
        if not isinstance(out_type, TensorType):
            raise GraphTypeError(f"{subject}: out_types[{index}] must be a TensorType, not {out_type!r}")
    return types


def _check_function(subject: str, name: str, function: Any) -> None:
    if is_tensor(function) or not callable(function):
        raise GraphTypeError(
            f"{subject}: {name} must be a function that builds the values, not {function!r}; write lambda around it"
        )


def _predicate(graph: Graph, subject: str, name: str, value: Any) -> object:
    """A Python bool decides like a constant; anything else must be a tensor."""
    if isinstance(value, bool | np.bool_):
        return graph.constant(bytes([bool(value)]), TensorType(DType.bool, ()))
    return as_tensor(graph, subject, name, value)


def _branch(
    graph: Graph, subject: str, name: str, function: Callable[..., Returned], roles: Mapping[str, TensorType]
) -> Callable[..., Sequence[object]]:
    """The function, with numbers, sizes and arrays among its results made constants of the wanted element types."""

    def build(*arguments: TensorValue) -> Sequence[object]:
        results = _listed(function(*arguments))
        with Located():
            for index, (value, (role, wanted)) in enumerate(zip(results, roles.items(), strict=False)):
                if not is_tensor(value):
                    place = (role, wanted.device)
                    results[index] = as_constant(
                        graph, subject, f"result {index} of {name}", value, wanted.dtype, place
                    )
        return results

    return build
