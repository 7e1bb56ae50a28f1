"""Compares, selects, casts, and single elements of vectors."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, i1
from xdsl.dialects.llvm import FastMathAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..vector_ext import element_of, lanes_of, like

NO_FLAGS = FastMathAttr(None)


class FloatPredicate(StrEnum):
    """The predicates of ``fcmp``, in LLVM's order."""

    FALSE = "false"
    OEQ = "oeq"
    OGT = "ogt"
    OGE = "oge"
    OLT = "olt"
    OLE = "ole"
    ONE = "one"
    ORD = "ord"
    UEQ = "ueq"
    UGT = "ugt"
    UGE = "uge"
    ULT = "ult"
    ULE = "ule"
    UNE = "une"
    UNO = "uno"
    TRUE = "true"


FLOAT_PREDICATES = tuple(FloatPredicate)


@irdl_attr_definition
class FloatPredicateAttr(EnumAttribute[FloatPredicate]):
    """The predicate of ``llvm_ext.fcmp``, written as a bare word."""

    name = "llvm_ext.float_predicate"


@irdl_op_definition
class FCmpOp(IRDLOperation):
    """``fcmp`` on scalars and vectors, with fastmath flags.

    ``llvm_ext.fcmp olt %a, %b : vector<16xf32> -> vector<16xi1>``
    """

    name = "llvm_ext.fcmp"
    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    predicate = prop_def(FloatPredicateAttr)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)  # noqa: N815 (upstream's name)
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def verify_(self) -> None:
        if not isinstance(element_of(self.lhs.type), AnyFloat):
            raise VerifyException(f"llvm_ext.fcmp: compares floats, not {self.lhs.type}")
        if self.result.type != like(self.lhs.type, i1):
            raise VerifyException(f"llvm_ext.fcmp: result must be {like(self.lhs.type, i1)}, not {self.result.type}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """``select``, also by a vector of ``i1``, with fastmath flags."""

    name = "llvm_ext.select"
    T: ClassVar = VarConstraint("T", AnyAttr())
    condition = operand_def()
    true_value = operand_def(T)
    false_value = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)  # noqa: N815
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `,` $true_value `,` $false_value attr-dict `:` type($condition) `,` type($result)"

    def verify_(self) -> None:
        if self.condition.type not in (i1, like(self.result.type, i1)):
            raise VerifyException(
                f"llvm_ext.select: condition must be i1 or {like(self.result.type, i1)}, not {self.condition.type}"
            )


class Cast(IRDLOperation, ABC):
    """What casts share. ``SIDES`` says what they are from and to: ints or floats, as many lanes of each."""

    SIDES: ClassVar[tuple[Any, Any]]  # classes, and AnyFloat, which is a union of some

    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        source, result = self.operand.type, self.result.type
        fits = all(isinstance(element_of(t), side) for t, side in zip((source, result), self.SIDES, strict=True))
        if not fits or lanes_of(source) != lanes_of(result):
            raise VerifyException(f"{self.name}: cannot cast {source} to {result}")


class FloatCast(Cast, ABC):
    """A cast between floats, with fastmath flags."""

    SIDES: ClassVar = (AnyFloat, AnyFloat)

    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)  # noqa: N815
    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class UIToFPOp(Cast):
    """``uitofp``: an unsigned integer to a float, rounded to nearest even."""

    name = "llvm_ext.uitofp"
    SIDES: ClassVar = (IntegerType, AnyFloat)


@irdl_op_definition
class FPToSIOp(Cast):
    """``fptosi``: truncates towards zero; a lane that does not fit is poison."""

    name = "llvm_ext.fptosi"
    SIDES: ClassVar = (AnyFloat, IntegerType)


@irdl_op_definition
class FPToUIOp(Cast):
    """``fptoui``: truncates towards zero; a lane that does not fit is poison."""

    name = "llvm_ext.fptoui"
    SIDES: ClassVar = (AnyFloat, IntegerType)


@irdl_op_definition
class FPTruncOp(FloatCast):
    """``fptrunc``: to a narrower float type."""

    name = "llvm_ext.fptrunc"


@irdl_op_definition
class FPExtOp(FloatCast):
    """``fpext``: to a wider float type."""

    name = "llvm_ext.fpext"


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
    """``extractelement``; an index out of range gives poison."""

    name = "llvm_ext.extractelement"
    vector = operand_def(BaseAttr(VectorType))
    index = operand_def(IntegerType)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$vector `[` $index `:` type($index) `]` attr-dict `:` type($vector) `->` type($result)"

    def verify_(self) -> None:
        if self.result.type != element_of(self.vector.type):
            raise VerifyException(
                f"llvm_ext.extractelement: result must be {element_of(self.vector.type)}, not {self.result.type}"
            )


@irdl_op_definition
class PoisonOp(IRDLOperation):
    """The ``poison`` value of a type: a start for values every part of which is overwritten."""

    name = "llvm_ext.poison"
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"
