"""Reductions along one axis, which stays with size 1: sum, prod, max, min, mean, var, stdev.

Floats are reduced in order R (`halfulp.compiler.dialects.tile.compute.ReduceOp`): fixed by the op, so the bits do not
depend on threads, vectors or what is fused. f16 and bf16 are reduced in f32 and rounded once. Integers wrap. Along an
axis of size 0 the sum is 0, the product 1, the maximum -inf (the smallest integer), the mean NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op

from .arithmetic import div, sub
from .axes import axis_of
from .comparison import larger, maximum, minimum, smaller
from .contract import ALL, EXACT, FLOATS, NUMBERS, Array, Contract, promise
from .elementary import sqrt
from .elementwise import Flags, wrong_dtype
from .promotion import TensorValueLike, as_tensor, cast_to
from .sizes import size_of


def _declare(name: str, dtypes: tuple[DType, ...], reduction: Callable[[OpCall], str]) -> OpDef:
    def infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
        (x,) = operands
        axis = parameters["axis"]
        if x.dtype not in dtypes:
            raise GraphTypeError(wrong_dtype(x.dtype, dtypes))
        if not 0 <= axis < x.rank:
            raise GraphError(f"axis {axis} does not exist; it must be from 0 to {x.rank - 1}")
        return [TensorType(x.dtype, [1 if i == axis else size for i, size in enumerate(x.shape)], x.device)]

    return register_op(
        OpDef(
            name,
            "reduce",
            ("x",),
            infer,
            parameters=(ParameterSpec("axis", int),),
            fastmath=True,
            reduction=reduction,
        )
    )


def _extreme(float_kind: str, integer_kind: str, bool_kind: str) -> Callable[[OpCall], str]:
    def reduction(call: OpCall) -> str:
        return {
            "float": float_kind,
            "signed": f"{integer_kind}s",
            "unsigned": f"{integer_kind}u",
            "bool": bool_kind,
        }[call.operands[0].dtype.kind]

    return reduction


SUM = _declare("sum", NUMBERS, lambda call: "add")
PROD = _declare("prod", NUMBERS, lambda call: "mul")
MAX = _declare("max", ALL, _extreme("maximum", "max", "or"))
MIN = _declare("min", ALL, _extreme("minimum", "min", "and"))


def _reduce(op: OpDef, x: object, axis: object, fastmath: Flags) -> TensorValue:
    """Build the op, in f32 for f16 and bf16."""
    subject = f"ops.{op.name}"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        number = axis_of(subject, value, axis)
        wide = widened(value)
    return cast_to(graph.apply(op, [wide], {"axis": number}, fastmath)[0], value.dtype)


def widened(value: TensorValue) -> TensorValue:
    """f16 and bf16 as f32; anything else as it is."""
    return cast_to(value, DType.float32) if value.dtype.is_float and value.dtype.bits < 32 else value


def sum(x: TensorValueLike, axis: int = -1, *, fastmath: Flags = None) -> TensorValue:
    """The sum along ``axis``. Error at most ``steps * u * sum |x|``, steps = 4096/64 + 6 + n/4096 on the last axis.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    return _reduce(SUM, x, axis, fastmath)


def prod(x: TensorValueLike, axis: int = -1, *, fastmath: Flags = None) -> TensorValue:
    """The product along ``axis``, each of n - 1 products rounded.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    return _reduce(PROD, x, axis, fastmath)


def max(
    x: TensorValueLike, y: TensorValueLike | None = None, *, axis: int | None = None, fastmath: Flags = None
) -> TensorValue:
    """The largest element along ``axis`` (the last one if nothing is said), or with ``y`` the larger of two elements.

    NaN if an element is NaN; -0.0 is below 0.0.

    Raises:
        GraphError: ``x`` has no such axis, or both ``y`` and ``axis`` are given.
        GraphTypeError: ``x`` is no tensor.
    """
    if y is None:
        return _reduce(MAX, x, -1 if axis is None else axis, fastmath)
    _only_one("ops.max", axis)
    return maximum(x, y, fastmath=fastmath)


def min(
    x: TensorValueLike, y: TensorValueLike | None = None, *, axis: int | None = None, fastmath: Flags = None
) -> TensorValue:
    """The smallest element along ``axis`` (the last one if nothing is said), or with ``y`` the smaller of two elements.

    NaN if an element is NaN; -0.0 is below 0.0.

    Raises:
        GraphError: ``x`` has no such axis, or both ``y`` and ``axis`` are given.
        GraphTypeError: ``x`` is no tensor.
    """
    if y is None:
        return _reduce(MIN, x, -1 if axis is None else axis, fastmath)
    _only_one("ops.min", axis)
    return minimum(x, y, fastmath=fastmath)


def _only_one(subject: str, axis: int | None) -> None:
    if axis is not None:
        with Located():
            raise GraphError(
                f"{subject}: takes either a second operand or axis, not both; reduce first, then compare the results"
            )


def mean(x: TensorValueLike, axis: int = -1, *, fastmath: Flags = None) -> TensorValue:
    """The sum along ``axis`` divided by its size: the quotient is correctly rounded, a product with 1/n would not be.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    value, number = _float_operand("ops.mean", x, axis)
    return cast_to(_mean(widened(value), number, fastmath), value.dtype)


