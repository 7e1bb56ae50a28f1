"""conv2d on ``[batch, height, width, channels]``.

An element of a convolution is one chain over rows, columns and channels of the filter in that order, from 0: fma, or
under ``fp_contract="off"`` a rounded product and a rounded sum. f16 and bf16 have it in f32, and one rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, f32
from xdsl.dialects.builtin import TensorType as BlockType

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .contract import FLOATS, Array, Example, promise_examples
from .elementwise import Flags, wrong_dtype
from .promotion import TensorValueLike, as_tensor, as_tensors
from .reshaping import elements
from .samples import moderate

CHANNELS = 64
"""Channels of the result that a program computes side by side."""

Pair = tuple[int, int]


def pair_of(subject: str, name: str, value: object, least: int) -> Pair:
    """An int, or one for height and one for width."""
    given = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(given) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in given):
        raise GraphError(f"{subject}: {name} must be one or two ints of at least {least}, not {value!r}")
    return given[0], given[1]


def extent_of(size: Dim, kernel: Dim, stride: int, dilation: int, padding: int) -> Dim:
    """How many positions the kernel has along an axis."""
    return (size + padding - (kernel - 1) * dilation - 1) // stride + 1


def _check_extent(subject: str, axis: str, extent: Dim, shapes: str) -> None:
    if isinstance(extent, StaticDim) and int(extent) < 0:
        raise GraphError(f"{subject}: {shapes}; along the {axis} the padded input is smaller than the kernel; pad more")


# -- conv2d


def conv2d(
    x: TensorValueLike,
    filter: TensorValueLike,
    stride: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    groups: int = 1,
    bias: TensorValueLike | None = None,
    *,
    fastmath: Flags = None,
) -> TensorValue:
    """The two-dimensional convolution, or more exactly correlation.

    Args:
        x: floats, ``[batch, height, width, channels]``.
        filter: ``[rows, columns, channels / groups, features]``.
        stride: steps along height and width.
        dilation: distances between the elements that a filter reads.
        padding: zeros ``(top, bottom, left, right)``.
        groups: parts of the channels and features that have nothing to do with each other.
        bias: ``[features]``, added at the end.

    Returns:
        ``[batch, height', width', features]``.

    Raises:
        GraphError: shapes or numbers that do not fit.
        GraphTypeError: operands that are no tensors of floats of one type.
    """
    subject = "ops.conv2d"
    graph = Graph.current(subject)
    with Located():
        value, kernel = as_tensors(graph, subject, ("x", "filter"), [x, filter])
        _check_conv(subject, value, kernel, groups)
        steps, gaps = pair_of(subject, "stride", stride, 1), pair_of(subject, "dilation", dilation, 1)
        if len(padding) != 4 or not all(isinstance(n, int) and n >= 0 for n in padding):
            raise GraphError(
                f"{subject}: padding must be four ints (top, bottom, left, right) of at least 0, not {padding!r}"
            )
        top, bottom, left, right = padding
        height = extent_of(value.shape[1], kernel.shape[0], steps[0], gaps[0], top + bottom)
        width = extent_of(value.shape[2], kernel.shape[1], steps[1], gaps[1], left + right)
        shapes = f"x {shape_text(value.shape)}, filter {shape_text(kernel.shape)}"
        _check_extent(subject, "height", height, shapes)
        _check_extent(subject, "width", width, shapes)
    parameters = {
        "stride": steps,
        "dilation": gaps,
        "before": (top, left),
        "groups": groups,
        "size": (height, width),
    }
    result = graph.apply(CONV2D, [value, kernel], parameters, fastmath)[0]
    return result if bias is None else result + as_tensor(graph, subject, "bias", bias)


def _check_conv(subject: str, value: TensorValue, kernel: TensorValue, groups: int) -> None:
    shapes = f"x has shape {shape_text(value.shape)} and filter {shape_text(kernel.shape)}"
    if not value.dtype.is_float:
        raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, FLOATS)}")
    if value.rank != 4 or kernel.rank != 4:
        raise GraphError(
            f"{subject}: {shapes}; they must be [batch, height, width, channels] and "
            "[rows, columns, channels / groups, features]"
        )
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise GraphError(f"{subject}: groups must be a positive int, not {groups!r}")
    if kernel.shape[2] * groups != value.shape[3]:
        raise GraphError(
            f"{subject}: {shapes}; '{value.shape[3]}' channels of x (axis 3) must be {groups} groups of "
            f"'{kernel.shape[2]}' (axis 2 of filter); rebind one of them if they are"
        )
    if kernel.shape[3] // groups * groups != kernel.shape[3]:
        raise GraphError(
            f"{subject}: {shapes}; '{kernel.shape[3]}' features are not provably a multiple of {groups} groups"
        )


def _infer_conv(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    x, kernel = operands
    return [TensorType(x.dtype, [x.shape[0], *parameters["size"], kernel.shape[3]], x.device)]


def _conv_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    (target,), groups = results, call.parameters["groups"]
    assert isinstance(groups, int)
    dtype = call.operands[0].dtype
    element, narrow = dtype.to_element_type(), dtype.bits < 32
    sum_element = f32 if narrow else element
    position = position_rule(call)

    def body(k: KernelBuilder) -> None:
        x, kernel, write = k.arguments
        batch, row, column, group, chunk = k.program_ids
        channels, features = k.dim(kernel, 2), k.dim(write, 3) // groups
        feature = group * features + chunk * CHANNELS

        def tap(r: Value, s: Value, c: Value, total: Value) -> list[Value]:
            place = [batch, position(k, 0, row, r), position(k, 1, column, s), group * channels + c]
            pixel = k.cast(k.read(x, *place), sum_element)
            weights = k.load(
                k.window(kernel, [r, s, c, feature], [1, 1, 1, CHANNELS], indexing="element", squeezed=[0, 1, 2])
            )
            return [k.multiply_add(k.splat(pixel, [CHANNELS]), k.cast(weights, sum_element), total)]

        def columns(r: Value, total: Value) -> list[Value]:
            return k.for_loop(
                0,
                k.dim(kernel, 1),
                [total],
                lambda s, inner: k.for_loop(0, channels, [inner], lambda c, acc: tap(r, s, c, acc)),
            )

        zero = k.constant(0, BlockType(sum_element, [CHANNELS]))
        (total,) = k.for_loop(0, k.dim(kernel, 0), [zero], columns)
        inside = k.iota([CHANNELS], IndexType()) < k.splat(features - chunk * CHANNELS, [CHANNELS])
        place = [batch, row, column, feature]
        window = k.window(write, place, [1, 1, 1, CHANNELS], indexing="element", squeezed=[0, 1, 2])
        k.store(k.cast(total, element), window, inside)

    sizes = [entry.dim(target, axis) for axis in range(4)]
    chunks = (sizes[3] // groups + (CHANNELS - 1)) // CHANNELS
    entry.launch("conv2d", [*operands, target], [*sizes[:3], entry.index(groups), chunks], body)


def _ints(call: OpCall, name: str) -> list[int]:
    """A parameter that is a tuple of ints."""
    given = call.parameters[name]
    assert isinstance(given, tuple)
    return [number for number in given if isinstance(number, int)]


def position_rule(call: OpCall) -> Callable[[KernelBuilder, int, Value, Value], Value]:
    """Where the tap of a kernel reads, along height (0) or width (1); outside of the input that is a zero."""
    stride, dilation, before = (_ints(call, name) for name in ("stride", "dilation", "before"))

    def position(k: KernelBuilder, axis: int, place: Value, tap: Value) -> Value:
        return k.binary("add", place * stride[axis], tap * dilation[axis]) - before[axis]

    return position


WINDOW = (ParameterSpec("stride", tuple), ParameterSpec("dilation", tuple), ParameterSpec("before", tuple))
CONV2D = register_op(
    OpDef(
        "conv2d",
        "opaque",
        ("x", "filter"),
        _infer_conv,
        parameters=(*WINDOW, ParameterSpec("groups", int), ParameterSpec("size", tuple)),
        fastmath=True,
        multiply_adds=lambda call: elements(call.results[0].shape) * elements(call.operands[1].shape[:3]),
        recipe=_conv_recipe,
    )
)


# -- contracts


def windows(x: Array, kernel: Pair, stride: Pair, dilation: Pair) -> Array:
    """What each position of a kernel reads: ``[batch, height', width', channels, rows, columns]``."""
    reach = [(n - 1) * gap + 1 for n, gap in zip(kernel, dilation, strict=True)]
    whole = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))
    return whole[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]


def _reference_conv(
    x: Array, weights: Array, *bias: Array, stride: Pair, dilation: Pair, padding: tuple[int, ...], groups: int
) -> Array:
    top, bottom, left, right = padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    seen = windows(padded, (weights.shape[0], weights.shape[1]), stride, dilation)
    parts = [
        np.einsum("bhwcrs,rscf->bhwf", part, filters)
        for part, filters in zip(np.split(seen, groups, 3), np.split(weights, groups, 3), strict=True)
    ]
    return np.concatenate(parts, 3) + (bias[0] if bias else 0)


def _conv_tolerance(epsilon: float, x: Array, weights: Array, *bias: Array, **parameters: Any) -> Array:
    steps = weights[..., 0].size + len(bias)
    return steps * epsilon / 2 * _reference_conv(np.abs(x), np.abs(weights), *map(np.abs, bias), **parameters)


def _conv_examples(dtype: DType) -> list[Example]:
    plain = {"stride": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0), "groups": 1}
    x, weights = moderate(dtype, (2, 7, 6, 4)), moderate(dtype, (3, 2, 4, 70))
    return [
        Example((x, weights), plain),
        Example((x, weights), plain | {"stride": (2, 3), "padding": (1, 0, 2, 1)}),
        Example((x, moderate(dtype, (2, 2, 2, 6))), plain | {"dilation": (2, 3), "groups": 2}),
        Example((x[:0], weights), plain),
    ]


promise_examples(
    conv2d, FLOATS, _reference_conv, _conv_examples, tolerance=_conv_tolerance, text="taps * u * conv2d of abs"
)
