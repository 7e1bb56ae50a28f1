"""What holds a graph together: `graph.graph`, `graph.output`, `graph.weight`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...dims import is_legal_name
from ...errors import quoted_list
from ...types import TensorType, shape_text
from .call import strings, words
from .symbols import input_symbols, verify_symbols
from .types import GraphBufferType, GraphTensorType, graph_input, graph_tensor


@irdl_op_definition
class GraphOp(IRDLOperation):
    """A whole graph: named inputs, one block, `graph.output` at its end.

    ``graph.graph @g(%x: !graph.tensor<[n], f32, cpu>) { ... }``: the inputs have the names that are printed, and
    a caller may pass them by these names.
    """

    name = "graph.graph"

    sym_name = prop_def(StringAttr)
    input_names = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, inputs: Mapping[str, TensorType], region: Region | None = None) -> None:
        if region is None:
            region = Region(Block(arg_types=[graph_input(input_type) for input_type in inputs.values()]))
        _name_values(region.block.args, list(inputs))
        super().__init__(
            properties={"sym_name": StringAttr(name), "input_names": strings(list(inputs))}, regions=[region]
        )

    @property
    def inputs(self) -> dict[str, BlockArgument]:
        """The inputs by name, in order."""
        return dict(zip(words(self.input_names), self.body.block.args, strict=True))

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The values that the graph returns."""
        output = self.body.block.last_op
        assert isinstance(output, OutputOp)
        return tuple(output.values)

    @property
    def weights(self) -> dict[str, WeightOp]:
        """The weights by name, in order."""
        return {op.weight_name.data: op for op in self.body.block.ops if isinstance(op, WeightOp)}

    def verify_(self) -> None:
        self._verify_inputs()
        if not isinstance(self.body.block.last_op, OutputOp):
            raise VerifyException(f"graph.graph @{self.sym_name.data}: its last op must be graph.output")
        seen: dict[str, WeightOp] = {}
        for op in self.body.walk():
            if isinstance(op, WeightOp) and seen.setdefault(op.weight_name.data, op) is not op:
                raise VerifyException(f'graph.weight "{op.weight_name.data}": a graph names a weight once')
        names = words(self.input_names)
        verify_symbols(self.body.block, input_symbols((arg.type for arg in self.body.block.args), names))

    def _verify_inputs(self) -> None:
        names = words(self.input_names)
        subject = f"graph.graph @{self.sym_name.data}"
        if len(names) != len(self.body.block.args):
            raise VerifyException(f"{subject}: {len(self.body.block.args)} inputs, but {len(names)} names")
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise VerifyException(f"{subject}: the inputs' names must differ, but {quoted_list(repeated)} is repeated")
        for name, argument in zip(names, self.body.block.args, strict=True):
            if not is_legal_name(name):
                raise VerifyException(f"{subject}: {name!r} cannot name an input; use letters, digits and '_'")
            if not isinstance(argument.type, GraphTensorType | GraphBufferType):
                raise VerifyException(
                    f"{subject}: input '{name}' must be a !graph.tensor or a !graph.buffer, not {argument.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> GraphOp:
        name = parser.parse_symbol_name().data
        inputs: list[tuple[Parser.Argument, str]] = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_input(parser)
        )
        attributes = parser.parse_optional_attr_dict_with_keyword(("sym_name", "input_names"))
        region = parser.parse_region([argument for argument, _ in inputs])
        op = cls.create(
            properties={"sym_name": StringAttr(name), "input_names": strings([name for _, name in inputs])},
            attributes=attributes.data if attributes else {},
            regions=[region],
        )
        _name_values(region.block.args, [name for _, name in inputs])
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.inputs.items(), lambda item: _print_input(printer, *item))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _name_values(arguments: Sequence[BlockArgument], names: Sequence[str]) -> None:
    """Let the inputs' values be printed under the inputs' names, as far as these can name a value."""
    for argument, name in zip(arguments, names, strict=True):
        if is_legal_name(name):
            argument.name_hint = name


def _parse_input(parser: Parser) -> tuple[Parser.Argument, str]:
    argument = parser.parse_argument(expect_type=False)
    name = argument.name.text[1:]
    if parser.parse_optional_keyword("as"):
        name = parser.parse_str_literal(": the name of an input")
    parser.parse_punctuation(":")
    return Parser.Argument(argument.name, parser.parse_type(), parser.parse_optional_location()), name


def _print_input(printer: Printer, name: str, argument: BlockArgument) -> None:
    if printer.print_ssa_value(argument) != name:  # xDSL drops a number at the end, and no two values share a name
        printer.print_string(" as ")
        printer.print_string_literal(name)
    printer.print_string(": ")
    printer.print_attribute(argument.type)
    if printer.print_debuginfo:
        printer.print_string(" ")
        printer.print_attribute(argument.location)


@irdl_op_definition
class OutputOp(IRDLOperation):
    """Ends a graph: the values that it returns, in order."""

    name = "graph.output"

    values = var_operand_def(GraphTensorType)
    traits = traits_def(IsTerminator(), HasParent(GraphOp))
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class WeightOp(IRDLOperation):
    """A tensor that is given when the graph is loaded, by its name.

    ``%w = graph.weight "layers.0.norm" : !graph.tensor<[576], f32, cpu>``
    """

    name = "graph.weight"

    weight_name = prop_def(StringAttr)
    result = result_def(GraphTensorType)
    traits = traits_def(Pure())
    assembly_format = "$weight_name attr-dict `:` type($result)"

    def __init__(self, name: str, tensor_type: TensorType) -> None:
        super().__init__(properties={"weight_name": StringAttr(name)}, result_types=[graph_tensor(tensor_type)])

    @property
    def type(self) -> TensorType:
        """The type of the weight."""
        return self.result.type.data

    def verify_(self) -> None:
        if not self.type.is_static:
            raise VerifyException(
                f'graph.weight "{self.weight_name.data}": every size must be a number, '
                f"not {shape_text(self.type.shape)}"
            )
