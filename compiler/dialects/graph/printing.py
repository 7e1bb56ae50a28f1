"""`graph.print`: shows a tensor when the graph runs."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

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
        try:
            self.text.encode()
        except UnicodeError:
            raise VerifyException(
                f"graph.print: the label is {self.label.data!r}, but it must be text in ASCII, in which escapes "
                "stand for the rest, as in Python"
            ) from None


def label_text(escaped: str) -> str:
    """The label that stands in the IR as ``escaped``.

    Raises:
        UnicodeError: it is not ASCII, or an escape in it is wrong.
    """
    return escaped.encode("ascii").decode("unicode_escape")


def _escaped(label: str) -> str:
    return label.encode("unicode_escape").decode("ascii")
