"""Printing: what shows values while a kernel or the entry function runs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...dtypes import DType
from ...errors import GraphTypeError
from .memory import WindowOp
from .types import RefType, element_type


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Shows a line: the text, each ``{}`` of it replaced by one value, a scalar or a block.

    ``tile.print "row {}: {}" values %i, %x : index, tensor<8xf32> as ["i64", "f32"]``

    The types of elements stand there too, since integers of the IR have no sign. What is printed comes in the order of
    the program, so a kernel that prints has no parallel axes. The text is ASCII, with Python's escapes; without values
    it has no holes, and is shown as it is.
    """

    name = "tile.print"
    text = prop_def(StringAttr)
    dtypes = prop_def(ArrayAttr[StringAttr])
    values = var_operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$text (`values` $values^ `:` type($values))? `as` $dtypes attr-dict"

    def __init__(self, text: str, values: Sequence[SSAValue], dtypes: Sequence[DType]) -> None:
        names = ArrayAttr([StringAttr(dtype.ir_name) for dtype in dtypes])
        super().__init__(operands=[list(values)], properties={"text": StringAttr(escaped(text)), "dtypes": names})

    @property
    def element_types(self) -> tuple[DType, ...]:
        """The type of each value's elements."""
        return tuple(DType.from_ir_name(name.data) for name in self.dtypes)

    def verify_(self) -> None:
        holes = unescaped(self.text.data).count("{}")
        if len(self.values) != len(self.dtypes) or (self.values and holes != len(self.values)):
            raise VerifyException(
                f"tile.print: the text has {holes} holes for {len(self.values)} values of {len(self.dtypes)} types"
            )
        for value, name in zip(self.values, self.dtypes, strict=True):
            _verify_type("tile.print", element_type(value.type), name.data)


@irdl_op_definition
class PrintTensorOp(IRDLOperation):
    """Shows a whole buffer under a label, in the style of the session. It stands in the entry function.

    ``tile.print_tensor %x, "layer 0" as "f32" : !tile.ref<[?, 8], f32, global>``

    ``scalar`` behind the type says that the one element stands for a tensor without axes.
    """

    name = "tile.print_tensor"
    ref = operand_def(RefType)
    label = prop_def(StringAttr)
    dtype = prop_def(StringAttr)
    scalar = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ref `,` $label `as` $dtype (`scalar` $scalar^)? attr-dict `:` type($ref)"

    def __init__(self, ref: SSAValue, label: str, dtype: DType, *, is_scalar: bool = False) -> None:
        properties: dict[str, Attribute] = {"label": StringAttr(escaped(label)), "dtype": StringAttr(dtype.ir_name)}
        if is_scalar:
            properties["scalar"] = UnitAttr()
        super().__init__(operands=[ref], properties=properties)

    @property
    def is_scalar(self) -> bool:
        """Whether what is shown has no axes."""
        return self.scalar is not None

    def verify_(self) -> None:
        unescaped(self.label.data)
        ref = self.ref.type
        assert isinstance(ref, RefType)
        _verify_type("tile.print_tensor", ref.element_type, self.dtype.data)
        if isinstance(self.ref.owner, WindowOp):
            raise VerifyException("tile.print_tensor: shows a whole buffer, not a window of one")
        if self.is_scalar and ref.extents != (1,):
            raise VerifyException(f"tile.print_tensor: a scalar is one element along one axis, not {ref}")


def _verify_type(subject: str, element: Attribute, name: str) -> None:
    try:
        wanted: Attribute = DType.from_ir_name(name).to_element_type()
    except GraphTypeError as error:
        raise VerifyException(f"{subject}: {error}") from None
    if element != wanted and not (isinstance(element, IndexType) and name == DType.int64.ir_name):
        raise VerifyException(f"{subject}: a value of {element} cannot be shown as {name}")


def unescaped(text: str) -> str:
    """The text that stands in the IR in ASCII.

    Raises:
        VerifyException: it is no ASCII, or an escape in it is wrong.
    """
    try:
        return text.encode("ascii").decode("unicode_escape")
    except UnicodeError:
        raise VerifyException(
            f"the text is {text!r}, but it must be ASCII, in which escapes stand for the rest, as in Python"
        ) from None


def escaped(text: str) -> str:
    """The text as it stands in the IR: xDSL reads a string that holds anything but ASCII as bytes."""
    return text.encode("unicode_escape").decode("ascii")


PRINTING_OPS: list[type[Operation]] = [PrintOp, PrintTensorOp]

__all__ = ["PRINTING_OPS", "PrintOp", "PrintTensorOp", "escaped", "unescaped"]
