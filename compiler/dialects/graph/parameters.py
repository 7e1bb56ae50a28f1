"""Parameters of ops and kernels: Python values on the user's side, attributes in the IR."""

from __future__ import annotations

import numbers
import operator
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, FloatAttr, IntegerAttr, NoneType, StringAttr, f64, i1, i64
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...dims import Dim, parse_dim
from ...dtypes import DType
from ...errors import GraphError, GraphTypeError

Parameter: TypeAlias = "bool | int | float | str | DType | Dim | tuple[Parameter, ...] | None"


@irdl_attr_definition
class DTypeAttr(Data[DType]):
    """An element type as a parameter: ``#graph.dtype<ui32>``."""

    name = "graph.dtype"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DType:
        with parser.in_angle_brackets():
            try:
                return DType.from_ir_name(parser.parse_identifier())
            except GraphTypeError as error:
                parser.raise_error(error.message)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.ir_name)


@irdl_attr_definition
class DimAttr(Data[Dim]):
    """A size as a parameter: ``#graph.dim<"2*seq + 1">``."""

    name = "graph.dim"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dim:
        with parser.in_angle_brackets():
            try:
                return parse_dim(parser.parse_str_literal())
            except GraphError as error:
                parser.raise_error(error.message)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def parameter_attribute(value: Any) -> Attribute:
    """The attribute that holds a parameter: a bool, int, float, str, DType, Dim, None or a sequence of them.

    Raises:
        GraphTypeError: a value of another kind.
        GraphError: an int beyond 64 bits.
    """
    match value:
        case None:
            return NoneType()
        case str():
            return StringAttr(value)
        case DType():
            return DTypeAttr(value)
        case Dim():
            return DimAttr(value)
        case list() | tuple():
            return ArrayAttr(parameter_attribute(item) for item in value)
    if type(value).__name__ in ("bool", "bool_"):  # the second is numpy's, which need not be imported for this
        return BoolAttr.from_bool(bool(value))
    if hasattr(value, "__index__"):
        number = operator.index(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise GraphError(f"an integer parameter must fit in 64 bits, not {number}")
        return IntegerAttr(number, i64)
    if isinstance(value, numbers.Real):
        return FloatAttr(float(value), f64)
    raise GraphTypeError(f"a parameter must be a bool, int, float, str, DType, Dim or a list of them, not {value!r}")


def parameter_value(attribute: Attribute) -> Parameter:
    """The Python value of a parameter's attribute; a sequence comes back as a tuple.

    Raises:
        GraphTypeError: an attribute that no parameter has.
    """
    match attribute:
        case StringAttr() | DTypeAttr() | DimAttr():
            return attribute.data
        case ArrayAttr():
            return tuple(parameter_value(item) for item in cast("ArrayAttr[Attribute]", attribute))
        case IntegerAttr():
            value = attribute.value.data
            return bool(value) if attribute.type == i1 else value
        case FloatAttr():
            return attribute.value.data
        case NoneType():
            return None
    raise GraphTypeError(f"{attribute} is no parameter of an op")
