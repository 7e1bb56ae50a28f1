"""From what a caller hands over to a C-contiguous host array of a known element type, without a copy where possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphTypeError

from .dlpack import array_from_dlpack
from .memory import Array


def from_object(value: Any, subject: str) -> Array:
    """The numpy view of an array-like: a numpy array or scalar, or anything with DLPack or ``__array__``.

    Lists and Python numbers are refused: their element type would be a guess.

    Raises:
        GraphTypeError: not an array, or one that this process cannot read; the message starts with ``subject``.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise GraphTypeError(f"{subject} is a masked array and masks have no place to go; pass x.filled(value)")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return array_from_dlpack(value, subject)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    raise GraphTypeError(
        f"{subject} must be a Buffer or an array, not {type(value).__name__}; make one with np.asarray(x, dtype=...)"
    )


def element_type(array: Array, subject: str) -> DType:
    """The element type, whatever the byte order.

    Raises:
        GraphTypeError: none of ours; the message starts with ``subject``.
    """
    dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    try:
        return DType.from_numpy(dtype)
    except GraphTypeError:
        known = ", ".join(d.value for d in DType)
        raise GraphTypeError(
            f"{subject} has dtype {array.dtype}, which is not an element type; convert it to one of {known}"
        ) from None


def is_direct(array: Array) -> bool:
    """Whether native code can read the array as it lies: contiguous, aligned and in native byte order."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned and array.dtype.isnative


def contiguous(array: Array) -> Array:
    """The array itself where `is_direct`, else a copy that is; always a plain ``np.ndarray``."""
    native = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    # not np.ascontiguousarray, which gives a 0-d array one axis
    return np.require(np.asarray(array, dtype=native, order="C"), requirements="A")


def shape_text(shape: tuple[object, ...]) -> str:
    """A shape for messages: ``[n, 4]``."""
    return f"[{', '.join(map(str, shape))}]"
