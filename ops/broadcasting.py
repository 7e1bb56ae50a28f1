"""Broadcasting: how shapes meet, and `broadcast_to`, which every op with several operands uses.

Shapes are aligned at their last axes, as in numpy. Two sizes meet if they are provably equal or one of them is 1. A
symbol meets another symbol, or a number, never on the chance that the two agree when the graph runs: that is what
``rebind`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler import Dim, Graph, GraphError, TensorType, TensorValue
from halfulp.compiler.dims import DimLike
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import AxisAccess, OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.types import as_dims, as_shape, shape_text

from .contract import ALL, promise_examples
from .promotion import TensorValueLike, as_tensor
from .samples import of_shape

Shape = tuple[Dim, ...]


def broadcast_shapes(subject: str, names: Sequence[str], shapes: Sequence[Shape]) -> Shape:
    """The shape that all of them broadcast to.

    Raises:
        GraphError: two sizes do not meet.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = []
    for axis in range(-rank, 0):
        size, owner = Dim(1), 0
        for index, shape in enumerate(shapes):
            if -axis > len(shape) or shape[axis] == size or shape[axis] == 1:
                continue
            if size != 1:
                raise GraphError(_mismatch(subject, names, shapes, axis, owner, index))
            size, owner = shape[axis], index
        result.append(size)
    return tuple(result)


def _mismatch(subject: str, names: Sequence[str], shapes: Sequence[Shape], axis: int, first: int, second: int) -> str:
    one, other = shapes[first], shapes[second]
    sizes = f"'{one[axis]}' and '{other[axis]}'"
    symbolic = any(dim.symbols for dim in (one[axis], other[axis]))
    remedy = "rebind one of them if they are equal" if symbolic else "reshape one of them, or slice it"
    return (
        f"{subject}: operand {names[first]!r} has shape {shape_text(one)} and operand {names[second]!r} has shape "
        f"{shape_text(other)}; at axis {axis} {sizes} are neither equal nor 1; {remedy}"
    )


def broadcast_operands(subject: str, names: Sequence[str], values: Sequence[TensorValue]) -> list[TensorValue]:
    """The operands with the shape that all of them broadcast to."""
    shape = broadcast_shapes(subject, names, [value.shape for value in values])
    return [_broadcast(value, shape) for value in values]


def _broadcast(value: TensorValue, shape: Shape) -> TensorValue:
    return value if value.shape == shape else value.graph.apply(BROADCAST_TO, [value], {"shape": shape})[0]


def broadcast_to(x: TensorValueLike, shape: Iterable[DimLike]) -> TensorValue:
    """Repeat a tensor along new axes in front and along axes of size 1.

    Args:
        x: any element type, shape ``[..., 1 or n, ...]``.
        shape: the shape wanted; -1 keeps the size of an axis that ``x`` has.

    Returns:
        The same elements, exact, under ``shape``.

    Raises:
        GraphError: a size of ``x`` is neither 1 nor the one wanted, or ``shape`` has fewer axes than ``x``.
        GraphTypeError: ``x`` is no tensor, or ``shape`` no shape.
    """
    subject = "ops.broadcast_to"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        wanted = _kept_sizes(subject, value, as_dims(shape, f"{subject}: shape"))
        _check_target(subject, value.shape, wanted)
    return _broadcast(value, wanted)


def _kept_sizes(subject: str, value: TensorValue, shape: Shape) -> Shape:
    lead = len(shape) - value.rank
    sizes: list[Dim] = []
    for axis, size in enumerate(shape):
        keeps = size == -1
        if keeps and axis < lead:
            raise GraphError(f"{subject}: axis {axis} of shape is new, so its size cannot be -1; state the size")
        sizes.append(value.shape[axis - lead] if keeps else size)
    return as_shape(sizes, f"{subject}: shape")


def _check_target(subject: str, source: Shape, target: Shape) -> None:
    if len(target) < len(source):
        raise GraphError(
            f"{subject}: shape {shape_text(target)} has fewer axes than x, {shape_text(source)}; "
            "squeeze x, or select from it"
        )
    for axis in range(-len(source), 0):
        if source[axis] != 1 and source[axis] != target[axis]:
            symbolic = source[axis].symbols or target[axis].symbols
            raise GraphError(
                f"{subject}: x has shape {shape_text(source)}, which does not broadcast to {shape_text(target)}: at "
                f"axis {axis} '{source[axis]}' is neither 1 nor '{target[axis]}'"
                + ("; rebind x if they are equal" if symbolic else "; use ops.tile or ops.repeat_interleave to repeat")
            )


def _infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    target = as_shape(parameters["shape"])
    _check_target("broadcast_to", x.shape, target)
    return [TensorType(x.dtype, target, x.device)]


def _access(call: OpCall) -> list[AxisAccess]:
    (source,), (target,) = call.operands, call.results
    lead = target.rank - source.rank
    return [
        AxisAccess(None if size == 1 and target.shape[lead + axis] != 1 else lead + axis)
        for axis, size in enumerate(source.shape)
    ]


BROADCAST_TO = register_op(
    OpDef("broadcast_to", "view", ("x",), _infer, parameters=(ParameterSpec("shape", tuple),), access=_access)
)


promise_examples(
    broadcast_to,
    ALL,
    lambda x, shape: np.broadcast_to(x, shape),
    of_shape((3, 1), *({"shape": shape} for shape in ((3, 70), (2, 3, 1), (0, 3, 4)))),
)
