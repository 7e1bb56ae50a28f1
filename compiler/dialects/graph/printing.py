"""`graph.print` and `graph.print_text`: show a tensor, or a line of text, when the graph runs."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...errors import GraphError, GraphTypeError
from ...types import TensorType
from .types import GraphTensorType, tensor_type


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Shows a tensor after each run, under a label, which may be any text.

    ``graph.print %0, "layer 0" : !graph.tensor<[n, 8], f32, cpu>``

    In the IR the label is ASCII, with Python's escapes: xDSL reads a string that holds anything else as bytes.

    It writes to the world outside, so no pass drops it, joins it with an equal one or changes its place among others of
    its kind. Its operand is treated as one more output of the graph.
    """

    name = "graph.print"

    value = operand_def(GraphTensorType)
    label = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $label attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, label: str) -> None:
        super().__init__(operands=[value], properties={"label": StringAttr(_escaped(label))})

    @property
    def type(self) -> TensorType:
        """The type of what is printed."""
        return tensor_type(self.value)

    @property
    def text(self) -> str:
        """The label as the user gave it."""
        return label_text(self.label.data)

    def verify_(self) -> None:
        _verify_text("graph.print: the label", self.label.data)


@irdl_op_definition
class PrintTextOp(IRDLOperation):
    """Shows a line of text, at its place among all that is printed.

    ``graph.print_text "the second half"``

    In the IR the text is ASCII, with Python's escapes.
    """

    name = "graph.print_text"

    line = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$line attr-dict"

    def __init__(self, text: str) -> None:
        super().__init__(properties={"line": StringAttr(_escaped(text))})

    @property
    def text(self) -> str:
        """The text as the user gave it."""
        return label_text(self.line.data)

    def verify_(self) -> None:
        _verify_text("graph.print_text: the text", self.line.data)


def _verify_text(subject: str, escaped: str) -> None:
    try:
        label_text(escaped).encode()
    except UnicodeError:
        raise VerifyException(
            f"{subject} is {escaped!r}, but it must be text in ASCII, in which escapes stand for the rest, as in Python"
        ) from None


def check_text(subject: str, role: str, text: object) -> None:
    """Raise a GraphTypeError or GraphError unless ``text`` is Unicode text; ``role`` says what it is."""
    if not isinstance(text, str):
        raise GraphTypeError(f"{subject}: {role} must be a str, not {text!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise GraphError(f"{subject}: {role} {text!r} holds half of a surrogate pair, which is no character")


def label_text(escaped: str) -> str:
    """The label that stands in the IR as ``escaped``.

    Raises:
        UnicodeError: it is not ASCII, or an escape in it is wrong.
    """
    return escaped.encode("ascii").decode("unicode_escape")


def _escaped(label: str) -> str:
    return label.encode("unicode_escape").decode("ascii")
