"""The tensor type of the graph dialect: `halfulp.compiler.types.TensorType` as an attribute."""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Data, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...device import DeviceRef
from ...dims import AlgebraicDim, Dim, parse_dim
from ...dtypes import DType
from ...errors import GraphError, GraphTypeError
from ...types import BufferType, TensorType


@irdl_attr_definition
class GraphTensorType(Data[TensorType], TypeAttribute):
    """``!graph.tensor<[batch, "2*seq + 1", 8], f32, cpu>``: shape, element type, device.

    An expression stands in quotes, a symbol and a number do not. Element types are ``bool``, ``i8`` to ``i64``
    (signed), ``ui8`` to ``ui64``, ``f16``, ``bf16``, ``f32``, ``f64``.
    """

    name = "graph.tensor"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorType:
        return _parse_tensor(parser)

    def print_parameter(self, printer: Printer) -> None:
        _print_tensor(printer, self.data)


@irdl_attr_definition
class GraphBufferType(Data[TensorType], TypeAttribute):
    """``!graph.buffer<[n, 8], f32, cpu>``: memory of the caller's that holds a tensor, and may be changed."""

    name = "graph.buffer"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorType:
        tensor = _parse_tensor(parser)
        return BufferType(tensor.dtype, tensor.shape, tensor.device)

    def print_parameter(self, printer: Printer) -> None:
        _print_tensor(printer, self.data)


def _parse_tensor(parser: AttrParser) -> TensorType:
    def size() -> Dim:
        if (number := parser.parse_optional_integer(allow_boolean=False)) is not None:
            return Dim(number)
        if (name := parser.parse_optional_identifier()) is not None:
            return Dim(name)
        return parse_dim(parser.parse_str_literal(": a size is a number, a name or an expression in quotes"))

    try:
        with parser.in_angle_brackets():
            shape = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, size)
            parser.parse_punctuation(",")
            dtype = DType.from_ir_name(parser.parse_identifier())
            parser.parse_punctuation(",")
            return TensorType(dtype, shape, parse_device(parser))
    except (GraphError, GraphTypeError) as error:
        parser.raise_error(error.message)


def _print_tensor(printer: Printer, tensor: TensorType) -> None:
    with printer.in_angle_brackets():
        with printer.in_square_brackets():
            printer.print_list(tensor.shape, lambda dim: printer.print_string(_size_text(dim)))
        printer.print_string(f", {tensor.dtype.ir_name}, {tensor.device}")


@lru_cache(maxsize=4096)
def graph_tensor(tensor_type: TensorType) -> GraphTensorType:
    """The attribute of a tensor type; equal types share one object."""
    return GraphTensorType.new(tensor_type)


def graph_input(input_type: TensorType) -> GraphTensorType | GraphBufferType:
    """The attribute of the type of an input, which may be a buffer."""
    return GraphBufferType.new(input_type) if isinstance(input_type, BufferType) else graph_tensor(input_type)


def tensor_type(value: SSAValue) -> TensorType:
    """The tensor type of a value of the graph dialect; a `BufferType` for a buffer."""
    assert isinstance(value.type, GraphTensorType | GraphBufferType)
    return value.type.data


def parse_device(parser: AttrParser) -> DeviceRef:
    """``cpu`` or ``gpu:N``."""
    text = parser.parse_identifier(context_msg=": a device is cpu or gpu:N")
    if text == "gpu":
        parser.parse_punctuation(":")
        text += f":{parser.parse_integer(allow_boolean=False, allow_negative=False)}"
    try:
        return DeviceRef.parse(text)
    except GraphError as error:
        parser.raise_error(error.message)


def _size_text(dim: Dim) -> str:
    return f'"{dim}"' if isinstance(dim, AlgebraicDim) else str(dim)
