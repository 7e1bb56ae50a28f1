"""`graph.constant`, and its data as text.

Up to 64 elements stand as a nested list: ``dense<[[1.5, nan], [-0.0, -inf]]>``; equal elements as one: ``dense<0.0>``;
everything else as its bytes, row-major and little-endian: ``dense<"0x0000C03F...">``. Text is chosen only where parsing
it gives the same bits back, so a NaN with a payload makes a constant print as bytes.
"""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Data
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...dtypes import DType
from ...types import TensorType, shape_text
from .types import GraphTensorType, graph_tensor

if TYPE_CHECKING:
    import numpy as np

LONGEST_LIST = 64
"""A constant of more elements is printed as its bytes."""

Elements: TypeAlias = "bool | int | float | list[Elements]"


@irdl_attr_definition
class DenseDataAttr(Data[bytes]):
    """The elements of a constant, row-major and little-endian; a bool is one byte, 0 or 1."""

    name = "graph.dense"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        with parser.in_angle_brackets():
            return _bytes_of_hex(parser, parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(_hex_text(self.data))


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor known while the graph is built.

    ``%0 = graph.constant dense<[1.0, 2.5]> : !graph.tensor<[2], f32, cpu>``
    """

    name = "graph.constant"

    value = prop_def(DenseDataAttr)
    result = result_def(GraphTensorType)
    traits = traits_def(Pure())

    def __init__(self, data: bytes, tensor_type: TensorType) -> None:
        super().__init__(properties={"value": DenseDataAttr(data)}, result_types=[graph_tensor(tensor_type)])

    @property
    def type(self) -> TensorType:
        """The type of the result."""
        return self.result.type.data

    def array(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only array of the result's shape; nothing is copied."""
        import numpy as np

        return np.frombuffer(self.value.data, self.type.dtype.to_numpy()).reshape([int(d) for d in self.type.shape])

    def verify_(self) -> None:
        if not self.type.is_static:
            raise VerifyException(f"graph.constant: every size must be a number, not {shape_text(self.type.shape)}")
        wanted = int(self.type.num_elements) * self.type.dtype.size_in_bytes
        if len(self.value.data) != wanted:
            raise VerifyException(
                f"graph.constant: {self.type} takes {wanted} bytes, but the data has {len(self.value.data)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        parser.parse_keyword("dense")
        start = parser.pos
        with parser.in_angle_brackets():
            text = parser.parse_optional_str_literal()
            data: bytes | Elements = _parse_elements(parser) if text is None else _bytes_of_hex(parser, text)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        result_type = parser.parse_type()
        if not isinstance(result_type, GraphTensorType):
            parser.raise_error(f"graph.constant: the result must be a !graph.tensor, not {result_type}", start)
        if not isinstance(data, bytes):
            try:
                data = _bytes_of_elements(data, result_type.data)
            except ValueError as error:
                parser.raise_error(f"graph.constant: {error}", start)
        op = cls(data, result_type.data)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dense<{self._data_text()}>")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def _data_text(self) -> str:
        data, size = self.value.data, self.type.dtype.size_in_bytes
        count = len(data) // size
        if not self.type.is_static or count * size != len(data) or count != int(self.type.num_elements):
            return _hex_text(data)  # not well-formed; print it all the same
        if count == 0:
            return "[]"
        elements = self.array()
        is_splat = data[:size] * count == data
        if count > LONGEST_LIST and not is_splat:
            return _hex_text(data)
        shown: Elements = elements.flat[0].item() if is_splat else elements.tolist()
        return _text(shown, self.type.dtype) if _bytes_of_elements(shown, self.type) == data else _hex_text(data)


def _text(elements: Elements, dtype: DType) -> str:
    if isinstance(elements, list):
        return f"[{', '.join(_text(element, dtype) for element in elements)}]"
    if isinstance(elements, bool):
        return str(elements).lower()
    if isinstance(elements, int) or not math.isfinite(elements):
        return str(elements)
    text = str(dtype.to_numpy().type(elements)) if dtype is DType.float32 else repr(elements)
    mantissa, e, exponent = text.partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent


def _parse_elements(parser: AttrParser) -> Elements:
    elements = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_elements(parser))
    if elements is not None:
        return elements
    if (truth := parser.parse_optional_boolean()) is not None:
        return truth
    sign = -1 if parser.parse_optional_characters("-") else 1
    if (name := parser.parse_optional_keyword_in(("inf", "nan"))) is not None:
        return sign * float(name)
    return sign * parser.parse_number(context_msg=" in a constant")


def _bytes_of_elements(elements: Elements, tensor_type: TensorType) -> bytes:
    """Raises ValueError where an element or the nesting does not fit the type."""
    import numpy as np

    dtype = tensor_type.dtype
    wrong = next((e for e in _leaves(elements) if not _fits(e, dtype)), None)
    if wrong is not None:
        raise ValueError(f"an element of {dtype} cannot be {str(wrong).lower()}")
    if not tensor_type.is_static:
        raise ValueError(f"every size must be a number, not {shape_text(tensor_type.shape)}")
    shape = tuple(int(size) for size in tensor_type.shape)
    array = np.array(elements, dtype=dtype.to_numpy())
    if array.ndim == 0:
        array = np.broadcast_to(array, shape)
    elif array.size == 0 and 0 in shape:
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"the list has shape {list(array.shape)}, the type {list(shape)}")
    return array.tobytes()


def _leaves(elements: Elements) -> list[bool | int | float]:
    return [x for e in elements for x in _leaves(e)] if isinstance(elements, list) else [elements]


def _fits(element: bool | int | float, dtype: DType) -> bool:
    if isinstance(element, bool) or dtype is DType.bool:
        return isinstance(element, bool) and dtype is DType.bool
    if dtype.is_float:
        return True
    low, high = dtype.integer_range
    return isinstance(element, int) and low <= element <= high


def _hex_text(data: bytes) -> str:
    return f'"0x{data.hex().upper()}"'


def _bytes_of_hex(parser: AttrParser, text: str) -> bytes:
    digits = text.removeprefix("0x")
    if digits == text or len(digits) % 2 or set(digits) - set(string.hexdigits):
        parser.raise_error(f'data in quotes must be bytes such as "0x00FF", not {text!r}')
    return bytes.fromhex(digits)
