"""LLVM text of types, and the suffixes that overloaded intrinsics carry in their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerType,
    Signedness,
    VectorType,
)
from xdsl.dialects.llvm import (
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute

from ...errors import CompileError

_FLOAT_NAMES: dict[type[Attribute], tuple[str, str]] = {
    BFloat16Type: ("bfloat", "bf16"),
    Float16Type: ("half", "f16"),
    Float32Type: ("float", "f32"),
    Float64Type: ("double", "f64"),
}


def _integer(t: IntegerType) -> str:
    if t.signedness.data != Signedness.SIGNLESS:
        raise CompileError(f"LLVM text: integers must be signless, but a value has type {t}; use i{t.width.data}")
    return f"i{t.width.data}"


def _vector(t: VectorType) -> str:
    if len(t.shape.data) != 1 or t.get_num_scalable_dims():
        raise CompileError(f"LLVM text: vectors must be fixed and 1-D, but a value has type {t}")
    return f"<{t.shape.data[0].data} x {type_text(t.element_type)}>"


def _pointer(t: LLVMPointerType) -> str:
    space = t.addr_space
    return f"ptr addrspace({space.data})" if isinstance(space, IntAttr) and space.data else "ptr"


def _struct(t: LLVMStructType) -> str:
    if t.struct_name.data:
        raise CompileError(f"LLVM text: named structs are not supported, but a value has type {t}")
    return "{ " + ", ".join(type_text(field) for field in t.types) + " }" if t.types.data else "{}"


def _function(t: LLVMFunctionType) -> str:
    inputs = [type_text(argument) for argument in t.inputs]
    return f"{type_text(t.output)} ({', '.join([*inputs, '...'] if t.is_variadic else inputs)})"


_TEXT: dict[type[Attribute], Callable[[Any], str]] = {
    IntegerType: _integer,
    VectorType: _vector,
    LLVMPointerType: _pointer,
    LLVMStructType: _struct,
    LLVMArrayType: lambda t: f"[{t.size.data} x {type_text(t.type)}]",
    LLVMVoidType: lambda t: "void",
    LLVMFunctionType: _function,
}


def type_text(t: Attribute) -> str:
    """A type as LLVM writes it: ``vector<16xbf16>`` is ``<16 x bfloat>``. CompileError for a type LLVM lacks."""
    names = _FLOAT_NAMES.get(type(t))
    if names is not None:
        return names[0]
    text = _TEXT.get(type(t))
    if text is None:
        raise CompileError(f"LLVM text: type {t} has no LLVM counterpart; lower it to the llvm dialect first")
    return text(t)


class TypeTexts:
    """``type_text`` remembered by identity, since hashing an attribute costs more than writing it.

    Valid while the attributes live, that is while the module being written does.
    """

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def __call__(self, t: Attribute) -> str:
        try:
            return self._texts[id(t)]
        except KeyError:
            text = self._texts[id(t)] = type_text(t)
            return text


def intrinsic_suffix(t: Attribute) -> str:
    """The type in an intrinsic's name: ``v16f32``, ``i64``, ``p0``."""
    if isinstance(t, VectorType):
        return f"v{t.shape.data[0].data}{intrinsic_suffix(t.element_type)}"
    if isinstance(t, IntegerType):
        return f"i{t.width.data}"
    if isinstance(t, LLVMPointerType):
        return f"p{t.addr_space.data if isinstance(t.addr_space, IntAttr) else 0}"
    names = _FLOAT_NAMES.get(type(t))
    if names is None:
        raise CompileError(f"LLVM text: no intrinsic is overloaded on type {t}")
    return names[1]
