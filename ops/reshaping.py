"""The same elements in the same order under other sizes: reshape, flatten, squeeze, unsqueeze, rebind.

``reshape`` and ``flatten`` only rename memory; ``squeeze`` and ``unsqueeze`` are views, which cost nothing where the
result is computed with.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from halfulp.compiler import Dim, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import DimLike, StaticDim, SymbolicDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import AxisAccess, OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import as_dims, as_shape, shape_text

from .axes import axis_of, checked_axis
from .contract import ALL, promise_examples
from .copying import copy_rows
from .defining import define_symbol
from .promotion import TensorValueLike, as_tensor
from .samples import of_shape

Shape = tuple[Dim, ...]


def elements(shape: Iterable[Dim]) -> Dim:
    """The number of elements of a shape."""
    return reduce(operator.mul, shape, Dim(1))


def _infer_reshape(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    target = as_shape(parameters["shape"])
    if elements(target) != x.num_elements:
        raise GraphError(f"{shape_text(target)} has '{elements(target)}' elements, not '{x.num_elements}'")
    return [TensorType(x.dtype, target, x.device)]


RESHAPE = register_op(OpDef("reshape", "alias", ("x",), _infer_reshape, parameters=(ParameterSpec("shape", tuple),)))


def reshape(x: TensorValueLike, shape: Iterable[DimLike]) -> TensorValue:
    """The elements of ``x`` in row-major order under another shape.

    Args:
        x: any element type and shape.
        shape: as many elements, provably; one size may be -1 and is then computed.

    Raises:
        GraphError: the numbers of elements are not provably equal.
        GraphTypeError: ``x`` is no tensor, or ``shape`` no shape.
    """
    subject = "ops.reshape"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if isinstance(shape, int | Dim):
            shape = [shape]
        target = _target(subject, value, as_dims(shape, f"{subject}: shape"))
    return value if target == value.shape else graph.apply(RESHAPE, [value], {"shape": target})[0]


def _target(subject: str, value: TensorValue, shape: Shape) -> Shape:
    """The shape with -1 computed, proved to hold as many elements."""
    open_axes = [axis for axis, size in enumerate(shape) if size == -1]
    if len(open_axes) > 1:
        raise GraphError(f"{subject}: shape has -1 at axes {open_axes[0]} and {open_axes[1]}; leave one size open only")
    sizes = [1 if axis in open_axes else size for axis, size in enumerate(shape)]
    target = as_shape(sizes, f"{subject}: shape")
    total, rest = value.type.num_elements, elements(target)
    where = f"x has shape {shape_text(value.shape)} with '{total}' elements"
    if open_axes:
        if rest == 0:
            raise GraphError(f"{subject}: the size -1 is not determined beside a size 0; state it")
        size = total // rest
        if size * rest != total:
            raise GraphError(
                f"{subject}: {where}, which are not provably a multiple of '{rest}', what the other sizes of "
                f"{shape_text(shape)} make; rebind x to sizes that show it"
            )
        return (*target[: open_axes[0]], size, *target[open_axes[0] + 1 :])
    if rest != total:
        symbolic = total.symbols or rest.symbols
        raise GraphError(
            f"{subject}: {where}, but {shape_text(target)} has '{rest}'; "
            + ("rebind x if the two are equal" if symbolic else "make them equal, or leave one size open with -1")
        )
    return target


def flatten(x: TensorValueLike, start_dim: int = 0, end_dim: int = -1) -> TensorValue:
    """The axes from ``start_dim`` to ``end_dim``, both included, as one. A scalar becomes one element.

    Raises:
        GraphError: an axis does not exist, or they stand in the wrong order.
        GraphTypeError: ``x`` is no tensor, or an axis no int.
    """
    subject = "ops.flatten"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if value.rank == 0:
            return reshape(value, [1])
        first = axis_of(subject, value, start_dim, "start_dim")
        last = axis_of(subject, value, end_dim, "end_dim")
        if first > last:
            raise GraphError(f"{subject}: start_dim {start_dim} is behind end_dim {end_dim}; exchange them")
    joined = elements(value.shape[first : last + 1])
    return reshape(value, (*value.shape[:first], joined, *value.shape[last + 1 :]))


# -- squeeze, unsqueeze


def _infer_squeeze(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    axis = parameters["axis"]
    if not 0 <= axis < x.rank or x.shape[axis] != 1:
        raise GraphError(f"axis {axis} of {shape_text(x.shape)} must have size 1")
    return [TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]), x.device)]


def _squeeze_access(call: OpCall) -> list[AxisAccess]:
    axis = call.parameters["axis"]
    assert isinstance(axis, int)
    return [AxisAccess(None if i == axis else i - (i > axis)) for i in range(call.operands[0].rank)]


SQUEEZE = register_op(
    OpDef("squeeze", "view", ("x",), _infer_squeeze, parameters=(ParameterSpec("axis", int),), access=_squeeze_access)
)


def squeeze(x: TensorValueLike, axis: int) -> TensorValue:
    """Without an axis of size 1.

    Raises:
        GraphError: the axis does not exist, or its size is not provably 1.
        GraphTypeError: ``x`` is no tensor, or ``axis`` no int.
    """
    subject = "ops.squeeze"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        number = axis_of(subject, value, axis)
        if value.shape[number] != 1:
            remedy = "rebind x if it is 1" if value.shape[number].symbols else "select an element of it instead"
            raise GraphError(
                f"{subject}: axis {axis} of x, {shape_text(value.shape)}, has size '{value.shape[number]}', not 1; "
                f"{remedy}"
            )
    return graph.apply(SQUEEZE, [value], {"axis": number})[0]


def _infer_unsqueeze(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    axis = parameters["axis"]
    if not 0 <= axis <= x.rank:
        raise GraphError(f"axis {axis} must be from 0 to {x.rank}")
    return [TensorType(x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]), x.device)]


def _unsqueeze_access(call: OpCall) -> list[AxisAccess]:
    axis = call.parameters["axis"]
    assert isinstance(axis, int)
    return [AxisAccess(i + (i >= axis)) for i in range(call.operands[0].rank)]


UNSQUEEZE = register_op(
    OpDef(
        "unsqueeze",
        "view",
        ("x",),
        _infer_unsqueeze,
        parameters=(ParameterSpec("axis", int),),
        access=_unsqueeze_access,
    )
)


def unsqueeze(x: TensorValueLike, axis: int) -> TensorValue:
    """With a new axis of size 1, which is axis ``axis`` of the result.

    Raises:
        GraphError: the result has no such axis.
        GraphTypeError: ``x`` is no tensor, or ``axis`` no int.
    """
    subject = "ops.unsqueeze"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        why = f"the result of x, {shape_text(value.shape)}, has {value.rank + 1} axes"
        number = checked_axis(subject, axis, value.rank + 1, "axis", why)
    return graph.apply(UNSQUEEZE, [value], {"axis": number})[0]


# -- rebind


def _infer_rebind(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    target = as_shape(parameters["shape"])
    _check_rebind("rebind", x.shape, target)
    return [TensorType(x.dtype, target, x.device)]


def _check_rebind(subject: str, source: Shape, target: Shape) -> None:
    if len(source) != len(target):
        raise GraphError(
            f"{subject}: shape {shape_text(target)} has {len(target)} axes, but x, {shape_text(source)}, has "
            f"{len(source)}; name a size for each axis"
        )
    for axis, (old, new) in enumerate(zip(source, target, strict=True)):
        if isinstance(old, StaticDim) and isinstance(new, StaticDim) and old != new:
            raise GraphError(
                f"{subject}: axis {axis} of x, {shape_text(source)}, has size {old}, which is never {new}; "
                "use reshape or slice to change it"
            )


def _rebind_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """Checks each size that was not proved, in one program, and copies."""
    (source,), (target,) = operands, results
    (x,), (y,) = call.operands, call.results
    text = call.parameters["message"]
    reason = f": {text}" if text else ""

    def body(k: KernelBuilder) -> None:
        old_ref, new_ref = k.arguments
        for axis, (old, new) in enumerate(zip(x.shape, y.shape, strict=True)):
            if old != new:
                found, wanted = k.dim(old_ref, axis), k.dim(new_ref, axis)
                k.check(
                    found == wanted,
                    f"ops.rebind: axis {axis} has size '{old}', which is {{}}, but is rebound to '{new}', which is "
                    f"{{}}{reason}",
                    found,
                    wanted,
                )

    entry.launch("rebind", [source, target], [entry.index(1)], body)
    copy_rows(entry, "rebind_copy", source, target, [0] * len(x.shape))


REBIND = register_op(
    OpDef(
        "rebind",
        "opaque",
        ("x",),
        _infer_rebind,
        parameters=(ParameterSpec("shape", tuple), ParameterSpec("message", str, "")),
        recipe=_rebind_recipe,
    )
)


def rebind(x: TensorValueLike, shape: Iterable[DimLike], message: str = "") -> TensorValue:
    """The same tensor with other names for its sizes, which is checked when the graph runs.

    Args:
        x: any element type and shape.
        shape: a size for each axis. A new symbol gets the size of its axis.
        message: added to the error of a failed check.

    Raises:
        GraphError: the numbers of axes differ, or two numbers do.
        GraphTypeError: ``x`` is no tensor, or ``shape`` no shape.
    """
    subject = "ops.rebind"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        target = as_shape(shape, f"{subject}: shape")
        _check_rebind(subject, value.shape, target)
        if not isinstance(message, str):
            raise GraphTypeError(f"{subject}: message must be a str, not {message!r}")
    if target == value.shape:
        return value
    for axis, size in enumerate(target):
        if isinstance(size, SymbolicDim) and size.name not in graph.symbols:
            define_symbol("ops.rebind", value, axis, size)
    return graph.apply(REBIND, [value], {"shape": target, "message": message})[0]


# -- contracts

promise_examples(
    reshape,
    ALL,
    lambda x, shape: x.reshape(shape),
    of_shape((6, 70), *({"shape": shape} for shape in ((70, 6), (420,), (2, -1, 5)))),
)
promise_examples(
    flatten,
    ALL,
    lambda x, start_dim, end_dim: x.reshape(*x.shape[:start_dim], -1, *x.shape[end_dim:][1:]),
    of_shape((3, 4, 5), {"start_dim": 0, "end_dim": 2}, {"start_dim": 0, "end_dim": 1}, {"start_dim": 1, "end_dim": 2}),
)
promise_examples(squeeze, ALL, lambda x, axis: np.squeeze(x, axis), of_shape((1, 5, 1), {"axis": 0}, {"axis": -1}))
promise_examples(unsqueeze, ALL, lambda x, axis: np.expand_dims(x, axis), of_shape((3, 5), {"axis": 1}, {"axis": -1}))
promise_examples(rebind, ALL, lambda x, shape: x, of_shape((3, 5), {"shape": (3, 5)}))
