"""A tensor as text, under the styles COMPACT and FULL of `halfulp.runtime.PrintStyle`.

COMPACT::

    tensor([[1.0000, 2.5000, -0.0000],
    [3.0000e-07, inf, 1.0000e+20]], dtype=f32, shape=[2, 3])

FULL::

    tensor<2x3xf32> [1.000000e+00, 2.500000e+00, ...]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType

from .memory import Array

SHOWN_WHOLE = 6
"""An axis of more elements is shown by its first and last three."""
AT_EACH_END = 3

SMALLEST_FIXED, LARGEST_FIXED = 1e-4, 1e8
"""From the first up to the second, ``%.4f`` shows a number well; the same limits as in numpy and torch."""

MOST_DIGITS = 766
"""After the point in scientific notation: the longest float64, a subnormal, has 767 digits that are not 0."""

PIECE = 1 << 14
"""Elements that are made text at a time: a large tensor has much more text than memory."""

_OMITTED = "..."


def compact_text(array: Array, dtype: DType) -> str:
    """The corners of a tensor, with its type and shape. Floats have four digits after the point.

    A number too small or too large for that stands in scientific notation. As in MAX, a vector is shown as a matrix of
    one row; the rows of a matrix stand on lines of their own, and so do matrices.
    """
    corners = array[np.ix_(*map(_shown_indices, array.shape))] if array.ndim else array
    shape = ", ".join(map(str, array.shape))
    if array.ndim == 0:
        elements = _formatter(dtype, 4, _fixed_or_scientific)(array.item())
    else:
        elements = _nested(corners, array.shape, _formatter(dtype, 4, _fixed_or_scientific))
        if array.ndim == 1:
            elements = f"[{elements}]"
    return f"tensor({elements}, dtype={dtype.ir_name}, shape=[{shape}])"


def full_text(array: Array, dtype: DType, precision: int) -> str:
    """All elements in row-major order; floats in scientific notation with ``precision`` digits after the point."""
    return "".join(full_text_pieces(array, dtype, precision))


def full_text_pieces(array: Array, dtype: DType, precision: int) -> Iterator[str]:
    """`full_text` in pieces: first what comes before the elements, then `PIECE` elements at a time, then the end."""
    extents = "".join(f"{size}x" for size in array.shape)
    form = _formatter(dtype, precision, _scientific)
    yield f"tensor<{extents}{dtype.ir_name}> ["
    flat = array.reshape(-1)
    for start in range(0, flat.size, PIECE):
        elements = ", ".join(map(form, _plain(flat[start : start + PIECE]).tolist()))
        yield f", {elements}" if start else elements
    yield "]"


def _shown_indices(size: int) -> list[int]:
    if size <= SHOWN_WHOLE:
        return list(range(size))
    return [*range(AT_EACH_END), *range(size - AT_EACH_END, size)]


def _nested(corners: Array, shape: tuple[int, ...], form: Callable[[Any], str]) -> str:
    """The brackets of one axis and of those inside it."""
    if corners.ndim == 1:
        parts, separator = [form(element) for element in _plain(corners).tolist()], ", "
    else:
        parts, separator = [_nested(part, shape[1:], form) for part in corners], ",\n"
    if shape[0] > SHOWN_WHOLE:
        parts.insert(AT_EACH_END, _OMITTED)
    return f"[{separator.join(parts)}]"


def _plain(array: Array) -> Array:
    """Elements that ``tolist`` makes Python's own; f16 and bf16 are exact in float64."""
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _formatter(dtype: DType, digits: int, form: Callable[[float, int], str]) -> Callable[[Any], str]:
    return (lambda element: form(float(element), digits)) if dtype.is_float else str


def _fixed_or_scientific(number: float, digits: int) -> str:
    size = abs(number)
    if size == 0 or SMALLEST_FIXED <= size < LARGEST_FIXED or size != size:
        return f"{number:.{digits}f}"
    return _scientific(number, digits)


def _scientific(number: float, digits: int) -> str:
    return f"{number:.{digits}e}"
