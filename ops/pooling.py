"""max_pool2d and avg_pool2d on ``[batch, height, width, channels]``.

The taps of a window are taken row by row. The maximum propagates NaN; the average is the sum divided by the number of
taps, each rounded, in f32 for f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType as BlockType
from xdsl.dialects.builtin import f32

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dialects.tile.reduction import identity
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .contract import FLOATS, NUMBERS, Array, Example, promise_examples
from .convolution import CHANNELS, WINDOW, Pair, extent_of, pair_of, position_rule, windows
from .elementwise import Flags, wrong_dtype
from .promotion import TensorValueLike, as_tensor
from .reduction import folded_maximum
from .samples import anything, moderate


def max_pool2d(
    x: TensorValueLike,
    kernel_size: Any,
    stride: Any = 1,
    dilation: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
) -> TensorValue:
    """The largest element of each window; positions outside of ``x`` count as the least value.

    Args:
        x: numbers, ``[batch, height, width, channels]``.
        kernel_size: height and width of a window, as one int or two, like the following.
        stride: steps between windows.
        dilation: distances between the elements of a window.
        padding: positions on both sides, at most half of the window.
        ceil_mode: whether a last window may stand over the edge. Needs known sizes.

    Raises:
        GraphError: a number that is not legal, or ``x`` has not four axes.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    return _pool("max_pool2d", x, NUMBERS, (kernel_size, stride, dilation, padding), ceil_mode, {}, None)


