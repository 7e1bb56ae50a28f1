"""Masked and indexed memory access."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, VectorType, i1, i64
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from ..vector_ext import like


def _verify_masked(op_name: str, mask: Attribute, value: Attribute) -> None:
    if not isinstance(value, VectorType) or mask != like(value, i1):
        raise VerifyException(f"{op_name}: needs a vector and a mask of its length, not {value} and {mask}")


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
    """``llvm.masked.load``: consecutive lanes; those that are off read nothing and give ``pass_thru``."""

    name = "llvm_ext.masked_load"
    T: ClassVar = VarConstraint("T", BaseAttr(VectorType))
    pointer = operand_def(LLVMPointerType)
    mask = operand_def(BaseAttr(VectorType))
    pass_thru = operand_def(T)
    alignment = prop_def(IntegerAttr.constr(i64))
    result = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$pointer `,` $mask `,` $pass_thru attr-dict `:` type($pointer) `,` type($mask) `into` type($result)"
    )

    def verify_(self) -> None:
        _verify_masked(self.name, self.mask.type, self.result.type)


@irdl_op_definition
class MaskedStoreOp(IRDLOperation):
    """``llvm.masked.store``: consecutive lanes; those that are off write nothing. Any element type."""

    name = "llvm_ext.masked_store"
    value = operand_def(BaseAttr(VectorType))
    pointer = operand_def(LLVMPointerType)
    mask = operand_def(BaseAttr(VectorType))
    alignment = prop_def(IntegerAttr.constr(i64))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value `,` $pointer `,` $mask attr-dict `:` type($value) `,` type($pointer) `,` type($mask)"

    def verify_(self) -> None:
        _verify_masked(self.name, self.mask.type, self.value.type)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """``llvm.masked.gather`` from ``base + indices``, where indices count elements."""

    name = "llvm_ext.gather"
    T: ClassVar = VarConstraint("T", BaseAttr(VectorType))
    base = operand_def(LLVMPointerType)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    pass_thru = operand_def(T)
    alignment = prop_def(IntegerAttr.constr(i64))
    result = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
        " `:` type($base) `,` type($indices) `,` type($mask) `into` type($result)"
    )

    def verify_(self) -> None:
        _verify_masked(self.name, self.mask.type, self.result.type)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """``llvm.masked.scatter`` to ``base + indices``, lanes in ascending order."""

    name = "llvm_ext.scatter"
    value = operand_def(BaseAttr(VectorType))
    base = operand_def(LLVMPointerType)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    alignment = prop_def(IntegerAttr.constr(i64))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$value `,` $base `[` $indices `]` `,` $mask attr-dict"
        " `:` type($value) `,` type($base) `,` type($indices) `,` type($mask)"
    )

    def verify_(self) -> None:
        _verify_masked(self.name, self.mask.type, self.value.type)
