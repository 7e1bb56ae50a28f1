"""Scalar and 1-D vector types seen alike."""

from __future__ import annotations

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, VectorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

NO_FLAGS = FastMathFlagsAttr("none")


def lanes_of(value_type: Attribute) -> int:
    """Lanes of a 1-D vector type; 0 for a scalar type."""
    return value_type.shape.data[0].data if isinstance(value_type, VectorType) else 0


def element_of(value_type: Attribute) -> Attribute:
    """Element type of a vector type; a scalar type is its own element."""
    return value_type.element_type if isinstance(value_type, VectorType) else value_type


def like(value_type: Attribute, element: Attribute) -> Attribute:
    """``element``, with the vector shape of ``value_type`` if it has one."""
    return VectorType(element, value_type.shape) if isinstance(value_type, VectorType) else element


def verify_scalar_or_vector(op_name: str, operand: str, value_type: Attribute) -> None:
    """VerifyException unless the type is a scalar or a fixed 1-D vector."""
    if isinstance(value_type, VectorType) and (
        len(value_type.shape) != 1 or value_type.get_num_scalable_dims() or lanes_of(value_type) < 1
    ):
        raise VerifyException(f"{op_name}: {operand} must be a scalar or a fixed 1-D vector, not {value_type}")


def verify_float_flags(op_name: str, flags: FastMathFlagsAttr, value_type: Attribute) -> None:
    """VerifyException if there are flags and the values are no floats."""
    if flags.data and not isinstance(element_of(value_type), AnyFloat):
        raise VerifyException(f"{op_name}: fastmath flags need float values, not {value_type}")


def bit_width(element: Attribute) -> int:
    """Bits of a scalar number type; ``index`` has 64. Raises VerifyException for anything else."""
    if isinstance(element, IndexType):
        return 64
    if isinstance(element, IntegerType):
        return int(element.width.data)
    if isinstance(element, AnyFloat):
        return int(element.bitwidth)
    raise VerifyException(f"{element} is not a number type")
