"""Under which name and types an op stands in the table of what selects.

Loads, stores, branches, shuffles and the like select for every type a register holds and have no entry; for
anything that computes, the table (``codegen/selects``) says what a target has instructions for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation

from ...dialects import llvm_ext
from .families import BINARIES, INTRINSICS, NUMBER_CASTS, instruction_of, intrinsic_of
from .types import intrinsic_suffix

SelectionKey = tuple[str, str]
"""Name of the instruction or intrinsic, and its types: ``("fadd", "vector f32")``, ``("fptrunc", "f64 f32")``."""


def type_key(t: Attribute) -> str:
    """``f32``, or ``vector f32`` for vectors of any length."""
    if isinstance(t, VectorType):
        return f"vector {intrinsic_suffix(t.element_type)}"
    return intrinsic_suffix(t)


def _of_operand(name: str, operand: int = 0) -> Callable[[Any], SelectionKey]:
    return lambda op: (name, type_key(op.operands[operand].type))


def _of_cast(name: str) -> Callable[[Any], SelectionKey]:
    def key(op: Operation) -> SelectionKey:
        source, result = op.operands[0].type, op.results[0].type
        element = result.element_type if isinstance(result, VectorType) else result
        return name, f"{type_key(source)} {intrinsic_suffix(element)}"

    return key


_OVERLOADS = re.compile(r"((?:\.(?:v\d+)?(?:bf16|[fip]\d+))*)$")
_VECTOR = re.compile(r"v\d+(?=[bfip])")


def _of_call(op: llvm.CallIntrinsicOp) -> SelectionKey:
    """``llvm.fma.v16f32`` -> ``("llvm.fma", "vector f32")``; without overloads the type is empty."""
    name = op.intrin.data
    found = _OVERLOADS.search(name)
    assert found is not None
    types = found[1].split(".")[1:]
    if not types:
        return name, ""
    first = _VECTOR.sub("vector ", types[0])
    return name[: found.start()], " ".join([first, *[_VECTOR.sub("", t) for t in types[1:]]])


COMPARED_AND_NEGATED: tuple[type[Operation], ...] = (llvm.FCmpOp, llvm.ICmpOp, llvm.FNegOp)
_KEYS: dict[type[Operation], Callable[[Any], SelectionKey]] = {
    **{op: _of_operand(instruction_of(op)) for op in (*BINARIES, *COMPARED_AND_NEGATED)},
    **{op: _of_cast(instruction_of(op)) for op in NUMBER_CASTS},
    **{op: _of_operand(intrinsic_of(op)) for op in INTRINSICS},
    llvm.CallIntrinsicOp: _of_call,
    llvm.MaskedStoreOp: _of_operand("llvm.masked.store"),
    llvm.SelectOp: _of_operand("select", 1),
    llvm.VectorReduceFAddOp: _of_operand("llvm.vector.reduce.fadd", 1),
    llvm.VectorReduceFMulOp: _of_operand("llvm.vector.reduce.fmul", 1),
    llvm_ext.AtomicRMWOp: lambda op: (f"atomicrmw {op.kind.data.value}", type_key(op.value.type)),
    llvm_ext.CmpXchgOp: _of_operand("cmpxchg", 1),
    llvm_ext.FCmpOp: _of_operand("fcmp"),
    llvm_ext.GatherOp: _of_operand("llvm.masked.gather", 3),
    llvm_ext.MaskedLoadOp: _of_operand("llvm.masked.load", 2),
    llvm_ext.MaskedStoreOp: _of_operand("llvm.masked.store"),
    llvm_ext.ScatterOp: _of_operand("llvm.masked.scatter"),
    llvm_ext.SelectOp: _of_operand("select", 1),
}


CHECKED = frozenset(_KEYS)
"""The ops that have an entry in the table."""


def selection_key(op: Operation) -> SelectionKey | None:
    """The entry of an op; None if it selects everywhere."""
    key = _KEYS.get(type(op))
    return None if key is None else key(op)
