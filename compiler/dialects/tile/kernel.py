"""Kernels of the tile dialect: a grid of programs, its launch, and what the entry function of a graph holds."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttr,
    IndexType,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryWriteEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .printing import PrintOp
from .types import GLOBAL, RefType

PARALLEL = "parallel"
ORDERED = "ordered"


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends one program of a kernel."""

    name = "tile.return"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A function run once for each point of a grid.

    The body's arguments are the kernel's own (references and scalars), then one program id and one grid size for
    each axis. Programs run as if one after another, row-major, the last axis fastest; along axes marked ``parallel``
    they are independent and may run at the same time.

    ``tile.kernel @scale(%x: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] { ... tile.return }``
    """

    name = "tile.kernel"
    sym_name = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self, name: str, argument_types: Sequence[Attribute], axes: Sequence[str], body: Region | None = None
    ) -> None:
        if body is None:
            ids = [IndexType()] * (2 * len(axes))
            body = Region(Block(arg_types=[*argument_types, *ids]))
        super().__init__(
            properties={"sym_name": StringAttr(name), "axes": ArrayAttr([StringAttr(axis) for axis in axes])},
            regions=[body],
        )

    @property
    def grid_rank(self) -> int:
        return len(self.axes)

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        """The kernel's own arguments, without program ids and grid sizes."""
        return self.body.block.args[: len(self.body.block.args) - 2 * self.grid_rank]

    @property
    def program_ids(self) -> tuple[BlockArgument, ...]:
        start = len(self.arguments)
        return self.body.block.args[start : start + self.grid_rank]

    @property
    def grid_sizes(self) -> tuple[BlockArgument, ...]:
        return self.body.block.args[len(self.arguments) + self.grid_rank :]

    def verify_(self) -> None:
        args = self.body.block.args
        for axis in self.axes:
            if axis.data not in (PARALLEL, ORDERED):
                raise VerifyException(f"tile.kernel: an axis is {PARALLEL!r} or {ORDERED!r}, not {axis.data!r}")
        if len(args) < 2 * self.grid_rank or any(
            not isinstance(arg.type, IndexType) for arg in (*self.program_ids, *self.grid_sizes)
        ):
            raise VerifyException(
                f"tile.kernel @{self.sym_name.data}: needs an index program id and grid size for each axis"
            )
        if any(axis.data == PARALLEL for axis in self.axes) and any(isinstance(op, PrintOp) for op in self.body.walk()):
            raise VerifyException(
                f"tile.kernel @{self.sym_name.data}: it prints, so its programs run in order; make all axes {ORDERED!r}"
            )
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException(f"tile.kernel @{self.sym_name.data}: the body must end in tile.return")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_block_argument)

        def print_axis(pair: tuple[BlockArgument, BlockArgument]) -> None:
            printer.print_block_argument(pair[0], print_type=False)
            printer.print_string(" of ")
            printer.print_block_argument(pair[1], print_type=False)

        printer.print_string(" grid")
        with printer.in_parens():
            printer.print_list(zip(self.program_ids, self.grid_sizes, strict=True), print_axis)
        printer.print_string(f" axes [{', '.join(axis.data for axis in self.axes)}]")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("grid")
        index = IndexType()

        def axis() -> tuple[Parser.Argument, Parser.Argument]:
            program_id = parser.parse_argument(expect_type=False)
            parser.parse_keyword("of")
            return program_id.resolve(index), parser.parse_argument(expect_type=False).resolve(index)

        grid = parser.parse_comma_separated_list(parser.Delimiter.PAREN, axis)
        parser.parse_keyword("axes")
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        ids = [program_id for program_id, _ in grid]
        sizes = [size for _, size in grid]
        body = parser.parse_region([*arguments, *ids, *sizes])
        kernel = cls(name.data, [], axes, body)
        if attributes is not None:
            kernel.attributes |= attributes.data
        return kernel


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a kernel over a grid. A grid with a size of zero or less runs nothing.

    No buffer stands for two arguments of which the kernel writes to one.
    """

    name = "tile.launch"
    kernel = prop_def(FlatSymbolRefAttr)
    grid = var_operand_def(IndexType)
    arguments = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$kernel `grid` `(` $grid `)` `(` $arguments `)` attr-dict `:` type($arguments)"

    def __init__(self, kernel: str, grid: Sequence[SSAValue], arguments: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(grid), list(arguments)], properties={"kernel": SymbolRefAttr(kernel)})


@irdl_op_definition
class BufferOp(IRDLOperation):
    """Memory for a value between kernels, its extents written in symbolic dims. The contents start undefined, in each
    round of a loop that it stands in.

    ``%sums = tile.buffer ["out_batch_seq", "(vocab + 16383) // 16384"] : !tile.ref<[?, ?], f32, global>``
    """

    name = "tile.buffer"
    shape = prop_def(ArrayAttr[StringAttr])
    result = result_def(RefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$shape attr-dict `:` type($result)"

    def __init__(self, shape: Sequence[str], result_type: RefType) -> None:
        super().__init__(
            properties={"shape": ArrayAttr([StringAttr(text) for text in shape])}, result_types=[result_type]
        )

    def verify_(self) -> None:
        result = self.result.type
        assert isinstance(result, RefType)
        if len(self.shape) != result.rank or result.space.data != GLOBAL:
            raise VerifyException(f"tile.buffer: {len(self.shape)} dims for {result}, which must be global")


@irdl_op_definition
class TransferOp(IRDLOperation):
    """Copies a buffer to one of as many elements on another device, in row-major order of both."""

    name = "tile.transfer"
    source = operand_def(RefType)
    target = operand_def(RefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$source `to` $target attr-dict `:` type($source) `to` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue) -> None:
        super().__init__(operands=[source, target])


@irdl_op_definition
class SetDimOp(IRDLOperation):
    """Gives a symbolic dim its value, computed from data; buffers and launches that use it come after."""

    name = "tile.set_dim"
    symbol = prop_def(StringAttr)
    value = operand_def(IndexType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$symbol `,` $value attr-dict"

    def __init__(self, symbol: str, value: SSAValue) -> None:
        super().__init__(operands=[value], properties={"symbol": StringAttr(symbol)})


DEVICE = "halfulp.device"
"""On a ``tile.buffer``: the device that its memory is on, ``gpu:0``; the host where it is absent."""

MAX_CHECK_VALUES = 4


@irdl_op_definition
class CheckOp(IRDLOperation):
    """Fails the whole execution with ``message`` where the condition is false.

    Each ``{}`` of the message takes one value (index or integer, at most 4). The program goes on, since no access
    can leave memory; the first failing program of the first failing launch is reported, and of its checks the
    first that it comes to. ``bounds`` behind the message says that it is about an index that is out of bounds.
    """

    name = "tile.check"
    condition = operand_def(i1)
    message = prop_def(StringAttr)
    bounds = opt_prop_def(UnitAttr)
    values = var_operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition `,` $message (`bounds` $bounds^)? (`values` $values^ `:` type($values))? attr-dict"

    def __init__(
        self, condition: SSAValue, message: str, values: Sequence[SSAValue] = (), *, is_bounds: bool = False
    ) -> None:
        properties: dict[str, Attribute] = {"message": StringAttr(message)}
        if is_bounds:
            properties["bounds"] = UnitAttr()
        super().__init__(operands=[condition, list(values)], properties=properties)

    @property
    def is_bounds(self) -> bool:
        """Whether it is about an index."""
        return self.bounds is not None

    def verify_(self) -> None:
        for value in self.values:
            if not isinstance(value.type, IntegerType | IndexType):
                raise VerifyException(f"tile.check: a value must be a scalar integer or index, not {value.type}")
        holes = self.message.data.count("{}")
        if holes != len(self.values) or holes > MAX_CHECK_VALUES:
            raise VerifyException(
                f"tile.check: the message has {holes} holes for {len(self.values)} values (at most {MAX_CHECK_VALUES})"
            )


KERNEL_OPS: list[type[Operation]] = [KernelOp, LaunchOp, ReturnOp, BufferOp, SetDimOp, CheckOp, TransferOp]

__all__ = [
    "BufferOp",
    "CheckOp",
    "DEVICE",
    "KERNEL_OPS",
    "KernelOp",
    "LaunchOp",
    "MAX_CHECK_VALUES",
    "ORDERED",
    "PARALLEL",
    "ReturnOp",
    "SetDimOp",
    "TransferOp",
]