def avg_pool2d(
    x: TensorValueLike,
    kernel_size: Any,
    stride: Any = 1,
    dilation: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_boundary: bool = True,
    *,
    fastmath: Flags = None,
) -> TensorValue:
    """The average of each window.

    Args:
        x: floats, ``[batch, height, width, channels]``.
        kernel_size, stride, dilation, padding, ceil_mode: as of `max_pool2d`.
        count_boundary: whether the padding counts as zeros, or not at all.

    Raises:
        GraphError: a number that is not legal, or ``x`` has not four axes.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    more = {"count_boundary": bool(count_boundary)}
    return _pool("avg_pool2d", x, FLOATS, (kernel_size, stride, dilation, padding), ceil_mode, more, fastmath)


def _pool(
    name: str,
    x: object,
    dtypes: tuple[DType, ...],
    window: tuple[Any, Any, Any, Any],
    ceil_mode: bool,
    more: Mapping[str, Any],
    fastmath: Flags,
) -> TensorValue:
    subject = f"ops.{name}"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if value.dtype not in dtypes:
            raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, dtypes)}")
        if value.rank != 4:
            raise GraphError(f"{subject}: x must be [batch, height, width, channels], not {shape_text(value.shape)}")
        kernel, stride, dilation = (
            pair_of(subject, what, given, 1)
            for what, given in zip(("kernel_size", "stride", "dilation"), window, strict=False)
        )
        padding = pair_of(subject, "padding", window[3], 0)
        size = tuple(
            _windows(subject, value, axis, kernel[axis], stride[axis], dilation[axis], padding[axis], ceil_mode)
            for axis in range(2)
        )
    parameters = {
        "kernel": kernel,
        "stride": stride,
        "dilation": dilation,
        "before": padding,
        "size": size,
        **more,
    }
    return graph.apply(POOLS[name], [value], parameters, fastmath)[0]


def _windows(
    subject: str, value: TensorValue, axis: int, kernel: int, stride: int, dilation: int, padding: int, ceil_mode: bool
) -> Dim:
    """How many windows stand along height (0) or width (1)."""
    size = value.shape[1 + axis]
    if 2 * padding > kernel:
        raise GraphError(f"{subject}: padding {padding} must be at most half of the window's {kernel}; pad x instead")
    if not ceil_mode:
        count = extent_of(size, Dim(kernel), stride, dilation, 2 * padding)
    elif isinstance(size, StaticDim):
        whole = int(size) + 2 * padding - dilation * (kernel - 1) - 1
        number = -(-whole // stride) + 1
        count = Dim(number - ((number - 1) * stride >= int(size) + padding))
    else:
        raise GraphError(f"{subject}: ceil_mode needs known sizes, but axis {1 + axis} of x has size '{size}'")
    if isinstance(count, StaticDim) and int(count) < 0:
        raise GraphError(
            f"{subject}: the window is larger than x, {shape_text(value.shape)}, along axis {1 + axis}; pad x"
        )
    return count


def _infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    return [TensorType(x.dtype, [x.shape[0], *parameters["size"], x.shape[3]], x.device)]


def _recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    (target,), dtype = results, call.operands[0].dtype
    average = "count_boundary" in call.parameters
    element = dtype.to_element_type()
    wide = f32 if dtype.is_float and dtype.bits < 32 else element
    kind = "maximum" if dtype.is_float else "maxs" if dtype.is_signed else "maxu"
    start = 0 if average else identity(kind, wide)
    kernel = call.parameters["kernel"]
    assert isinstance(kernel, tuple)
    rows, columns = kernel
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    position = position_rule(call)

    def body(k: KernelBuilder) -> None:
        x, write = k.arguments
        batch, row, column, chunk = k.program_ids

        def tap(r: Value, s: Value, total: Value, taps: Value) -> list[Value]:
            place = [position(k, 0, row, r), position(k, 1, column, s)]
            at = [batch, *place, chunk * CHANNELS]
            window = k.window(x, at, [1, 1, 1, CHANNELS], indexing="element", squeezed=[0, 1, 2])
            if not average:
                return [k.binary(kind, total, k.cast(k.load(window, other=start), wide)), taps]
            counted = _counts(k, call, x, place)
            return [k.binary("add", total, k.cast(k.load(window), wide)), taps + k.select(counted, k.index(1), 0)]

        def each_column(r: Value, total: Value, taps: Value) -> list[Value]:
            return k.for_loop(0, columns, [total, taps], lambda s, *inner: tap(r, s, *inner))

        first = [k.constant(start, BlockType(wide, [CHANNELS])), k.index(0)]
        total, taps = k.for_loop(0, rows, first, each_column)
        if average:
            total = k.binary("div", total, k.splat(k.cast(taps, wide), [CHANNELS]))
        place = [batch, row, column, chunk * CHANNELS]
        window = k.window(write, place, [1, 1, 1, CHANNELS], indexing="element", squeezed=[0, 1, 2])
        k.store(k.cast(total, element), window)

    sizes = [entry.dim(target, axis) for axis in range(4)]
    grid = [*sizes[:3], (sizes[3] + (CHANNELS - 1)) // CHANNELS]
    entry.launch("avg_pool2d" if average else "max_pool2d", [*operands, target], grid, body)


def _counts(k: KernelBuilder, call: OpCall, x: Value, place: Sequence[Value]) -> Value:
    """Whether a tap counts: it lies inside of the input, or of the padded input."""
    padding = call.parameters["before"] if call.parameters["count_boundary"] else (0, 0)
    assert isinstance(padding, tuple)
    result: Value | None = None
    for axis, at in enumerate(place):
        edge = padding[axis]
        assert isinstance(edge, int)
        inside = (at >= -edge) & (at < k.dim(x, 1 + axis) + edge)
        result = inside if result is None else result & inside
    assert result is not None
    return result


def _declare(name: str, *more: ParameterSpec) -> OpDef:
    parameters = (ParameterSpec("kernel", tuple), *WINDOW, ParameterSpec("size", tuple), *more)
    return register_op(OpDef(name, "opaque", ("x",), _infer, parameters=parameters, fastmath=True, recipe=_recipe))


POOLS = {
    "max_pool2d": _declare("max_pool2d"),
    "avg_pool2d": _declare("avg_pool2d", ParameterSpec("count_boundary", bool)),
}


# -- contracts


def _padded(x: Array, padding: Pair, value: Any) -> Array:
    return np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)), constant_values=value)


def _reference_max(x: Array, kernel_size: Pair, stride: Pair, dilation: Pair, padding: Pair) -> Array:
    """The padding holds an element of ``x`` that no window is the maximum of but by itself."""
    least = x.min() if x.dtype == object else -np.inf
    seen = windows(_padded(x, padding, least), kernel_size, stride, dilation)
    return folded_maximum(seen.reshape(*seen.shape[:-2], -1))[..., 0]


def _reference_average(
    x: Array, kernel_size: Pair, stride: Pair, dilation: Pair, padding: Pair, count_boundary: bool
) -> Array:
    taps = windows(_padded(np.ones_like(x), padding, 1.0 if count_boundary else 0.0), kernel_size, stride, dilation)
    seen = windows(_padded(x, padding, 0.0), kernel_size, stride, dilation)
    return np.asarray(seen.sum((-1, -2)) / taps.sum((-1, -2)))


def _average_tolerance(epsilon: float, x: Array, **parameters: Any) -> Array:
    rows, columns = parameters["kernel_size"]
    return np.asarray((rows * columns + 1) * epsilon / 2 * _reference_average(np.abs(x), **parameters))


_PLAIN = {"kernel_size": (2, 3), "stride": (1, 1), "dilation": (1, 1), "padding": (0, 0)}
_POOLINGS = (_PLAIN, {"kernel_size": (3, 2), "stride": (2, 1), "dilation": (1, 2), "padding": (1, 1)})


def _max_examples(dtype: DType) -> list[Example]:
    return [Example((anything(dtype, (2, 7, 6, 70)),), given) for given in _POOLINGS]


def _average_examples(dtype: DType) -> list[Example]:
    x = moderate(dtype, (2, 7, 6, 70))
    return [Example((x,), {**given, "count_boundary": counts}) for given in _POOLINGS for counts in (False, True)]


promise_examples(max_pool2d, NUMBERS, _reference_max, _max_examples)
promise_examples(
    avg_pool2d,
    FLOATS,
    _reference_average,
    _average_examples,
    tolerance=_average_tolerance,
    text="(taps + 1) * u * mean abs x",
)
