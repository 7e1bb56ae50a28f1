"""resize, resize_nearest, resize_linear: other sizes for an image or a signal, axis by axis.

The positions are computed while the graph is built, in f64, so the sizes of the axes that change must be known. The
linear form is ``a (1 - t) + b t`` in the element type (f32 for f16 and bf16), t rounded to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, IntEnum
from typing import Any

import numpy as np

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import DimLike, StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.types import as_shape, shape_text

from .contract import ALL, FLOATS, Array, Example, promise_examples
from .elementwise import wrong_dtype
from .indexing import gather
from .promotion import TensorValueLike, as_tensor, cast_to
from .reduction import widened
from .samples import anything, moderate


class InterpolationMode(Enum):
    """How `resize` finds the elements between."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


class CoordinateTransform(IntEnum):
    """Where element i of the result lies in the operand; n and m are the sizes of the operand and the result."""

    HALF_PIXEL = 0
    """``(i + 1/2) n / m - 1/2``."""
    ALIGN_CORNERS = 1
    """``i (n - 1) / (m - 1)``."""
    ASYMMETRIC = 2
    """``i n / m``."""


def resize(
    x: TensorValueLike, shape: Iterable[DimLike], interpolation: InterpolationMode = InterpolationMode.BILINEAR
) -> TensorValue:
    """``x`` with the sizes in ``shape``, by `resize_nearest` or `resize_linear`.

    Raises:
        GraphError: sizes that are not known, or not one for each axis.
        GraphTypeError: ``x`` is no tensor of floats, or another kind of interpolation.
    """
    with Located():
        if not isinstance(interpolation, InterpolationMode):
            raise GraphTypeError(f"ops.resize: interpolation must be an ops.InterpolationMode, not {interpolation!r}")
    return resize_nearest(x, shape) if interpolation is InterpolationMode.NEAREST else resize_linear(x, shape)


def resize_nearest(
    x: TensorValueLike, size: Iterable[DimLike], coordinate_transform_mode: int = CoordinateTransform.HALF_PIXEL
) -> TensorValue:
    """The nearest element for each position; of two equally near the one in front.

    Args:
        x: any element type and shape.
        size: a size for each axis.
        coordinate_transform_mode: a `CoordinateTransform`.

    Raises:
        GraphError: sizes that are not known, or not one for each axis, or another mode.
        GraphTypeError: ``x`` is no tensor.
    """
    subject = "ops.resize_nearest"
    with Located():
        value, changed = _changed(subject, x, size)
        mode = _mode(subject, coordinate_transform_mode)
    for axis, old, new in changed:
        value = gather(value, _constant(value, np.clip(np.ceil(_positions(old, new, mode) - 0.5), 0, old - 1)), axis)
    return value


