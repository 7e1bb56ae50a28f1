"""Which element type an operation on block values has: JAX's lattice, so that kernels written for it keep theirs.

A Python number, and what is computed from nothing else, is weak: beside a value of a type it takes that type. Two
values of different types meet in the smallest type above both; an integer beside a float takes the float's type.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.compiler import DType

_UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)
_SIGNED = (DType.int8, DType.int16, DType.int32, DType.int64)

DEFAULT_INT = DType.int32
DEFAULT_FLOAT = DType.float32


def _integers(first: DType, second: DType) -> DType:
    if first.kind == second.kind:
        return max(first, second, key=lambda dtype: dtype.bits)
    unsigned, signed = (first, second) if first.kind == "unsigned" else (second, first)
    if signed.bits > unsigned.bits:
        return signed
    wider = [dtype for dtype in _SIGNED if dtype.bits > unsigned.bits]
    return wider[0] if wider else DEFAULT_FLOAT  # no integer holds both u64 and i64


def _strong(first: DType, second: DType) -> DType:
    if first is second or second is DType.bool:
        return first
    if first is DType.bool:
        return second
    if first.is_float and second.is_float:
        if first.bits == second.bits:
            return DType.float32  # f16 and bf16
        return max(first, second, key=lambda dtype: dtype.bits)
    if first.is_float or second.is_float:
        return first if first.is_float else second
    return _integers(first, second)


def _beside_weak(dtype: DType, weak: DType) -> tuple[DType, bool]:
    """A typed value beside weak ones of type ``weak``: the type, and whether that is weak."""
    if weak.is_float:
        return (dtype, False) if dtype.is_float else (weak, True)
    if weak.is_integral:
        return (weak, True) if dtype is DType.bool else (dtype, False)
    return dtype, False


def promote(operands: Sequence[tuple[DType, bool]]) -> tuple[DType, bool]:
    """The type of the result of an operation on ``(type, is weak)``, and whether it is weak itself."""
    strong = [dtype for dtype, weak in operands if not weak]
    weak_types = [dtype for dtype, weak in operands if weak]
    if not strong:
        result = weak_types[0]
        for dtype in weak_types[1:]:
            result = _strong(result, dtype)
        return result, True
    result = strong[0]
    for dtype in strong[1:]:
        result = _strong(result, dtype)
    is_weak = False
    for dtype in weak_types:
        result, is_weak = _beside_weak(result, dtype)
    return result, is_weak


def as_float(dtype: DType) -> DType:
    """The type in which a function of real numbers works on ``dtype``."""
    return dtype if dtype.is_float else DEFAULT_FLOAT


def sum_type(dtype: DType) -> DType:
    """The type of a sum: integers narrower than 32 bits widen to them."""
    if dtype is DType.bool:
        return DEFAULT_INT
    if dtype.is_integral and dtype.bits < 32:
        return DType.int32 if dtype.is_signed else DType.uint32
    return dtype
