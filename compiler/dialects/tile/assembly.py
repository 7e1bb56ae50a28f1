"""Pieces of assembly format that upstream lacks: a plain list of integers, a bare word."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, StringAttr, i64
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

Integers = DenseArrayBase[IntegerType]


def integers(values: Sequence[int]) -> Integers:
    """A list of integers as an attribute."""
    return DenseArrayBase.from_list(i64, list(values))


def integer_values(attribute: Integers) -> tuple[int, ...]:
    """The integers of such a list."""
    return tuple(int(n) for n in attribute.get_values())


@irdl_custom_directive
class IntegerList(CustomDirective):
    """``[1, 4096]`` for a dense i64 array."""

    values: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        numbers = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
        )
        self.values.set(state, integers(numbers))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        attribute = self.values.get(op)
        assert isa(attribute, DenseArrayBase[IntegerType])
        state.print_whitespace(printer)
        printer.print_string(str(list(integer_values(attribute))))


@irdl_custom_directive
class Word(CustomDirective):
    """A string attribute written without quotes: ``blocked``, ``maximum``."""

    word: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.word.set(state, StringAttr(parser.parse_identifier()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        attribute = self.word.get(op)
        assert isinstance(attribute, StringAttr)
        state.print_whitespace(printer)
        printer.print_string(attribute.data)