def resize_linear(
    x: TensorValueLike, size: Iterable[DimLike], coordinate_transform_mode: int = CoordinateTransform.HALF_PIXEL
) -> TensorValue:
    """Between the two nearest elements along each axis, in proportion; the edges continue outside.

    Args:
        x: floats of any shape.
        size: a size for each axis.
        coordinate_transform_mode: a `CoordinateTransform`.

    Raises:
        GraphError: sizes that are not known, or not one for each axis, or another mode.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    subject = "ops.resize_linear"
    with Located():
        value, changed = _changed(subject, x, size)
        mode = _mode(subject, coordinate_transform_mode)
        if not value.dtype.is_float:
            raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, FLOATS)}")
    dtype, value = value.dtype, widened(value)
    for axis, old, new in changed:
        at = np.clip(_positions(old, new, mode), 0, old - 1)
        front = np.floor(at)
        weight = (at - front).reshape([-1 if i == axis else 1 for i in range(value.rank)])
        low = gather(value, _constant(value, front), axis)
        high = gather(value, _constant(value, np.minimum(front + 1, old - 1)), axis)
        value = low * (1 - weight) + high * weight
    return cast_to(value, dtype)


def _changed(subject: str, x: object, size: Iterable[DimLike]) -> tuple[TensorValue, list[tuple[int, int, int]]]:
    """The tensor, and for each axis that changes its number and both sizes."""
    value = as_tensor(Graph.current(subject), subject, "x", x)
    wanted = as_shape(size, f"{subject}: size")
    if len(wanted) != value.rank:
        raise GraphError(
            f"{subject}: size must have a number for each of the {value.rank} axes of x, {shape_text(value.shape)}, "
            f"not {len(wanted)}"
        )
    changed = []
    for axis, (old, new) in enumerate(zip(value.shape, wanted, strict=True)):
        if old == new:
            continue
        if not isinstance(old, StaticDim) or not isinstance(new, StaticDim):
            raise GraphError(
                f"{subject}: axis {axis} goes from size '{old}' to '{new}', but both must be numbers; rebind x"
            )
        if int(old) == 0:
            raise GraphError(f"{subject}: axis {axis} of x has size 0, so there is nothing to interpolate")
        changed.append((axis, int(old), int(new)))
    return value, changed


def _mode(subject: str, mode: int) -> CoordinateTransform:
    if mode not in tuple(CoordinateTransform):
        raise GraphError(f"{subject}: coordinate_transform_mode must be 0, 1 or 2, not {mode!r}")
    return CoordinateTransform(mode)


def _positions(old: int, new: int, mode: CoordinateTransform) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    index = np.arange(new, dtype=np.float64)
    if mode is CoordinateTransform.ALIGN_CORNERS:
        return index * (old - 1) / max(new - 1, 1)
    if mode is CoordinateTransform.ASYMMETRIC:
        return index * old / new
    return (index + 0.5) * old / new - 0.5


def _constant(value: TensorValue, numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> TensorValue:
    positions = numbers.astype(np.int64)
    return value.graph.constant(positions.tobytes(), TensorType(DType.int64, [Dim(len(positions))], value.device))


# -- contracts


def _reference_nearest(
    x: Array, size: tuple[int, ...], coordinate_transform_mode: CoordinateTransform = CoordinateTransform.HALF_PIXEL
) -> Array:
    for axis, (old, new) in enumerate(zip(x.shape, size, strict=True)):
        at = _positions(old, new, coordinate_transform_mode)
        x = np.take(x, [min(max(math.ceil(p - 0.5), 0), old - 1) for p in at], axis)
    return x


def _reference_linear(
    x: Array, size: tuple[int, ...], coordinate_transform_mode: CoordinateTransform = CoordinateTransform.HALF_PIXEL
) -> Array:
    for axis, (old, new) in enumerate(zip(x.shape, size, strict=True)):
        lines = np.moveaxis(x, axis, -1)
        at = np.clip(_positions(old, new, coordinate_transform_mode), 0, old - 1)
        low = np.minimum(np.floor(at).astype(int), max(old - 2, 0))
        weight = (at - low).astype(x.dtype)
        moved = lines[..., low] + weight * (lines[..., np.minimum(low + 1, old - 1)] - lines[..., low])
        x = np.moveaxis(moved, -1, axis)
    return x


def _linear_tolerance(epsilon: float, x: Array, size: tuple[int, ...], **parameters: Any) -> Array:
    """For each axis: the weight, 1 less the weight, two products, a sum, of elements no larger than the largest."""
    changed = sum(old != new for old, new in zip(x.shape, size, strict=True))
    return np.asarray(5 * changed * epsilon / 2 * np.abs(x).max(initial=0.0))


def _resize_examples(numbers: Callable[[DType, Sequence[int]], Array]) -> Callable[[DType], list[Example]]:
    def examples(dtype: DType) -> list[Example]:
        return [
            Example((numbers(dtype, (2, 5, 7)),), {"size": size, "coordinate_transform_mode": mode})
            for size in ((2, 5, 3), (1, 11, 20))
            for mode in CoordinateTransform
        ]

    return examples


def _reference_resize(x: Array, shape: tuple[int, ...], interpolation: InterpolationMode) -> Array:
    nearest = interpolation is InterpolationMode.NEAREST
    return _reference_nearest(x, shape) if nearest else _reference_linear(x, shape)


def _either_examples(dtype: DType) -> list[Example]:
    return [
        Example((moderate(dtype, (2, 5, 7)),), {"shape": (3, 5, 11), "interpolation": mode})
        for mode in InterpolationMode
    ]


promise_examples(resize_nearest, ALL, _reference_nearest, _resize_examples(anything))
promise_examples(
    resize_linear,
    FLOATS,
    _reference_linear,
    _resize_examples(moderate),
    tolerance=_linear_tolerance,
    text="5 * u * max abs x for each axis that changes",
)
promise_examples(
    resize,
    FLOATS,
    _reference_resize,
    _either_examples,
    tolerance=lambda epsilon, x, shape, interpolation: _linear_tolerance(epsilon, x, shape),
    text="as of resize_nearest or resize_linear",
)
