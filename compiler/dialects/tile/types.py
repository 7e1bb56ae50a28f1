"""Types of the tile dialect: references to memory. Blocks are builtin tensors, scalars builtin scalars."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import BaseAttr, irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

GLOBAL = "global"
SCRATCH = "scratch"
SPACES = (GLOBAL, SCRATCH)


@irdl_attr_definition
class RefType(ParametrizedAttribute, TypeAttribute):
    """A bounded view of memory: base, extents, strides and the range of valid elements.

    ``!tile.ref<[?, 8], f32, global>``. ``?`` is an extent known at run time. An element outside the valid
    range reads as the pad of the load and drops what is stored to it, so no access can leave memory.
    Space ``global`` is a buffer of the graph, ``scratch`` belongs to one program of a kernel.
    """

    name = "tile.ref"

    shape: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()
    space: StringAttr = param_def(BaseAttr(StringAttr))

    def __init__(
        self,
        shape: Sequence[int] | ArrayAttr[IntAttr],
        element_type: Attribute,
        space: str | StringAttr = GLOBAL,
    ) -> None:
        super().__init__(
            shape if isinstance(shape, ArrayAttr) else ArrayAttr([IntAttr(n) for n in shape]),
            element_type,
            StringAttr(space) if isinstance(space, str) else space,
        )

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents, ``DYNAMIC_INDEX`` where one is known at run time only."""
        return tuple(n.data for n in self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return DYNAMIC_INDEX not in self.extents

    def verify(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(f"tile.ref: space must be one of {SPACES}, not {self.space.data!r}")
        for n in self.extents:
            if n < 0 and n != DYNAMIC_INDEX:
                raise VerifyException(f"tile.ref: an extent must be ? or not negative, not {n}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def extent() -> IntAttr:
            if parser.parse_optional_punctuation("?"):
                return IntAttr(DYNAMIC_INDEX)
            return IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))

        with parser.in_angle_brackets():
            shape = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, extent)
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            parser.parse_punctuation(",")
            space = parser.parse_identifier()
        return [ArrayAttr(shape), element_type, StringAttr(space)]

    def print_parameters(self, printer: Printer) -> None:
        extents = ", ".join("?" if n == DYNAMIC_INDEX else str(n) for n in self.extents)
        with printer.in_angle_brackets():
            printer.print_string(f"[{extents}], ")
            printer.print_attribute(self.element_type)
            printer.print_string(f", {self.space.data}")


Block = TensorType[Attribute]
"""A value of a program: a static-shaped array of rank >= 1."""


def block_type(value_type: Attribute, subject: str) -> Block:
    """``value_type`` as a block type, or the verifier's error about ``subject``."""
    if not isinstance(value_type, TensorType):
        raise VerifyException(f"{subject} must be a block (a tensor of static shape), not {value_type}")
    if not value_type.has_static_shape() or value_type.get_num_dims() == 0:
        raise VerifyException(f"{subject} must have a static shape of rank 1 or more, not {value_type}")
    return value_type


def element_type(value_type: Attribute) -> Attribute:
    """The type of one element of a block, a scalar's own type otherwise."""
    return value_type.element_type if isinstance(value_type, TensorType) else value_type


def shape_of(value_type: Attribute) -> tuple[int, ...]:
    """The shape of a block, ``()`` for a scalar."""
    return value_type.get_shape() if isinstance(value_type, TensorType) else ()


def with_shape(shape: Sequence[int], element: Attribute) -> Attribute:
    """A block of ``shape``, or the scalar type itself when ``shape`` is empty."""
    return TensorType(element, list(shape)) if shape else element
