"""Elements put to computed positions: scatter and scatter_nd, with what they combine.

Indices are as of `gather`. Updates are combined in ascending order, so repeated indices have one right result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .axes import axis_of
from .comparison import larger, smaller
from .contract import ALL, NUMBERS, Array, Example, promise_examples
from .copying import copy_rows
from .indexing import BLOCK, depth_of, index_at, index_operand
from .promotion import TensorValueLike, as_tensor
from .reshaping import Shape, elements, reshape
from .samples import anything, moderate, places


def _combine(k: KernelBuilder, kind: str, dtype: DType, old: Value, new: Value) -> Value:
    if kind == "set":
        return new
    if kind in ("add", "mul"):
        return k.binary(kind, old, new)
    if dtype.is_float:
        return k.binary({"max": "maximum", "min": "minimum"}[kind], old, new)
    return k.binary(f"{kind}{'s' if dtype.is_signed else 'u'}", old, new)


def _same_as_first(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    return [operands[0]]


def _scatter_nd_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """x [n_1, ..., n_k, rest], updates [m, rest], indices [m, k]: a program takes all updates of some columns."""
    x, updates, indices = operands
    (target,) = results
    kind, name = str(call.parameters["kind"]), str(call.parameters["name"])
    depth, dtype = call.operands[0].rank - 1, call.operands[0].dtype
    copy_rows(entry, f"{name}_copy", x, target, [0] * (depth + 1))

    def body(k: KernelBuilder) -> None:
        write, new, places = k.arguments
        start = k.program_ids[0] * BLOCK

        def update(row: Value) -> None:
            found = [index_at(k, name, places, [row, j], k.dim(write, j)) for j in range(depth)]
            shape = [1] * depth + [BLOCK]
            window = k.window(write, [*found, start], shape, indexing="element", squeezed=range(depth))
            block = k.load(k.window(new, [row, start], [1, BLOCK], indexing="element", squeezed=[0]))
            k.store(_combine(k, kind, dtype, k.load(window), block), window)

        k.for_loop(0, k.dim(new, 0), [], update)

    entry.launch(name, [target, updates, indices], [(entry.dim(target, depth) + (BLOCK - 1)) // BLOCK], body)


def _scatter_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """x [a, n, b], updates and indices [c, m, d], c <= a and d <= b: a program takes the updates of one line."""
    x, updates, indices = operands
    (target,) = results
    kind, name, dtype = str(call.parameters["kind"]), str(call.parameters["name"]), call.operands[0].dtype
    copy_rows(entry, f"{name}_copy", x, target, [0, 0, 0])

    def body(k: KernelBuilder) -> None:
        write, new, places = k.arguments
        outer, inner = k.program_ids

        def update(row: Value) -> None:
            found = index_at(k, name, places, [outer, row, inner], k.dim(write, 1))
            window = k.window(write, [outer, found, inner], [1, 1, 1], indexing="element", squeezed=[0, 1])
            block = k.load(k.window(new, [outer, row, inner], [1, 1, 1], indexing="element", squeezed=[0, 1]))
            k.store(_combine(k, kind, dtype, k.load(window), block), window)

        k.for_loop(0, k.dim(new, 1), [], update)

    entry.launch(name, [target, updates, indices], [entry.dim(updates, 0), entry.dim(updates, 2)], body)


_PARAMETERS = (ParameterSpec("kind", str), ParameterSpec("name", str))
SCATTER_ND = register_op(
    OpDef(
        "scatter_nd",
        "opaque",
        ("x", "updates", "indices"),
        _same_as_first,
        parameters=_PARAMETERS,
        recipe=_scatter_nd_recipe,
    )
)
SCATTER = register_op(
    OpDef(
        "scatter", "opaque", ("x", "updates", "indices"), _same_as_first, parameters=_PARAMETERS, recipe=_scatter_recipe
    )
)


def _scatter(name: str, kind: str, x: object, updates: object, indices: object, axis: int) -> TensorValue:
    subject = f"ops.{name}"
    graph = Graph.current(subject)
    with Located():
        value, new = as_tensor(graph, subject, "x", x), as_tensor(graph, subject, "updates", updates)
        places, number = index_operand(graph, subject, indices), axis_of(subject, value, axis)
        _check_updates(subject, value, new, kind)
        if places.shape != new.shape or value.rank != new.rank:
            raise GraphError(
                f"{subject}: updates, {shape_text(new.shape)}, and indices, {shape_text(places.shape)}, must have one "
                f"shape, with as many axes as x, {shape_text(value.shape)}"
            )
        _check_lines(subject, value, new, number)
    before, after = slice(0, number), slice(number + 1, None)
    parts = [
        reshape(part, [elements(part.shape[before]), part.shape[number], elements(part.shape[after])])
        for part in (value, new, places)
    ]
    return reshape(graph.apply(SCATTER, parts, {"kind": kind, "name": name})[0], value.shape)


def _check_lines(subject: str, value: TensorValue, new: TensorValue, number: int) -> None:
    """Axes joined with others must have the sizes of ``x``; one alone before or behind ``axis`` may have less."""
    for axis, (size, given) in enumerate(zip(value.shape, new.shape, strict=True)):
        alone = (axis < number and number == 1) or (axis > number and number == value.rank - 2)
        shorter = isinstance(size, StaticDim) and isinstance(given, StaticDim) and int(given) <= int(size)
        if axis != number and size != given and not (alone and shorter):
            raise GraphError(
                f"{subject}: axis {axis} of updates, {shape_text(new.shape)}, must have size '{size}' as in x, "
                f"{shape_text(value.shape)}, not '{given}'; scatter into a slice of x"
            )


def _check_updates(subject: str, value: TensorValue, new: TensorValue, kind: str) -> None:
    if value.dtype is not new.dtype:
        raise GraphTypeError(
            f"{subject}: operand 'updates' is {new.dtype} and operand 'x' is {value.dtype}; cast one of them"
        )
    if kind != "set" and value.dtype is DType.bool:
        raise GraphTypeError(f"{subject}: operand 'x' must hold numbers, not bool; write .cast(DType.int8) if meant")


def _scatter_nd(name: str, kind: str, x: object, updates: object, indices: object) -> TensorValue:
    subject = f"ops.{name}"
    graph = Graph.current(subject)
    with Located():
        value, new = as_tensor(graph, subject, "x", x), as_tensor(graph, subject, "updates", updates)
        places = index_operand(graph, subject, indices)
        _check_updates(subject, value, new, kind)
        depth = depth_of(subject, value, places, 0)
        wanted: Shape = (*places.shape[:-1], *value.shape[depth:])
        if new.shape != wanted:
            raise GraphError(
                f"{subject}: updates must have shape {shape_text(wanted)}, the positions of indices and the axes of x "
                f"that they leave, not {shape_text(new.shape)}; rebind or broadcast it"
            )
    rest = elements(value.shape[depth:])
    count = elements(places.shape[:-1])
    flat = [
        reshape(value, [*value.shape[:depth], rest]),
        reshape(new, [count, rest]),
        reshape(places, [count, depth]),
    ]
    return reshape(graph.apply(SCATTER_ND, flat, {"kind": kind, "name": name})[0], value.shape)


def scatter(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """``x`` with ``result[..., indices[..., i, ...], ...] = updates[..., i, ...]`` along ``axis``.

    Args:
        x: any element type and shape.
        updates: the same element type and number of axes.
        indices: int32 or int64, the shape of ``updates``.
        axis: the axis that the indices count along.

    Raises:
        GraphError: shapes that do not fit.
        GraphTypeError: element types that do not fit.
    """
    return _scatter("scatter", "set", x, updates, indices, axis)


def scatter_add(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """`scatter` that adds the updates one after the other; each sum is rounded."""
    return _scatter("scatter_add", "add", x, updates, indices, axis)


def scatter_max(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """`scatter` that keeps the larger element; NaN wins."""
    return _scatter("scatter_max", "max", x, updates, indices, axis)


def scatter_min(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """`scatter` that keeps the smaller element; NaN wins."""
    return _scatter("scatter_min", "min", x, updates, indices, axis)


def scatter_mul(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """`scatter` that multiplies by the updates one after the other; each product is rounded."""
    return _scatter("scatter_mul", "mul", x, updates, indices, axis)


def scatter_nd(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike) -> TensorValue:
    """``x`` with the slices at positions replaced: ``result[indices[i]] = updates[i]``.

    Args:
        x: any element type, shape ``[n_1, ..., n_k, *rest]``.
        updates: the same element type, shape ``[*positions, *rest]``.
        indices: int32 or int64, shape ``[*positions, k]``, k known.

    Raises:
        GraphError: shapes that do not fit.
        GraphTypeError: element types that do not fit.
    """
    return _scatter_nd("scatter_nd", "set", x, updates, indices)


def scatter_nd_add(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike) -> TensorValue:
    """`scatter_nd` that adds the updates one after the other; each sum is rounded."""
    return _scatter_nd("scatter_nd_add", "add", x, updates, indices)


def scatter_nd_max(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike) -> TensorValue:
    """`scatter_nd` that keeps the larger element; NaN wins."""
    return _scatter_nd("scatter_nd_max", "max", x, updates, indices)


def scatter_nd_min(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike) -> TensorValue:
    """`scatter_nd` that keeps the smaller element; NaN wins."""
    return _scatter_nd("scatter_nd_min", "min", x, updates, indices)


def scatter_nd_mul(x: TensorValueLike, updates: TensorValueLike, indices: TensorValueLike) -> TensorValue:
    """`scatter_nd` that multiplies by the updates one after the other; each product is rounded."""
    return _scatter_nd("scatter_nd_mul", "mul", x, updates, indices)


# -- contracts: the updates are combined one after the other, so the reference does just that


_Combine = Callable[[Any, Any], Any]


def _set(result: Array, target: tuple[Any, ...], combine: _Combine, new: Any) -> None:
    result[target] = combine(*(np.asarray(value, result.dtype) for value in (result[target], new)))


def _scattered(combine: _Combine) -> Callable[..., Array]:
    def reference(x: Array, updates: Array, indices: Array, axis: int = -1) -> Array:
        result = x.copy()
        for place in np.ndindex(updates.shape):
            target = list(place)
            target[axis] = int(indices[place])
            _set(result, tuple(target), combine, updates[place])
        return result

    return reference


def _scattered_nd(combine: _Combine) -> Callable[..., Array]:
    def reference(x: Array, updates: Array, indices: Array) -> Array:
        result = x.copy()
        for place in np.ndindex(indices.shape[:-1]):
            target = tuple(int(i) for i in indices[place])
            _set(result, target, combine, updates[place])
        return result

    return reference


def _of_sizes(reference: Callable[..., Array]) -> Callable[..., Array]:
    """A bound for sums and products: as many roundings as there are updates, of what the absolute values make."""

    def tolerance(epsilon: float, x: Array, updates: Array, indices: Array, **parameters: Any) -> Array:
        return np.asarray(updates.size * epsilon / 2 * reference(np.abs(x), np.abs(updates), indices, **parameters))

    return tolerance


def _scatter_examples(numbers: Callable[[DType, Sequence[int]], Array]) -> Callable[[DType], list[Example]]:
    def examples(dtype: DType) -> list[Example]:
        return [
            Example((numbers(dtype, shape), numbers(dtype, new), places(new, shape[axis])), {"axis": axis})
            for shape, new, axis in (
                ((9,), (20,), 0),
                ((4, 5), (4, 9), 1),
                ((3, 4, 5), (3, 2, 5), 1),
                ((4, 3), (0, 3), 0),
            )
        ]

    return examples


def _scatter_nd_examples(numbers: Callable[[DType, Sequence[int]], Array]) -> Callable[[DType], list[Example]]:
    def examples(dtype: DType) -> list[Example]:
        return [
            Example((numbers(dtype, shape), numbers(dtype, (*count, *shape[depth:])), places((*count, depth), 3)), {})
            for shape, count, depth in (((5,), (12,), 1), ((4, 6), (7,), 1), ((4, 3, 5), (2, 3), 2), ((4, 6), (0,), 1))
        ]

    return examples


def _promise_scatters() -> None:
    functions = {
        "set": (scatter, scatter_nd, lambda old, new: new),
        "max": (scatter_max, scatter_nd_max, larger),
        "min": (scatter_min, scatter_nd_min, smaller),
        "add": (scatter_add, scatter_nd_add, lambda old, new: old + new),
        "mul": (scatter_mul, scatter_nd_mul, lambda old, new: old * new),
    }
    for kind, (along, at, combine) in functions.items():
        exact = kind not in ("add", "mul")
        numbers = anything if exact else moderate
        for function, examples, make in (
            (along, _scatter_examples(numbers), _scattered),
            (at, _scatter_nd_examples(numbers), _scattered_nd),
        ):
            reference = make(combine)
            promise_examples(
                function,
                ALL if kind == "set" else NUMBERS,
                reference,
                examples,
                tolerance=None if exact else _of_sizes(reference),
                text=f"updates * u * {function.__name__} of abs",
                rounds_each_step=True,
            )


_promise_scatters()