def _mean(value: TensorValue, axis: int, fastmath: Flags) -> TensorValue:
    return div(sum(value, axis, fastmath=fastmath), size_of(value, axis, value.dtype), fastmath=fastmath)


def var(x: TensorValueLike, axis: int = -1, *, correction: int = 0, fastmath: Flags = None) -> TensorValue:
    """The variance along ``axis``: the mean of ``(x - mean(x))^2``, from two passes.

    Args:
        x: floats.
        axis: the axis, which stays with size 1.
        correction: what is taken off the size before dividing: 1 for the unbiased estimate.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    value, number = _float_operand("ops.var", x, axis)
    return cast_to(centered_variance(widened(value), number, correction, fastmath)[1], value.dtype)


def stdev(x: TensorValueLike, axis: int = -1, *, correction: int = 0, fastmath: Flags = None) -> TensorValue:
    """The square root of the variance along ``axis``; arguments and errors as of `var`."""
    value, number = _float_operand("ops.stdev", x, axis)
    variance = centered_variance(widened(value), number, correction, fastmath)[1]
    return cast_to(sqrt(variance, fastmath=fastmath), value.dtype)


def centered_variance(
    value: TensorValue, axis: int, correction: int = 0, fastmath: Flags = None
) -> tuple[TensorValue, TensorValue]:
    """``x - mean(x)`` and the variance along ``axis``, in the element type of ``value``."""
    centered = sub(value, _mean(value, axis, fastmath), fastmath=fastmath)
    count = size_of(value, axis, value.dtype, less=correction)
    return centered, div(sum(centered * centered, axis, fastmath=fastmath), count, fastmath=fastmath)


def _float_operand(subject: str, x: object, axis: object) -> tuple[TensorValue, int]:
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if not value.dtype.is_float:
            raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, FLOATS)}")
        return value, axis_of(subject, value, axis)


# -- contracts


def summation_steps(n: int) -> int:
    """Roundings on the way of one element of order R on 64 lanes, at most."""
    return 4096 // 64 + 6 + n // 4096 + 1


def _sum_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray(summation_steps(x.shape[-1]) * epsilon / 2 * np.abs(x).sum(-1, keepdims=True))


def _prod_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray((x.shape[-1] + 1) * epsilon / 2 * np.abs(x.prod(-1, keepdims=True)))


def _mean_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray((summation_steps(x.shape[-1]) + 1) * epsilon / 2 * np.abs(x).mean(-1, keepdims=True))


def _var_tolerance(epsilon: float, x: Array) -> Array:
    """The mean is off by ``steps u mean|x|``; its square is all that enters, and the sum of squares is a sum."""
    size = np.abs(x).max(-1, keepdims=True, initial=0.0)
    return np.asarray(4 * (summation_steps(x.shape[-1]) + 4) * epsilon * size**2)


def _stdev_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray(np.sqrt(_var_tolerance(epsilon, x)))


def _along_last(function: Callable[..., Any]) -> Callable[[Array], Array]:
    def reference(x: Array) -> Array:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is NaN, as promised
            return np.asarray(function(x, axis=-1, keepdims=True))

    return reference


def _folded(pairwise: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A reduction of rows made of that of two columns."""

    def reference(x: Array, axis: int, keepdims: bool) -> Array:
        return reduce(pairwise, np.split(x, x.shape[axis], axis))

    return reference


def _promise_rows(
    function: Callable[..., Any], dtypes: tuple[DType, ...], reference: Callable[..., Any], tolerance: Any, text: str
) -> None:
    promise(
        Contract(
            function.__name__,
            function,
            1,
            dtypes,
            None if tolerance else EXACT,
            _along_last(reference),
            tolerance=tolerance,
            tolerance_text=text,
            layout="rows",
        )
    )


_promise_rows(sum, NUMBERS, np.sum, _sum_tolerance, "steps * u * sum abs x")
_promise_rows(prod, NUMBERS, np.prod, _prod_tolerance, "n * u * abs y")
_promise_rows(mean, FLOATS, np.mean, _mean_tolerance, "(steps + 1) * u * mean abs x")
_promise_rows(var, FLOATS, np.var, _var_tolerance, "8 * (steps + 4) * u * (max abs x)^2")
_promise_rows(stdev, FLOATS, np.std, _stdev_tolerance, "the root of what var may be off")


def folded_maximum(x: Array) -> Array:
    """The maximum of the last axis, which stays: NaN wins, -0.0 is below 0.0."""
    return _folded(larger)(x, -1, True)


_promise_rows(max, ALL, _folded(larger), None, "")
_promise_rows(min, ALL, _folded(smaller), None, "")
