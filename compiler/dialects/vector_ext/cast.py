"""Conversions between number types."""

from __future__ import annotations

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
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

from .types import NO_FLAGS, bit_width, element_of, lanes_of, verify_scalar_or_vector


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
        verify_scalar_or_vector(self.name, "operand", source)
        verify_scalar_or_vector(self.name, "result", result)
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
