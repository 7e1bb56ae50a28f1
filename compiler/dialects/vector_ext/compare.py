"""Comparisons and select."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .types import NO_FLAGS, element_of, like, verify_float_flags, verify_scalar_or_vector


class _ComparisonOp(IRDLOperation):
    """Shared by both comparisons: ``<predicate>, %a, %b : T``, with upstream's predicate numbers."""

    PREDICATES: ClassVar[list[str]] = []
    T: ClassVar = VarConstraint("T", AnyAttr())

    lhs = operand_def(T)
    rhs = operand_def(T)
    predicate = prop_def(IntegerAttr.constr(i64))
    result = result_def()

    @classmethod
    def _predicate(cls, predicate: str) -> IntegerAttr[IntegerType]:
        if predicate not in cls.PREDICATES:
            raise VerifyException(
                f"{cls.name}: predicate must be one of {', '.join(cls.PREDICATES)}, not {predicate!r}"
            )
        return IntegerAttr(cls.PREDICATES.index(predicate), i64)

    @property
    def predicate_name(self) -> str:
        """The predicate as written: ``olt``, ``ne``, ..."""
        return self.PREDICATES[self.predicate.value.data]

    def verify_(self) -> None:
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"{self.name}: no predicate has the number {self.predicate.value.data}")
        verify_scalar_or_vector(self.name, "lhs", self.lhs.type)
        wanted = like(self.lhs.type, i1)
        if self.result.type != wanted:
            raise VerifyException(f"{self.name}: result must be {wanted}, not {self.result.type}")

    @classmethod
    def _parse_comparison(cls, parser: Parser) -> tuple[str, SSAValue, SSAValue, FastMathFlagsAttr]:
        position = parser.pos
        predicate = parser.parse_identifier()
        if predicate not in cls.PREDICATES:
            parser.raise_error(
                f"{cls.name}: predicate must be one of {', '.join(cls.PREDICATES)}, not {predicate!r}",
                position,
            )
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        flags = NO_FLAGS
        if parser.parse_optional_keyword("fastmath"):
            flags = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        parser.parse_punctuation(":")
        operand_type = parser.parse_type()
        resolved = parser.resolve_operands([lhs, rhs], [operand_type, operand_type], position)
        return predicate, resolved[0], resolved[1], flags

    def _print_comparison(self, printer: Printer, flags: FastMathFlagsAttr) -> None:
        printer.print_string(f" {self.predicate_name}, ")
        printer.print_ssa_value(self.lhs)
        printer.print_string(", ")
        printer.print_ssa_value(self.rhs)
        if flags.data:
            printer.print_string(" fastmath")
            flags.print_parameter(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpFOp(_ComparisonOp):
    """Compares floats lane by lane: ``vector_ext.cmpf olt, %a, %b : vector<16xf32>`` gives ``vector<16xi1>``.

    Predicates as in ``arith.cmpf``: ``o...`` is false and ``u...`` is true where a lane is NaN.
    """

    name = "vector_ext.cmpf"
    PREDICATES: ClassVar[list[str]] = CMPF_COMPARISON_OPERATIONS
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    traits = traits_def(Pure())

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue, fastmath: FastMathFlagsAttr = NO_FLAGS) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": self._predicate(predicate), "fastmath": fastmath},
            result_types=[like(lhs.type, i1)],
        )

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(element_of(self.lhs.type), AnyFloat):
            raise VerifyException(f"vector_ext.cmpf: compares floats, not {self.lhs.type}; use vector_ext.cmpi")

    @classmethod
    def parse(cls, parser: Parser) -> CmpFOp:
        return cls(*cls._parse_comparison(parser))

    def print(self, printer: Printer) -> None:
        self._print_comparison(printer, self.fastmath)


@irdl_op_definition
class CmpIOp(_ComparisonOp):
    """Compares integers lane by lane: ``vector_ext.cmpi slt, %a, %b : vector<16xi32>`` gives ``vector<16xi1>``."""

    name = "vector_ext.cmpi"
    PREDICATES: ClassVar[list[str]] = CMPI_COMPARISON_OPERATIONS
    traits = traits_def(Pure())

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": self._predicate(predicate)},
            result_types=[like(lhs.type, i1)],
        )

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(element_of(self.lhs.type), IntegerType | IndexType):
            raise VerifyException(f"vector_ext.cmpi: compares integers, not {self.lhs.type}; use vector_ext.cmpf")

    @classmethod
    def parse(cls, parser: Parser) -> CmpIOp:
        position = parser.pos
        predicate, lhs, rhs, flags = cls._parse_comparison(parser)
        if flags.data:
            parser.raise_error("vector_ext.cmpi: fastmath flags need float values", position)
        return cls(predicate, lhs, rhs)

    def print(self, printer: Printer) -> None:
        self._print_comparison(printer, NO_FLAGS)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """``condition ? true_value : false_value``.

    ``vector_ext.select %c, %a, %b : vector<16xi1>, vector<16xf32>`` chooses lane by lane; a condition of type ``i1``
    chooses the whole value.
    """

    name = "vector_ext.select"
    T: ClassVar = VarConstraint("T", AnyAttr())

    condition = operand_def()
    true_value = operand_def(T)
    false_value = operand_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$condition `,` $true_value `,` $false_value (`fastmath` `` $fastmath^)? attr-dict"
        " `:` type($condition) `,` type($result)"
    )

    def __init__(
        self,
        condition: SSAValue,
        true_value: SSAValue,
        false_value: SSAValue,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
    ) -> None:
        super().__init__(
            operands=[condition, true_value, false_value],
            properties={"fastmath": fastmath},
            result_types=[true_value.type],
        )

    def verify_(self) -> None:
        verify_scalar_or_vector(self.name, "true_value", self.result.type)
        if self.condition.type not in (i1, like(self.result.type, i1)):
            raise VerifyException(
                f"vector_ext.select: condition must be i1 or {like(self.result.type, i1)}, not {self.condition.type}"
            )
        verify_float_flags(self.name, self.fastmath, self.result.type)
