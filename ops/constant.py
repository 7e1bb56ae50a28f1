"""`constant`: tensors whose elements are known while the graph is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfulp.compiler import DeviceRef, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located

from .contract import ALL, CORRECTLY_ROUNDED, Array, Example, promise_examples
from .samples import anything


def constant(value: Any, dtype: DType | None = None, device: DeviceRef | None = None) -> TensorValue:
    """A tensor of known elements.

    Args:
        value: a number, a nested list of numbers, or an array.
        dtype: the element type. An array has one already; numbers need one. Floats round to it, integers must fit.
        device: where it lives; the host by default.

    Returns:
        The elements under the shape of ``value``; a number is a scalar.

    Raises:
        NotFoundError: no graph is being built.
        GraphTypeError: no dtype for plain numbers, or ``value`` holds no numbers.
        GraphError: an integer that ``dtype`` does not hold, or a finite number beyond its range.
    """
    subject = "ops.constant"
    graph = Graph.current(subject)
    with Located():
        array = _as_array(subject, value, dtype)
        chosen = DType.from_numpy(array.dtype)
        return graph.constant(array.tobytes(), TensorType(chosen, array.shape, device))


def _as_array(subject: str, value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    if dtype is not None and not isinstance(dtype, DType):
        raise GraphTypeError(f"{subject}: dtype must be a DType such as DType.float32, not {dtype!r}")
    if not hasattr(value, "__array__"):
        if dtype is None:
            raise GraphTypeError(
                f"{subject}: {value!r} has no element type of its own; pass dtype, such as DType.float32"
            )
        try:
            value = np.array(value, object if dtype.is_integral else None)
        except ValueError:
            raise GraphError(f"{subject}: the lists of {value!r} differ in length") from None
    array = np.asarray(value)
    return array if dtype is None else _converted(subject, array, dtype)


def _converted(subject: str, array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    if array.dtype == dtype.to_numpy():
        return array
    if dtype.is_integral:
        return _integers(subject, array, dtype)
    try:
        with np.errstate(over="ignore"):
            result = array.astype(dtype.to_numpy())
            lost = np.isinf(result.astype(np.float64)) & np.isfinite(array.astype(np.float64))
    except (TypeError, ValueError):
        raise GraphTypeError(f"{subject}: value must hold numbers, not {array.tolist()!r}") from None
    if lost.any():
        raise GraphError(f"{subject}: {array[lost].flat[0]} is beyond {dtype}; choose a wider dtype, or write math.inf")
    return result


def _integers(subject: str, array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    low, high = dtype.integer_range
    for number in array.ravel().tolist():
        if not isinstance(number, int):
            raise GraphTypeError(f"{subject}: {number!r} is no integer, but dtype is {dtype}; choose a float type")
        if not low <= number <= high:
            raise GraphError(
                f"{subject}: {number} does not fit in {dtype}, which holds {low} to {high}; choose a wider dtype"
            )
    return array.astype(dtype.to_numpy())


# -- contract


def _examples(dtype: DType) -> list[Example]:
    numbers: list[Any] = [[0.1, -2.5e-3, 1e4], [1.0, 0.0, 3.0]] if dtype.is_float else [[1, 0, 1]]
    return [Example((), {"value": given, "dtype": dtype}) for given in (anything(dtype, (5, 70)), numbers)]


def _reference(value: Any, dtype: DType) -> Array:
    array = np.asarray(value)
    return array.astype(object if dtype.is_integral else bool if dtype is DType.bool else np.longdouble)


promise_examples(constant, ALL, _reference, _examples, ulp=CORRECTLY_ROUNDED)
