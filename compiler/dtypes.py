"""Element types, and their names in numpy, in the IR and in xDSL.

xDSL's ``arith`` works on signless integers, so the sign of an integer lives here (and in graph types) and turns
into the choice of operation (``arith.divsi`` or ``arith.divui``) when a graph is lowered.
"""

from __future__ import annotations

import builtins
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from .errors import GraphTypeError

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import (
        BFloat16Type,
        Float16Type,
        Float32Type,
        Float64Type,
        IntegerType,
    )

    ElementType = IntegerType | BFloat16Type | Float16Type | Float32Type | Float64Type

Kind = Literal["bool", "signed", "unsigned", "float"]


class DType(Enum):
    """An element type. The value of a member is its numpy (or ml_dtypes) name.

    >>> DType.uint32.ir_name, DType.uint32.size_in_bytes, DType.uint32.is_signed
    ('ui32', 4, False)
    """

    bool = "bool"
    int8 = "int8"
    int16 = "int16"
    int32 = "int32"
    int64 = "int64"
    uint8 = "uint8"
    uint16 = "uint16"
    uint32 = "uint32"
    uint64 = "uint64"
    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"
    float64 = "float64"

    @property
    def kind(self) -> Kind:
        """What sort of number: ``bool``, ``signed``, ``unsigned`` or ``float``."""
        return _KINDS[self]

    @property
    def bits(self) -> int:
        """Width of the value: 1 for bool, which still takes a byte in memory."""
        return _BITS[self]

    @property
    def size_in_bytes(self) -> int:
        """Bytes one element takes in memory."""
        return max(_BITS[self] // 8, 1)

    @property
    def is_float(self) -> builtins.bool:
        """Whether it is one of the four floating-point types."""
        return _KINDS[self] == "float"

    @property
    def is_integral(self) -> builtins.bool:
        """Whether it is an integer type; bool is not one."""
        return _KINDS[self] in ("signed", "unsigned")

    @property
    def is_signed(self) -> builtins.bool:
        """Whether it has negative values: signed integers and floats."""
        return _KINDS[self] in ("signed", "float")

    @property
    def integer_range(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type or bool, both included.

        Raises:
            GraphTypeError: the type is a float.
        """
        if self.is_float:
            raise GraphTypeError(f"{self} has no integer range; ask an integer type")
        if self.is_signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    @property
    def ir_name(self) -> str:
        """The name in graph types: ``f32``, ``bf16``, ``i8`` (signed), ``ui8``, ``bool``."""
        return _IR_NAMES[self]

    @classmethod
    def from_ir_name(cls, name: str) -> DType:
        """The inverse of `ir_name`.

        Raises:
            GraphTypeError: no type has that name.
        """
        found = _FROM_IR_NAMES.get(name)
        if found is None:
            raise GraphTypeError(f"{name!r} is not an element type; known: {', '.join(_FROM_IR_NAMES)}")
        return found

    def to_numpy(self) -> np.dtype[Any]:
        """The numpy dtype; for bfloat16 that of ml_dtypes."""
        return _to_numpy(self)

    @classmethod
    def from_numpy(cls, dtype: Any) -> DType:
        """The element type of a numpy dtype, or of anything that ``np.dtype`` accepts.

        Raises:
            GraphTypeError: numpy has it and halfulp has not (complex, strings, ...), or its bytes are swapped.
        """
        import numpy as np

        try:
            numpy_dtype = None if dtype is None else np.dtype(dtype)  # np.dtype(None) is float64
        except TypeError:
            numpy_dtype = None
        found = _numpy_table().get(numpy_dtype)
        if found is None:
            raise GraphTypeError(_no_such_numpy_dtype(dtype, numpy_dtype))
        return found

    def to_element_type(self) -> ElementType:
        """The xDSL type of one element: a float type or a signless integer, ``i1`` for bool."""
        return _to_element_type(self)

    def __repr__(self) -> str:
        return f"DType.{self.value}"

    def __str__(self) -> str:
        return self.value


def _kind_of(dtype: DType) -> Kind:
    if dtype is DType.bool:
        return "bool"
    if dtype.value.startswith("uint"):
        return "unsigned"
    return "signed" if dtype.value.startswith("int") else "float"


_IR_PREFIX: dict[Kind, str] = {"bool": "", "signed": "i", "unsigned": "ui", "float": "f"}
_KINDS: dict[DType, Kind] = {d: _kind_of(d) for d in DType}
_BITS = {d: int(d.value.lstrip("abcdefghijklmnopqrstuvwxyz") or 1) for d in DType}
_IR_NAMES = {d: f"{_IR_PREFIX[_KINDS[d]]}{_BITS[d]}" for d in DType} | {DType.bool: "bool", DType.bfloat16: "bf16"}
_FROM_IR_NAMES = {name: dtype for dtype, name in _IR_NAMES.items()}


# numpy and xDSL are imported on first use: this module is part of every import of halfulp.


@cache
def _to_numpy(dtype: DType) -> np.dtype[Any]:
    import numpy as np

    scalar_type: Any = dtype.value
    if dtype is DType.bfloat16:
        import ml_dtypes

        scalar_type = ml_dtypes.bfloat16
    numpy_dtype: np.dtype[Any] = np.dtype(scalar_type)
    return numpy_dtype


@cache
def _numpy_table() -> dict[np.dtype[Any] | None, DType]:
    return {_to_numpy(d): d for d in DType}


def _no_such_numpy_dtype(asked: object, dtype: np.dtype[Any] | None) -> str:
    if dtype is not None and not dtype.isnative:
        return f"numpy dtype {dtype} has swapped bytes; convert it with .astype({dtype.newbyteorder('=').name!r})"
    known = ", ".join(d.value for d in DType)
    return f"numpy dtype {asked} has no halfulp element type; known: {known}"


@cache
def _to_element_type(dtype: DType) -> ElementType:
    from xdsl.dialects import builtin

    floats: dict[DType, ElementType] = {
        DType.float16: builtin.f16,
        DType.bfloat16: builtin.bf16,
        DType.float32: builtin.f32,
        DType.float64: builtin.f64,
    }
    return floats.get(dtype) or builtin.IntegerType(dtype.bits)
