"""LLVM text of constants, exact to the bit: NaN payloads, infinities and -0.0 included.

f32 and f64 are written as the 64-bit pattern of the same value in f64 unless a short decimal is exact, f16 as
``0xH....`` and bf16 as ``0xR....`` (LangRef, "Simple Constants").
"""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.dialects.llvm import LLVMArrayType
from xdsl.dialects.ub import PoisonAttr
from xdsl.ir import Attribute

from ...errors import CompileError
from .types import type_text

_F32_SPECIAL = 0x7F800000
_F64_SPECIAL = 0x7FF << 52


def _decimal_or_hex(value: float, bits: int) -> str:
    decimal = f"{value:.6e}"
    return decimal if float(decimal) == value else f"0x{bits:016X}"


def _f64_text(bits: int) -> str:
    if bits & _F64_SPECIAL == _F64_SPECIAL:
        return f"0x{bits:016X}"
    return _decimal_or_hex(struct.unpack("<d", bits.to_bytes(8, "little"))[0], bits)


def _f32_text(bits: int) -> str:
    sign, magnitude = bits >> 31, bits & 0x7FFFFFFF
    if magnitude >= _F32_SPECIAL:
        # The payload moves to the top of the wider fraction; going through a float would quiet it.
        return f"0x{sign << 63 | _F64_SPECIAL | (magnitude - _F32_SPECIAL) << 29:016X}"
    value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    return _decimal_or_hex(value, struct.unpack("<Q", struct.pack("<d", value))[0])


def float_text(element: Attribute, bits: int) -> str:
    """The float of type ``element`` whose bit pattern is ``bits``."""
    if isinstance(element, Float32Type):
        return _f32_text(bits)
    if isinstance(element, Float64Type):
        return _f64_text(bits)
    if isinstance(element, Float16Type):
        return f"0xH{bits:04X}"
    if isinstance(element, BFloat16Type):
        return f"0xR{bits:04X}"
    raise CompileError(f"LLVM text: a constant has float type {element}; LLVM has f16, bf16, f32 and f64")


def _integer_text(width: int, value: int) -> str:
    return ("true" if value & 1 else "false") if width == 1 else str(value)


def _element_texts(element: Attribute, data: bytes) -> list[str]:
    if isinstance(element, IntegerType):
        width = element.width.data
        return [_integer_text(width, int(value)) for value in element.iter_unpack(data)]
    size = element.bitwidth // 8  # type: ignore[attr-defined]
    return [float_text(element, int.from_bytes(data[i : i + size], "little")) for i in range(0, len(data), size)]


def _dense_text(value: DenseIntOrFPElementsAttr, result_type: Attribute) -> str:
    element = value.type.element_type
    data = value.data.data
    count = len(value)
    size = len(data) // count
    if not any(data):
        return "zeroinitializer"
    element_text = type_text(element)
    is_array = isinstance(result_type, LLVMArrayType)
    if not is_array and data == data[:size] * count:
        return f"splat ({element_text} {_element_texts(element, data[:size])[0]})"
    items = ", ".join(f"{element_text} {text}" for text in _element_texts(element, data))
    return f"[{items}]" if is_array else f"<{items}>"


_PLAIN = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}


def quoted_bytes(data: bytes) -> str:
    """A string in double quotes; unprintable bytes, quotes and backslashes as ``\\hh``."""
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:02X}" for b in data) + '"'


def constant_text(value: Attribute, result_type: Attribute) -> str:
    """The text of a constant, without its type. CompileError for an attribute that is no LLVM constant."""
    if isinstance(value, IntegerAttr):
        width = value.type.width.data if isinstance(value.type, IntegerType) else 64
        return _integer_text(width, value.value.data)
    if isinstance(value, FloatAttr):
        return float_text(value.type, int.from_bytes(value.type.pack((value.value.data,)), "little"))
    if isinstance(value, DenseIntOrFPElementsAttr):
        return _dense_text(value, result_type)
    if isinstance(value, StringAttr):
        return "c" + quoted_bytes(value.data.encode())
    if isinstance(value, PoisonAttr):
        return "poison"
    raise CompileError(f"LLVM text: {value} is not a constant that LLVM can hold")
