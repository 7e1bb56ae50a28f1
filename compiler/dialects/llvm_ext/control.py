"""Atomics, and the switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, IntegerType, i1, i64
from xdsl.dialects.llvm import LLVMPointerType, LLVMStructType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Block, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
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
from xdsl.traits import IsTerminator, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum


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
