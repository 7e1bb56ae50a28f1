"""Elements by computed positions: gather and gather_nd.

Indices are int32 or int64; negative ones count from the end. One outside of its axis fails the execution, with the
index in the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .axes import axis_of
from .contract import ALL, Array, Example, promise_examples
from .promotion import TensorValueLike, as_tensor
from .reshaping import elements, reshape
from .samples import anything, places

BLOCK = 1024
"""Elements of a slice that a program moves at a time."""


def index_at(k: KernelBuilder, name: str, ref: Value, place: Sequence[Value | int], size: Value) -> Value:
    """An index from memory, counted from the front; fails where it is outside of ``size``."""
    given = k.cast(k.read(ref, *place), IndexType())
    index = k.select(given < 0, given + size, given)
    k.check((index >= 0) & (index < size), f"ops.{name}: index {{}} is outside of an axis of size {{}}", given, size)
    return index


# -- gather_nd: data [batch, n_1, ..., n_k, rest], indices [batch or 1, m, k] -> [batch, m, rest]


def _infer_gather(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    data, indices = operands
    return [TensorType(data.dtype, [data.shape[0], indices.shape[1], data.shape[-1]], data.device)]


def _gather_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    (target,), shared = results, call.operands[1].shape[0] == 1
    name, depth = str(call.parameters["name"]), call.operands[0].rank - 2

    def body(k: KernelBuilder) -> None:
        data, indices, write = k.arguments
        batch, row, chunk = k.program_ids
        source = 0 if shared else batch
        found = [index_at(k, name, indices, [source, row, j], k.dim(data, 1 + j)) for j in range(depth)]
        block = [1] * (depth + 1) + [BLOCK]
        start = chunk * BLOCK
        read = k.window(data, [batch, *found, start], block, indexing="element", squeezed=range(depth + 1))
        k.store(k.load(read), k.window(write, [batch, row, start], [1, 1, BLOCK], indexing="element", squeezed=[0, 1]))

    sizes = [entry.dim(target, axis) for axis in range(3)]
    entry.launch(name, [*operands, target], [sizes[0], sizes[1], (sizes[2] + (BLOCK - 1)) // BLOCK], body)


GATHER = register_op(
    OpDef(
        "gather_nd",
        "opaque",
        ("data", "indices"),
        _infer_gather,
        parameters=(ParameterSpec("name", str),),
        recipe=_gather_recipe,
    )
)


def gather(x: TensorValueLike, indices: TensorValueLike, axis: int = -1) -> TensorValue:
    """The elements of ``x`` along ``axis`` at ``indices``: that axis of the result becomes the axes of ``indices``.

    Args:
        x: any element type and shape.
        indices: int32 or int64, any shape.
        axis: the axis of ``x``.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: an operand is no tensor, or ``indices`` are no integers.
    """
    subject = "ops.gather"
    graph = Graph.current(subject)
    with Located():
        value, places = as_tensor(graph, subject, "x", x), index_operand(graph, subject, indices)
        number = axis_of(subject, value, axis)
    before, after = value.shape[:number], value.shape[number + 1 :]
    data = reshape(value, [elements(before), value.shape[number], elements(after)])
    flat = reshape(places, [1, elements(places.shape), 1])
    result = graph.apply(GATHER, [data, flat], {"name": "gather"})[0]
    return reshape(result, [*before, *places.shape, *after])


def gather_nd(x: TensorValueLike, indices: TensorValueLike, batch_dims: int = 0) -> TensorValue:
    """Slices of ``x`` at positions that the last axis of ``indices`` holds.

    Args:
        x: any element type, shape ``[*batch, n_1, ..., n_k, *rest]``.
        indices: int32 or int64, shape ``[*batch, *positions, k]``, k known.
        batch_dims: how many axes in front the two share.

    Returns:
        Shape ``[*batch, *positions, *rest]``.

    Raises:
        GraphError: shapes that do not fit.
        GraphTypeError: an operand is no tensor, or ``indices`` are no integers.
    """
    subject = "ops.gather_nd"
    graph = Graph.current(subject)
    with Located():
        value, places = as_tensor(graph, subject, "x", x), index_operand(graph, subject, indices)
        depth = depth_of(subject, value, places, batch_dims)
    batch, positions = value.shape[:batch_dims], places.shape[batch_dims:-1]
    indexed, rest = value.shape[batch_dims : batch_dims + depth], value.shape[batch_dims + depth :]
    data = reshape(value, [elements(batch), *indexed, elements(rest)])
    flat = reshape(places, [elements(batch), elements(positions), depth])
    result = graph.apply(GATHER, [data, flat], {"name": "gather_nd"})[0]
    return reshape(result, [*batch, *positions, *rest])


def index_operand(graph: Graph, subject: str, indices: object) -> TensorValue:
    value = as_tensor(graph, subject, "indices", indices)
    if value.dtype not in (DType.int32, DType.int64):
        raise GraphTypeError(
            f"{subject}: operand 'indices' must be int32 or int64, not {value.dtype}; write .cast(DType.int64) if that "
            "is meant"
        )
    return value


def depth_of(subject: str, x: TensorValue, indices: TensorValue, batch_dims: int) -> int:
    """How many axes of ``x`` a position names."""
    if isinstance(batch_dims, bool) or not isinstance(batch_dims, int) or batch_dims < 0:
        raise GraphError(f"{subject}: batch_dims must be an int of at least 0, not {batch_dims!r}")
    shapes = f"x has shape {shape_text(x.shape)} and indices {shape_text(indices.shape)}"
    if indices.rank <= batch_dims:
        raise GraphError(f"{subject}: {shapes}; indices need {batch_dims} batch axes and one for positions")
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise GraphError(f"{subject}: {shapes}; the first {batch_dims} sizes must be equal; rebind one if they are")
    depth = indices.shape[-1]
    if not isinstance(depth, StaticDim):
        raise GraphError(f"{subject}: {shapes}; the last size of indices must be a number, not '{depth}'; rebind it")
    if int(depth) > x.rank - batch_dims:
        raise GraphError(
            f"{subject}: {shapes}; a position of {depth} entries is too long for {x.rank - batch_dims} axes of x"
        )
    return int(depth)


# -- contracts


def _reference_gather(x: Array, indices: Array, axis: int = -1) -> Array:
    return np.take(x, indices.astype(np.intp), axis)


def _reference_gather_nd(x: Array, indices: Array, batch_dims: int = 0) -> Array:
    positions, batch = indices.astype(np.intp), x.shape[:batch_dims]
    if not batch_dims:
        return np.asarray(x[tuple(np.moveaxis(positions, -1, 0))])
    parts = [_reference_gather_nd(part, place, batch_dims - 1) for part, place in zip(x, positions, strict=True)]
    return np.array(parts, x.dtype).reshape(*batch[:1], *parts[0].shape)


def _gather_examples(dtype: DType) -> list[Example]:
    x = anything(dtype, (4, 5, 3))
    cases = [Example((x, places((2, 3), x.shape[axis])), {"axis": axis}) for axis in (0, 1, -1)]
    long = anything(dtype, (3, 1100))
    return [*cases, Example((long, places((5,), 3, dtype=DType.int32)), {"axis": 0}), Example((x, places((0,), 3)), {})]


def _gather_nd_examples(dtype: DType) -> list[Example]:
    x = anything(dtype, (4, 5, 3))
    return [
        Example((x, places((6, depth), 3, seed)), {"batch_dims": batch})
        for seed, (depth, batch) in enumerate(((1, 0), (2, 0), (3, 0)))
    ] + [
        Example((x, places((4, 2, 1), 5)), {"batch_dims": 1}),
        Example((x, places((4, 5, 2, 1), 3)), {"batch_dims": 2}),
    ]


promise_examples(gather, ALL, _reference_gather, _gather_examples)
promise_examples(gather_nd, ALL, _reference_gather_nd, _gather_nd_examples)
