"""The ``vector_ext`` dialect: what upstream's ``arith`` and ``vector`` lack on 1-D vectors at the loops stage.

Upstream's comparisons always give one ``i1``, its ``select`` takes one ``i1``, its casts take scalars only, and
there is no gather. The ops here work on scalars and 1-D vectors alike, so a lowering need not tell the two apart.
Each is total: casts saturate, and a masked-off lane touches no memory.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

NO_FLAGS = FastMathFlagsAttr("none")


def lanes_of(value_type: Attribute) -> int:
    """Lanes of a 1-D vector type; 0 for a scalar type."""
    return value_type.shape.data[0].data if isinstance(value_type, VectorType) else 0


def element_of(value_type: Attribute) -> Attribute:
    """Element type of a vector type; a scalar type is its own element."""
    return value_type.element_type if isinstance(value_type, VectorType) else value_type


def like(value_type: Attribute, element: Attribute) -> Attribute:
    """``element``, with the vector shape of ``value_type`` if it has one."""
    return VectorType(element, value_type.shape) if isinstance(value_type, VectorType) else element


def _verify_scalar_or_vector(op_name: str, operand: str, value_type: Attribute) -> None:
    if isinstance(value_type, VectorType) and (
        len(value_type.shape) != 1 or value_type.get_num_scalable_dims() or lanes_of(value_type) < 1
    ):
        raise VerifyException(f"{op_name}: {operand} must be a scalar or a fixed 1-D vector, not {value_type}")


def _verify_float_flags(op_name: str, flags: FastMathFlagsAttr, value_type: Attribute) -> None:
    if flags.data and not isinstance(element_of(value_type), AnyFloat):
        raise VerifyException(f"{op_name}: fastmath flags need float values, not {value_type}")


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
        _verify_scalar_or_vector(self.name, "lhs", self.lhs.type)
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
        _verify_scalar_or_vector(self.name, "true_value", self.result.type)
        if self.condition.type not in (i1, like(self.result.type, i1)):
            raise VerifyException(
                f"vector_ext.select: condition must be i1 or {like(self.result.type, i1)}, not {self.condition.type}"
            )
        _verify_float_flags(self.name, self.fastmath, self.result.type)


class CastKind(StrEnum):
    """What a cast does. ``si`` and ``ui`` say whether integers count as signed; ``index`` counts as 64 bits."""

    SITOFP = "sitofp"
    UITOFP = "uitofp"
    FPTOSI_SAT = "fptosi_sat"
    FPTOUI_SAT = "fptoui_sat"
    EXTSI = "extsi"
    EXTUI = "extui"
    TRUNCI = "trunci"
    EXTF = "extf"
    TRUNCF = "truncf"
    INDEX_CAST = "index_cast"
    INDEX_CASTUI = "index_castui"


_INTEGER_TO_FLOAT = (CastKind.SITOFP, CastKind.UITOFP)
_FLOAT_TO_INTEGER = (CastKind.FPTOSI_SAT, CastKind.FPTOUI_SAT)
_INDEX_CASTS = (CastKind.INDEX_CAST, CastKind.INDEX_CASTUI)
_WIDENING = (CastKind.EXTSI, CastKind.EXTUI, CastKind.EXTF)


@irdl_attr_definition
class CastKindAttr(EnumAttribute[CastKind]):
    """The kind of a ``vector_ext.cast``, written as a bare word."""

    name = "vector_ext.cast_kind"


def bit_width(element: Attribute) -> int:
    """Bits of a scalar number type; ``index`` has 64. Raises VerifyException for anything else."""
    if isinstance(element, IndexType):
        return 64
    if isinstance(element, IntegerType):
        return int(element.width.data)
    if isinstance(element, AnyFloat):
        return int(element.bitwidth)
    raise VerifyException(f"{element} is not a number type")


@irdl_op_definition
class CastOp(IRDLOperation):
    """Converts numbers, lane by lane: ``vector_ext.cast %x fptosi_sat : vector<16xf32> to vector<16xi32>``.

    Every cast has a result for every input: to a float type it rounds once, to nearest even, from the source type
    (also to f16 and bf16, with subnormals and NaN kept); to an integer type it truncates towards zero, saturates,
    and takes NaN to 0. ``trunci`` keeps the low bits. ``index_cast`` sign-extends or truncates between ``index``
    and an integer type, ``index_castui`` zero-extends.
    """

    name = "vector_ext.cast"
    operand = operand_def()
    kind = prop_def(CastKindAttr)
    fastmath = prop_def(FastMathFlagsAttr, default_value=NO_FLAGS)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand $kind (`fastmath` `` $fastmath^)? attr-dict `:` type($operand) `to` type($result)"

    def __init__(
        self,
        operand: SSAValue,
        kind: CastKind | str,
        result_type: Attribute,
        fastmath: FastMathFlagsAttr = NO_FLAGS,
    ) -> None:
        super().__init__(
            operands=[operand],
            properties={"kind": CastKindAttr(CastKind(kind)), "fastmath": fastmath},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        source, result = self.operand.type, self.result.type
        _verify_scalar_or_vector(self.name, "operand", source)
        _verify_scalar_or_vector(self.name, "result", result)
        if lanes_of(source) != lanes_of(result):
            raise VerifyException(f"vector_ext.cast: lanes must not change from {source} to {result}")
        kind = self.kind.data
        self._verify_element_kinds(kind, element_of(source), element_of(result))
        if self.fastmath.data and kind not in (CastKind.EXTF, CastKind.TRUNCF):
            raise VerifyException(
                f"vector_ext.cast: fastmath flags need extf or truncf (float to float), not {kind.value}"
            )

    @staticmethod
    def _verify_element_kinds(kind: CastKind, source: Attribute, result: Attribute) -> None:
        if kind in _INDEX_CASTS:
            if isinstance(source, IndexType) == isinstance(result, IndexType) or not (
                isinstance(source, IndexType | IntegerType) and isinstance(result, IndexType | IntegerType)
            ):
                raise VerifyException(
                    f"vector_ext.cast: {kind.value} casts between index and an integer type, not {source} to {result}"
                )
            return
        from_float = kind in _FLOAT_TO_INTEGER or kind in (CastKind.EXTF, CastKind.TRUNCF)
        to_float = kind in _INTEGER_TO_FLOAT or kind in (CastKind.EXTF, CastKind.TRUNCF)
        for value, is_float, side in ((source, from_float, "from"), (result, to_float, "to")):
            wanted: type | tuple[type, ...] = AnyFloat if is_float else IntegerType  # type: ignore[assignment]
            if not isinstance(value, wanted):
                raise VerifyException(
                    f"vector_ext.cast: {kind.value} casts {side} {'a float' if is_float else 'an integer'} type,"
                    f" not {value}"
                )
        if kind in _INTEGER_TO_FLOAT or kind in _FLOAT_TO_INTEGER:
            return
        wider = bit_width(result) - bit_width(source)
        if (wider <= 0) if kind in _WIDENING else (wider >= 0):
            direction = "wider" if kind in _WIDENING else "narrower"
            raise VerifyException(f"vector_ext.cast: {kind.value} needs a {direction} result, not {source} to {result}")


def _verify_indexed(op_name: str, base: Attribute, indices: Attribute, mask: Attribute, value: Attribute) -> None:
    """Gather and scatter: flat memref, vectors of the same length, element types that agree."""
    if not isinstance(base, MemRefType) or len(base.shape) != 1:
        raise VerifyException(f"{op_name}: base must be a flat memref<?xT>, not {base}")
    if not isinstance(value, VectorType) or len(value.shape) != 1:
        raise VerifyException(f"{op_name}: value must be a 1-D vector, not {value}")
    if value.element_type != base.element_type:
        raise VerifyException(
            f"{op_name}: vector element type must be that of the memref, {base.element_type}, not {value.element_type}"
        )
    if mask != like(value, i1):
        raise VerifyException(f"{op_name}: mask must be {like(value, i1)}, not {mask}")
    width = element_of(indices)
    if lanes_of(indices) != lanes_of(value) or width not in (IntegerType(32), IntegerType(64)):
        raise VerifyException(
            f"{op_name}: indices must be vector<{lanes_of(value)}xi32> or vector<{lanes_of(value)}xi64>, not {indices}"
        )


_FLAT_MEMREF = BaseAttr(MemRefType)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Loads ``base[indices[lane]]`` where the mask is set, and takes the lane of ``pass_thru`` elsewhere.

    Indices count elements and are signed; a lane that is off reads nothing, whatever its index::

        %v = vector_ext.gather %base[%indices], %mask, %pass
            : memref<?xf32>, vector<16xi64>, vector<16xi1> into vector<16xf32>
    """

    name = "vector_ext.gather"
    T: ClassVar = VarConstraint("T", BaseAttr(VectorType))

    base = operand_def(_FLAT_MEMREF)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    pass_thru = operand_def(T)
    result = result_def(T)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
        " `:` type($base) `,` type($indices) `,` type($mask) `into` type($result)"
    )

    def __init__(self, base: SSAValue, indices: SSAValue, mask: SSAValue, pass_thru: SSAValue) -> None:
        super().__init__(operands=[base, indices, mask, pass_thru], result_types=[pass_thru.type])

    def verify_(self) -> None:
        _verify_indexed(self.name, self.base.type, self.indices.type, self.mask.type, self.result.type)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Stores the lanes of ``value`` whose mask is set to ``base[indices[lane]]``, in ascending order of lanes::

    vector_ext.scatter %v, %base[%indices], %mask
        : vector<16xf32>, memref<?xf32>, vector<16xi64>, vector<16xi1>
    """

    name = "vector_ext.scatter"
    value = operand_def(BaseAttr(VectorType))
    base = operand_def(_FLAT_MEMREF)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $base `[` $indices `]` `,` $mask attr-dict"
        " `:` type($value) `,` type($base) `,` type($indices) `,` type($mask)"
    )

    def __init__(self, value: SSAValue, base: SSAValue, indices: SSAValue, mask: SSAValue) -> None:
        super().__init__(operands=[value, base, indices, mask])

    def verify_(self) -> None:
        _verify_indexed(self.name, self.base.type, self.indices.type, self.mask.type, self.value.type)


@irdl_op_definition
class BitmaskOp(IRDLOperation):
    """The lanes of a mask as bits of an integer, lane 0 lowest: ``vector_ext.bitmask %m : vector<16xi1> to i16``."""

    name = "vector_ext.bitmask"
    operand = operand_def(BaseAttr(VectorType))
    result = result_def(IntegerType)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def __init__(self, operand: SSAValue) -> None:
        super().__init__(operands=[operand], result_types=[IntegerType(lanes_of(operand.type))])

    def verify_(self) -> None:
        if element_of(self.operand.type) != i1 or not lanes_of(self.operand.type):
            raise VerifyException(f"vector_ext.bitmask: operand must be a vector of i1, not {self.operand.type}")
        wanted = IntegerType(lanes_of(self.operand.type))
        if self.result.type != wanted:
            raise VerifyException(
                f"vector_ext.bitmask: result must have one bit per lane, {wanted}, not {self.result.type}"
            )


VectorExt = Dialect(
    "vector_ext",
    [CmpFOp, CmpIOp, SelectOp, CastOp, GatherOp, ScatterOp, BitmaskOp],
    [CastKindAttr],
)
