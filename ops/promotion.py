"""Which element type an op computes in, and how Python numbers and arrays become operands.

Two tensors: the result has the higher kind (bool < unsigned < signed < float) and must be wide enough for both, so it
is always the type of one of them. ``i8 + i32`` is i32, ``i32 + f32`` is f32 (integers round to nearest even as in a
cast), ``i8 + u8``, ``i32 + f16`` and ``f16 + bf16`` are errors: say with a cast what is meant.

A number, a size or an array beside a tensor takes the tensor's type. Integers must be held exactly; floats round to the
nearest number of the type, but stand beside floats only.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from halfulp.compiler import (
    BufferValue,
    DeviceRef,
    Dim,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    TensorType,
    TensorValue,
    Weight,
)

TensorValueLike: TypeAlias = "TensorValue | Weight | Dim | int | float | bool | npt.NDArray[Any] | np.generic"
"""What ops take as operands."""

_KIND_ORDER = ("bool", "unsigned", "signed", "float")
_SIGNIFICAND_BITS = {DType.bfloat16: 8, DType.float16: 11, DType.float32: 24, DType.float64: 53}


def promoted_dtype(first: DType, second: DType) -> DType | None:
    """The type of one of them that holds both, or None where the user must say what is meant."""
    if first is second:
        return first
    low, high = sorted((first, second), key=lambda dtype: _KIND_ORDER.index(dtype.kind))
    if low.kind == high.kind:
        if low.bits == high.bits:
            return None  # f16 and bf16
        return low if low.bits > high.bits else high
    if high.kind == "signed" and low.kind == "unsigned":
        return high if high.bits > low.bits else None
    return high if high.bits >= low.bits else None


def as_tensors(graph: Graph, subject: str, names: Sequence[str], values: Sequence[object]) -> list[TensorValue]:
    """Operands as tensors of one element type: numbers and arrays typed by the tensors, casts where types differ.

    Raises:
        GraphTypeError: no operand is a tensor, an operand is of no use, or the types do not promote.
        GraphError: a number does not fit.
    """
    tensors = {i: _tensor(graph, subject, names[i], v) for i, v in enumerate(values) if is_tensor(v)}
    if not tensors:
        listed = " and ".join(repr(value) for value in values)
        raise GraphTypeError(
            f"{subject}: one operand at least must be a TensorValue, not {listed}; make one with ops.constant"
        )
    dtype, place = _common_dtype(subject, names, tensors)

    def converted(index: int, value: object) -> TensorValue:
        if index in tensors:
            return cast_to(tensors[index], dtype)
        return as_constant(graph, subject, names[index], value, dtype, place)

    return [converted(index, value) for index, value in enumerate(values)]


def as_constant(
    graph: Graph, subject: str, name: str, value: object, dtype: DType, place: tuple[str, DeviceRef]
) -> TensorValue:
    """A number, a size or an array as a tensor of element type ``dtype``; the rest as for `literal`."""
    if isinstance(value, Dim) and value.symbols:
        from .sizes import dim_value  # which is made of ops, and so needs this module

        return dim_value(graph, value, dtype, place[1])
    return literal(graph, subject, name, int(value) if isinstance(value, Dim) else value, dtype, place)


def as_tensor(graph: Graph, subject: str, name: str, value: object) -> TensorValue:
    """The operand of an op that has no other one to take its element type from.

    An array has a type of its own, and becomes a constant. A Python number has none, and is refused.

    Raises:
        GraphTypeError: it is neither a tensor nor an array, or numpy's element type is none of ours.
    """
    if is_tensor(value):
        return _tensor(graph, subject, name, value)
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        dtype = _array_dtype(subject, name, array)
        return graph.constant(array.tobytes(), TensorType(dtype, np.shape(value)))
    remedy = "make it one with ops.constant" if _is_literal(value) else "pass a tensor of the graph"
    remedy = "write np.array(...) around it" if isinstance(value, list | tuple) else remedy
    remedy = "load it with ops.buffer_load" if isinstance(value, BufferValue) else remedy
    raise GraphTypeError(f"{subject}: operand {name!r} must be a TensorValue, not {value!r}; {remedy}")


def cast_to(value: TensorValue, dtype: DType) -> TensorValue:
    """``value`` with element type ``dtype``; itself if it has that already."""
    if value.dtype is dtype:
        return value
    from .casting import CAST  # which declares an op, and so needs this module

    return value.graph.apply(CAST, [value], {"dtype": dtype})[0]


def literal(
    graph: Graph, subject: str, name: str, value: object, dtype: DType, place: tuple[str, DeviceRef]
) -> TensorValue:
    """A number or an array as a constant of element type ``dtype``.

    ``place`` is the operand that decided on the type, for messages, and the device that the constant goes to.

    Raises:
        GraphTypeError: it is neither, or a float where ``dtype`` is no float.
        GraphError: the type cannot hold it.
    """
    operand, device = place
    array = _checked_array(subject, name, value, dtype, f"operand {operand!r}")
    return graph.constant(array.tobytes(), TensorType(dtype, array.shape, device))


def is_tensor(value: object) -> bool:
    """Whether it is a tensor of a graph, or a weight."""
    return isinstance(value, TensorValue | Weight)


def _tensor(graph: Graph, subject: str, name: str, value: object) -> TensorValue:
    return graph.operand(value, subject, f"operand {name!r}")


def _common_dtype(
    subject: str, names: Sequence[str], tensors: dict[int, TensorValue]
) -> tuple[DType, tuple[str, DeviceRef]]:
    """The promoted type of the tensors, the name of the first that has it, and their device."""
    (index, first), *rest = tensors.items()
    dtype, name = first.dtype, names[index]
    for index, value in rest:
        common = promoted_dtype(dtype, value.dtype)
        if common is None:
            raise GraphTypeError(
                f"{subject}: operand {name!r} is {dtype} and operand {names[index]!r} is {value.dtype}, and neither "
                "type holds both; cast one of them"
            )
        if common is not dtype:
            dtype, name = common, names[index]
    return dtype, (name, first.device)


def _is_literal(value: object) -> bool:
    return isinstance(value, numbers.Real | np.generic) or hasattr(value, "__array__")


def _checked_array(subject: str, name: str, value: object, dtype: DType, other: str) -> npt.NDArray[Any]:
    """The elements as an array of ``dtype``, after checking that they may be that."""
    if not _is_literal(value):
        remedy = "; write np.array(...) around it" if isinstance(value, list | tuple) else ""
        raise GraphTypeError(
            f"{subject}: operand {name!r} must be a TensorValue, a number or an array, not {value!r}{remedy}"
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked_int(subject, name, value, dtype, other)
    array = np.asarray(value)
    source = _array_dtype(subject, name, array)
    if source is dtype:
        return np.ascontiguousarray(array).reshape(array.shape)
    shown = repr(value) if array.ndim == 0 else f"an array of {source}"
    if source.is_float:
        if not dtype.is_float:
            raise GraphTypeError(
                f"{subject}: operand {name!r} is {shown}, but {other} is {dtype}; cast that operand to a float type"
            )
        return _rounded(subject, name, array, dtype, other)
    if source.is_integral:
        for number in {int(n) for n in (array.min(initial=0), array.max(initial=0))}:
            _checked_int(subject, name, number, dtype, other)
    with np.errstate(all="ignore"):
        converted = array.astype(dtype.to_numpy())
    if source.is_integral and dtype.is_float and not np.array_equal(converted.astype(source.to_numpy()), array):
        raise GraphError(
            f"{subject}: operand {name!r} has integers that are not exact in {dtype}, the type of {other}; "
            "convert it to a float array to have them rounded"
        )
    return converted


def _array_dtype(subject: str, name: str, array: npt.NDArray[Any]) -> DType:
    try:
        return DType.from_numpy(array.dtype)
    except GraphTypeError as error:
        raise GraphTypeError(f"{subject}: operand {name!r}: {error.message}") from None


def _checked_int(subject: str, name: str, value: int, dtype: DType, other: str) -> npt.NDArray[Any]:
    if dtype.is_float:
        bits = _SIGNIFICAND_BITS[dtype]
        odd_part = abs(value) // (value & -value) if value else 0
        with np.errstate(over="ignore"):
            result = np.asarray(float(value) if abs(value) < 1 << 1023 else math.inf).astype(dtype.to_numpy())
        if odd_part.bit_length() > bits or not np.isfinite(result):
            raise GraphError(
                f"{subject}: operand {name!r} is {value}, which is not exact in {dtype}, the type of {other}; "
                f"write float({value}) to have it rounded, or cast that operand"
            )
        return result
    low, high = dtype.integer_range
    if not low <= value <= high:
        raise GraphError(
            f"{subject}: operand {name!r} is {value}, but {other} is {dtype}, which holds {low} to {high}; "
            "cast that operand to a wider type"
        )
    return np.asarray(value, dtype.to_numpy())


def _rounded(subject: str, name: str, array: npt.NDArray[Any], dtype: DType, other: str) -> npt.NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(dtype.to_numpy())
        lost = np.isfinite(array.astype(np.float64)) & ~np.isfinite(result.astype(np.float64))
    if lost.any():
        raise GraphError(
            f"{subject}: operand {name!r} has {array[lost].flat[0]!s}, which is beyond {dtype}, the type of {other}; "
            "cast that operand to a wider type, or write math.inf"
        )
    return result
