"""softmax, logsoftmax, layer_norm, rms_norm: made of ops of the library, which fusion makes one kernel each.

All are stable: softmax subtracts the maximum first, layer_norm takes the variance of what is left of the mean. f16 and
bf16 are computed in f32 throughout and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.types import shape_text

from .arithmetic import div
from .axes import axis_of
from .contract import FLOATS, Array, Contract, Example, promise, promise_examples
from .elementary import exp, log, sqrt, supported
from .elementwise import wrong_dtype
from .promotion import TensorValueLike, as_tensor, cast_to
from .reduction import centered_variance, max, mean, sum, summation_steps, widened
from .reshaping import elements, reshape
from .samples import moderate

EXP_DTYPES = supported("exp", "log")


def _floats(subject: str, x: object) -> TensorValue:
    graph = Graph.current(subject)
    value = as_tensor(graph, subject, "x", x)
    if not value.dtype.is_float:
        raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, FLOATS)}")
    return value


def softmax(x: TensorValueLike, axis: int = -1) -> TensorValue:
    """``exp(x - max) / sum(exp(x - max))`` along ``axis``. A row with NaN, +inf, or nothing but -inf is NaN.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    with Located():
        value = _floats("ops.softmax", x)
        number = axis_of("ops.softmax", value, axis)
    wide = widened(value)
    powers = exp(wide - max(wide, axis=number))
    return cast_to(powers / sum(powers, number), value.dtype)


