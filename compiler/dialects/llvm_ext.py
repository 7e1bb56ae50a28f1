"""The ``llvm_ext`` dialect: instructions of LLVM that upstream's ``llvm`` dialect lacks.

Upstream has no ``uitofp``, ``extractelement``, ``switch``, ``fence`` or atomics, no masked loads, compares and selects
by one ``i1`` only, and casts between floats without fastmath flags. Each op here stands for one LLVM
instruction (``gather`` and ``scatter``: an address computation and one intrinsic call) and is written to LLVM text
by ``codegen/llvm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType, LLVMStructType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, Dialect, SSAValue
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
    successor_def,
    traits_def,
    var_successor_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from .vector_ext import element_of, lanes_of, like

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


def _verify_cast(op_name: str, source: Attribute, result: Attribute, kinds: str) -> None:
    """``kinds`` says which side is a float: ``"int float"``, ``"float int"`` or ``"float float"``."""
    found = " ".join(
        "float" if isinstance(element_of(t), AnyFloat) else "int" if isinstance(element_of(t), IntegerType) else "?"
        for t in (source, result)
    )
    if found != kinds or lanes_of(source) != lanes_of(result):
        raise VerifyException(f"{op_name}: cannot cast {source} to {result}")


@irdl_op_definition
class UIToFPOp(IRDLOperation):
    """``uitofp``: an unsigned integer to a float, rounded to nearest even."""

    name = "llvm_ext.uitofp"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        _verify_cast(self.name, self.operand.type, self.result.type, "int float")


@irdl_op_definition
class FPToSIOp(IRDLOperation):
    """``fptosi``: truncates towards zero; a lane that does not fit is poison."""

    name = "llvm_ext.fptosi"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        _verify_cast(self.name, self.operand.type, self.result.type, "float int")


@irdl_op_definition
class FPToUIOp(IRDLOperation):
    """``fptoui``: truncates towards zero; a lane that does not fit is poison."""

    name = "llvm_ext.fptoui"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        _verify_cast(self.name, self.operand.type, self.result.type, "float int")


@irdl_op_definition
class FPTruncOp(IRDLOperation):
    """``fptrunc``: to a narrower float type, with fastmath flags."""

    name = "llvm_ext.fptrunc"
    operand = operand_def()
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)  # noqa: N815
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        _verify_cast(self.name, self.operand.type, self.result.type, "float float")


@irdl_op_definition
class FPExtOp(IRDLOperation):
    """``fpext``: to a wider float type, with fastmath flags."""

    name = "llvm_ext.fpext"
    operand = operand_def()
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)  # noqa: N815
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def verify_(self) -> None:
        _verify_cast(self.name, self.operand.type, self.result.type, "float float")


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


class Ordering(StrEnum):
    """Memory orderings of LLVM's atomic instructions."""

    MONOTONIC = "monotonic"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SEQ_CST = "seq_cst"


@irdl_attr_definition
class OrderingAttr(EnumAttribute[Ordering]):
    """A memory ordering, written as a bare word."""

    name = "llvm_ext.ordering"


class AtomicKind(StrEnum):
    """What ``atomicrmw`` does with the old value and the operand."""

    XCHG = "xchg"
    ADD = "add"
    SUB = "sub"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    FADD = "fadd"


@irdl_attr_definition
class AtomicKindAttr(EnumAttribute[AtomicKind]):
    """The operation of ``llvm_ext.atomicrmw``, written as a bare word."""

    name = "llvm_ext.atomic_kind"


@irdl_op_definition
class FenceOp(IRDLOperation):
    """``fence``: ``llvm_ext.fence seq_cst``."""

    name = "llvm_ext.fence"
    ordering = prop_def(OrderingAttr)
    assembly_format = "$ordering attr-dict"

    def verify_(self) -> None:
        if self.ordering.data == Ordering.MONOTONIC:
            raise VerifyException("llvm_ext.fence: ordering must be acquire or stronger, not monotonic")


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """``atomicrmw``: stores ``kind(old, value)`` and gives the old value.

    ``llvm_ext.atomicrmw add %p, %v acq_rel : !llvm.ptr, i64``
    """

    name = "llvm_ext.atomicrmw"
    T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(AtomicKindAttr)
    pointer = operand_def(LLVMPointerType)
    value = operand_def(T)
    ordering = prop_def(OrderingAttr)
    result = result_def(T)
    assembly_format = "$kind $pointer `,` $value $ordering attr-dict `:` type($pointer) `,` type($result)"

    def verify_(self) -> None:
        wanted = AnyFloat if self.kind.data == AtomicKind.FADD else IntegerType
        if not isinstance(self.value.type, wanted):
            raise VerifyException(f"llvm_ext.atomicrmw: {self.kind.data.value} does not take {self.value.type}")


