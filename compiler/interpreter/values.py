"""How values of the IR are held: numpy dtypes of element types, constants as arrays, the interpreter's error."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from xdsl.dialects import builtin
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from ..dialects.tile.types import element_type, shape_of
from ..errors import HalfulpError
from .exact import Array


class InterpreterError(HalfulpError, RuntimeError):
    """The module or an argument is not what the interpreter can run."""


_DTYPES: dict[Attribute, np.dtype[Any]] = {
    builtin.i1: np.dtype(np.bool_),
    builtin.i8: np.dtype(np.int8),
    builtin.i16: np.dtype(np.int16),
    builtin.i32: np.dtype(np.int32),
    builtin.i64: np.dtype(np.int64),
    builtin.IndexType(): np.dtype(np.int64),
    builtin.f16: np.dtype(np.float16),
    builtin.bf16: np.dtype(bfloat16),
    builtin.f32: np.dtype(np.float32),
    builtin.f64: np.dtype(np.float64),
}


def dtype_of(value_type: Attribute) -> np.dtype[Any]:
    """The numpy dtype of a scalar type, or of the elements of a block type.

    Raises:
        InterpreterError: no array can hold it.
    """
    element = element_type(value_type)
    dtype = _DTYPES.get(element)
    if dtype is None:
        known = ", ".join(str(known) for known in _DTYPES)
        raise InterpreterError(f"type {element} has no numpy dtype in the interpreter; use one of {known}")
    return dtype


def constant_array(op: ConstantOp) -> Array:
    """The value of an ``arith.constant``.

    Raises:
        InterpreterError: the constant is of a kind that holds no elements, such as a resource.
    """
    attribute, dtype = op.value, dtype_of(op.result.type)
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return np.array(bool(value) if dtype == np.bool_ else value, dtype)
    if isinstance(attribute, FloatAttr):
        return np.frombuffer(attribute.type.pack((attribute.value.data,)), dtype).reshape(())
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        flat = np.frombuffer(attribute.data.data, np.uint8 if dtype == np.bool_ else dtype)
        return (flat != 0 if dtype == np.bool_ else flat).reshape(shape_of(op.result.type))
    raise InterpreterError(
        f"arith.constant of {type(attribute).__name__} has no elements to read; use a dense constant"
    )