def logsoftmax(x: TensorValueLike, axis: int = -1) -> TensorValue:
    """``(x - max) - log(sum(exp(x - max)))`` along ``axis``. A row with NaN, +inf, or nothing but -inf is NaN.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    with Located():
        value = _floats("ops.logsoftmax", x)
        number = axis_of("ops.logsoftmax", value, axis)
    wide = widened(value)
    moved = wide - max(wide, axis=number)
    return cast_to(moved - log(sum(exp(moved), number)), value.dtype)


def layer_norm(x: TensorValueLike, gamma: TensorValueLike, beta: TensorValueLike, epsilon: float) -> TensorValue:
    """``(x - mean) * (1 / sqrt(var + epsilon)) * gamma + beta`` along the last axis.

    Args:
        x: floats, shape ``[..., n]``.
        gamma: ``[n]``.
        beta: ``[n]``.
        epsilon: keeps the root from 0.

    Raises:
        GraphError: a shape that does not fit, or ``x`` is a scalar.
        GraphTypeError: an operand that is no tensor of floats.
    """
    subject = "ops.layer_norm"
    with Located():
        value = _floats(subject, x)
        last = axis_of(subject, value, -1)
        scale, shift = (_row(subject, value, name, v) for name, v in (("gamma", gamma), ("beta", beta)))
    centered, variance = centered_variance(widened(value), last)
    normal = centered * div(1.0, sqrt(variance + epsilon))
    return cast_to(normal * scale + shift, value.dtype)


def rms_norm(
    x: TensorValueLike,
    weight: TensorValueLike,
    epsilon: float,
    weight_offset: float = 0.0,
    multiply_before_cast: bool = True,
) -> TensorValue:
    """``x * (1 / sqrt(mean(x^2) + epsilon)) * (weight + weight_offset)`` along the last axis.

    Args:
        x: floats, shape ``[..., n]``.
        weight: ``[n]``.
        epsilon: keeps the root from 0.
        weight_offset: added to the weight first (1 for Gemma).
        multiply_before_cast: whether f16 and bf16 are rounded after the product with the weight, else before and after.

    Raises:
        GraphError: a shape that does not fit, or ``x`` is a scalar.
        GraphTypeError: an operand that is no tensor of floats.
    """
    subject = "ops.rms_norm"
    with Located():
        value = _floats(subject, x)
        last = axis_of(subject, value, -1)
        scale = _row(subject, value, "weight", weight)
    wide = widened(value)
    normal = wide * div(1.0, sqrt(mean(wide * wide, last) + epsilon))
    factor = scale + weight_offset if weight_offset else scale
    if not multiply_before_cast:
        normal = cast_to(cast_to(normal, value.dtype), wide.dtype)
    return cast_to(normal * factor, value.dtype)


def group_norm(
    x: TensorValueLike, gamma: TensorValueLike, beta: TensorValueLike, num_groups: int, epsilon: float
) -> TensorValue:
    """`layer_norm` over groups of channels with all that lies behind them.

    Args:
        x: floats, ``[batch, channels, ...]``.
        gamma: ``[channels]``.
        beta: ``[channels]``.
        num_groups: a divisor of the channels.
        epsilon: keeps the root from 0.

    Raises:
        GraphError: a shape that does not fit.
        GraphTypeError: an operand that is no tensor of floats.
    """
    subject = "ops.group_norm"
    with Located():
        value = _floats(subject, x)
        if value.rank < 2:
            raise GraphError(f"{subject}: x must be [batch, channels, ...], not {shape_text(value.shape)}")
        if isinstance(num_groups, bool) or not isinstance(num_groups, int) or num_groups < 1:
            raise GraphError(f"{subject}: num_groups must be a positive int, not {num_groups!r}")
        channels = value.shape[1]
        if channels // num_groups * num_groups != channels:
            raise GraphError(
                f"{subject}: axis 1 of x, {shape_text(value.shape)}, has size '{channels}', which is not provably a "
                f"multiple of {num_groups} groups"
            )
        scale, shift = (_row(subject, value, name, v, 1) for name, v in (("gamma", gamma), ("beta", beta)))
    wide = widened(value)
    rows = reshape(wide, [value.shape[0], num_groups, channels // num_groups * elements(value.shape[2:])])
    centered, variance = centered_variance(rows, 2)
    normal = reshape(centered * div(1.0, sqrt(variance + epsilon)), value.shape)
    behind = [1] * (value.rank - 2)
    return cast_to(normal * reshape(scale, [channels, *behind]) + reshape(shift, [channels, *behind]), value.dtype)


def _row(subject: str, x: TensorValue, name: str, operand: object, axis: int = -1) -> TensorValue:
    """A parameter with one element for each of an axis, in the type that is computed in."""
    value = as_tensor(x.graph, subject, name, operand)
    if value.shape != (x.shape[axis],):
        which = "the last axis" if axis == -1 else f"axis {axis}"
        raise GraphError(
            f"{subject}: operand {name!r} must have shape {shape_text([x.shape[axis]])}, {which} of x, "
            f"{shape_text(x.shape)}, not {shape_text(value.shape)}"
        )
    if not value.dtype.is_float:
        raise GraphTypeError(f"{subject}: operand {name!r}: {wrong_dtype(value.dtype, FLOATS)}")
    return cast_to(value, widened(x).dtype)


# -- contracts, with u = epsilon / 2: of softmax, the sum of positive terms is off by as many u as it has steps at most,
# each term by 2 ulp of exp and half an ulp of its argument, which is as large as the spread of the row


def _spread(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ptp(np.where(np.isfinite(x), x, 0), axis=-1, keepdims=True))


def _reference_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _reference_logsoftmax(x: Array) -> Array:
    moved = x - x.max(-1, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(-1, keepdims=True)))


def _softmax_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray((summation_steps(x.shape[-1]) + 6 + _spread(x)) * epsilon * np.nan_to_num(_reference_softmax(x)))


def _logsoftmax_tolerance(epsilon: float, x: Array) -> Array:
    return np.asarray((summation_steps(x.shape[-1]) + 6 + 2 * _spread(x)) * epsilon)


promise(
    Contract(
        "softmax",
        softmax,
        1,
        EXP_DTYPES,
        None,
        _reference_softmax,
        tolerance=_softmax_tolerance,
        tolerance_text="2 (steps + 6 + spread of the row) * u * y",
        layout="rows",
    )
)
promise(
    Contract(
        "logsoftmax",
        logsoftmax,
        1,
        EXP_DTYPES,
        None,
        _reference_logsoftmax,
        tolerance=_logsoftmax_tolerance,
        tolerance_text="2 (steps + 6 + 2 * spread of the row) * u",
        layout="rows",
    )
)


# -- contracts of the norms. With r = 1 / sqrt(variance + epsilon), which is off by half of what the variance is off in
# relation to variance + epsilon, and by two roundings: x - mean is off by the mean's error and a rounding, and each of
# the products and sums behind it is a rounding more.


def _normal(x: Array, epsilon: float) -> Array:
    centered = x - x.mean(-1, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon))


def _normal_tolerance(u: float, x: Array, epsilon: float) -> Array:
    steps = summation_steps(x.shape[-1])
    centered = np.abs(x - x.mean(-1, keepdims=True))
    moved = (steps + 1) * u * np.abs(x).mean(-1, keepdims=True) + u * centered
    variance = (centered**2).mean(-1, keepdims=True)
    squares = (
        (steps + 2) * u * variance + 2 * (centered * moved).mean(-1, keepdims=True) + (moved**2).mean(-1, keepdims=True)
    )
    root = np.sqrt(variance + epsilon)
    relative = squares / (variance + epsilon) / 2 + 4 * u
    return np.asarray(moved / root + relative * centered / root)


def _affine_tolerance(u: float, normal: Array, off: Array, gamma: Array, beta: Array) -> Array:
    return np.asarray(np.abs(gamma) * off + u * (2 * np.abs(normal * gamma) + np.abs(beta)))


def _layer_tolerance(step: float, x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    off = _normal_tolerance(step / 2, x, epsilon)
    return _affine_tolerance(step / 2, _normal(x, epsilon), off, gamma, beta)


def _in_groups(function: Callable[[Array], Array], x: Array, num_groups: int) -> Array:
    return function(x.reshape(x.shape[0], num_groups, -1)).reshape(x.shape)


def _of_channels(x: Array, row: Array) -> Array:
    return row.reshape(-1, *[1] * (x.ndim - 2))


def _reference_group(x: Array, gamma: Array, beta: Array, num_groups: int, epsilon: float) -> Array:
    normal = _in_groups(lambda rows: _normal(rows, epsilon), x, num_groups)
    return np.asarray(normal * _of_channels(x, gamma) + _of_channels(x, beta))


def _group_tolerance(step: float, x: Array, gamma: Array, beta: Array, num_groups: int, epsilon: float) -> Array:
    normal = _in_groups(lambda rows: _normal(rows, epsilon), x, num_groups)
    off = _in_groups(lambda rows: _normal_tolerance(step / 2, rows, epsilon), x, num_groups)
    return _affine_tolerance(step / 2, normal, off, _of_channels(x, gamma), _of_channels(x, beta))


def _reference_rms(x: Array, weight: Array, epsilon: float, weight_offset: float = 0.0) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * (weight + weight_offset))


def _rms_tolerance(step: float, x: Array, weight: Array, epsilon: float, weight_offset: float = 0.0) -> Array:
    """The sum of squares has no cancellation, the root halves its error; four roundings, and that of the weight."""
    size = np.abs(_reference_rms(x, np.abs(weight), epsilon, abs(weight_offset)))
    return np.asarray((summation_steps(x.shape[-1]) / 2 + 6) * step / 2 * size)


def _row_examples(shape: tuple[int, ...], rows: int, *parameters: Any) -> Callable[[DType], list[Example]]:
    """Rows of some sizes with ``rows`` operands of one element for each of the last axis."""

    def examples(dtype: DType) -> list[Example]:
        return [
            Example((moderate(dtype, (*shape, n)) + dtype.to_numpy().type(2), *_parameters(dtype, n, rows)), given)
            for n in (1, 7, 64, 5000)
            for given in parameters
        ]

    return examples


def _parameters(dtype: DType, size: int, count: int) -> list[Array]:
    return [moderate(dtype, (size,), seed + 1) for seed in range(count)]


def _group_examples(dtype: DType) -> list[Example]:
    cases = (((2, 6, 5, 7), 3), ((2, 4), 1), ((1, 64, 80), 32))
    return [
        Example((moderate(dtype, shape), *_parameters(dtype, shape[1], 2)), {"num_groups": groups, "epsilon": 1e-5})
        for shape, groups in cases
    ]


promise_examples(
    layer_norm,
    FLOATS,
    lambda x, gamma, beta, epsilon: _normal(x, epsilon) * gamma + beta,
    _row_examples((3,), 2, {"epsilon": 1e-5}, {"epsilon": 1.0}),
    tolerance=_layer_tolerance,
    text="that of x - mean and of var, over sqrt(var + epsilon)",
)
promise_examples(
    group_norm, FLOATS, _reference_group, _group_examples, tolerance=_group_tolerance, text="as of layer_norm"
)
promise_examples(
    rms_norm,
    FLOATS,
    _reference_rms,
    _row_examples((3,), 1, {"epsilon": 1e-6}, {"epsilon": 0.5, "weight_offset": 1.0}),
    tolerance=_rms_tolerance,
    text="(steps/2 + 6) * u * abs y",
)