@irdl_op_definition
class CmpXchgOp(IRDLOperation):
    """``cmpxchg``: stores ``new`` if the memory holds ``expected``; gives the old value and whether it stored.

    ``llvm_ext.cmpxchg %p, %expected, %new acq_rel monotonic : !llvm.ptr, i32 -> !llvm.struct<(i32, i1)>``
    """

    name = "llvm_ext.cmpxchg"
    T: ClassVar = VarConstraint("T", AnyAttr())
    pointer = operand_def(LLVMPointerType)
    expected = operand_def(T)
    new = operand_def(T)
    success = prop_def(OrderingAttr)
    failure = prop_def(OrderingAttr)
    result = result_def(LLVMStructType)
    assembly_format = (
        "$pointer `,` $expected `,` $new $success $failure attr-dict"
        " `:` type($pointer) `,` type($expected) `->` type($result)"
    )

    def verify_(self) -> None:
        if self.result.type != LLVMStructType.from_type_list([self.expected.type, i1]):
            raise VerifyException(
                f"llvm_ext.cmpxchg: result must be !llvm.struct<({self.expected.type}, i1)>, not {self.result.type}"
            )
        if self.failure.data in (Ordering.RELEASE, Ordering.ACQ_REL):
            raise VerifyException(
                f"llvm_ext.cmpxchg: failure ordering must not release, but is {self.failure.data.value}"
            )


@irdl_op_definition
class SwitchOp(IRDLOperation):
    """``switch``: ``llvm_ext.switch %v : i32, ^default [0: ^a, 7: ^b]``. The blocks take no arguments."""

    name = "llvm_ext.switch"
    value = operand_def(IntegerType)
    case_values = prop_def(DenseArrayBase.constr(i64))
    default = successor_def()
    cases = var_successor_def()
    traits = traits_def(IsTerminator(), NoMemoryEffect())

    def __init__(self, value: SSAValue, default: Block, case_values: Sequence[int], cases: Sequence[Block]) -> None:
        super().__init__(
            operands=[value],
            properties={"case_values": DenseArrayBase.from_list(i64, list(case_values))},
            successors=[default, cases],
        )

    def verify_(self) -> None:
        values = self.case_values.get_values()
        if len(values) != len(self.cases) or len(set(values)) != len(values):
            raise VerifyException(
                f"llvm_ext.switch: needs one distinct value per case block, not {list(values)} for"
                f" {len(self.cases)} blocks"
            )
        if any(block.args for block in self.successors):
            raise VerifyException("llvm_ext.switch: its blocks must take no arguments")

    @classmethod
    def parse(cls, parser: Parser) -> SwitchOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        default = parser.parse_successor()

        def parse_case() -> tuple[int, Block]:
            number = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(":")
            return number, parser.parse_successor()

        cases = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_case)
        return cls(
            parser.resolve_operand(value, value_type),
            default,
            [number for number, _ in cases],
            [block for _, block in cases],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_block_name(self.default)
        printer.print_string(" [")
        for i, (number, block) in enumerate(zip(self.case_values.get_values(), self.cases, strict=True)):
            printer.print_string(f"{', ' if i else ''}{number}: ")
            printer.print_block_name(block)
        printer.print_string("]")


LLVMExt = Dialect(
    "llvm_ext",
    [
        AtomicRMWOp,
        CmpXchgOp,
        ExtractElementOp,
        FCmpOp,
        FPExtOp,
        FPToSIOp,
        FPToUIOp,
        FPTruncOp,
        FenceOp,
        GatherOp,
        MaskedLoadOp,
        MaskedStoreOp,
        PoisonOp,
        ScatterOp,
        SelectOp,
        SwitchOp,
        UIToFPOp,
    ],
    [AtomicKindAttr, FloatPredicateAttr, OrderingAttr],
)
