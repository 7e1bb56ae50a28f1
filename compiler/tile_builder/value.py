"""Values of a tile program with Python's operators, each of which emits one tile IR op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, SSAValue

from ..dialects.tile.types import RefType, element_type, shape_of

if TYPE_CHECKING:
    from .builder import TileBuilder


class Value:
    """A scalar, a block or a reference inside a program being built.

    Operators work element by element; a Python number takes the type of the other side, and a scalar beside a block is
    repeated. Integer comparisons, ``//`` and ``%`` are signed; the builder has unsigned forms.
    """

    __slots__ = ("builder", "ssa")
    __hash__ = None  # type: ignore[assignment]  # == builds a comparison

    def __init__(self, builder: TileBuilder, ssa: SSAValue) -> None:
        self.builder = builder
        self.ssa = ssa

    @property
    def type(self) -> Attribute:
        return self.ssa.type

    @property
    def element_type(self) -> Attribute:
        return self.type.element_type if isinstance(self.type, RefType) else element_type(self.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a block or reference (dynamic extents as in ``RefType.extents``), ``()`` for a scalar."""
        return self.type.extents if isinstance(self.type, RefType) else shape_of(self.type)

    @property
    def is_float(self) -> bool:
        return isinstance(self.element_type, AnyFloat)

    def __bool__(self) -> bool:
        raise TypeError(
            "a value of a tile program has no truth value while it is built; use builder.select or builder.if_"
        )

    def __add__(self, other: Value | int | float) -> Value:
        return self.builder.binary("add", self, other)

    def __radd__(self, other: int | float) -> Value:
        return self.builder.binary("add", other, self)

    def __sub__(self, other: Value | int | float) -> Value:
        return self.builder.binary("sub", self, other)

    def __rsub__(self, other: int | float) -> Value:
        return self.builder.binary("sub", other, self)

    def __mul__(self, other: Value | int | float) -> Value:
        return self.builder.binary("mul", self, other)

    def __rmul__(self, other: int | float) -> Value:
        return self.builder.binary("mul", other, self)

    def __truediv__(self, other: Value | int | float) -> Value:
        return self.builder.binary("div", self, other)

    def __floordiv__(self, other: Value | int) -> Value:
        return self.builder.int_div("floordivs", self, other)

    def __mod__(self, other: Value | int) -> Value:
        return self.builder.int_div("mods", self, other)

    def __and__(self, other: Value | bool | int) -> Value:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Value | bool | int) -> Value:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Value | bool | int) -> Value:
        return self.builder.binary("xor", self, other)

    def __invert__(self) -> Value:
        return self.builder.binary("xor", self, -1 if self.element_type != IntegerType(1) else True)

    def __neg__(self) -> Value:
        return self.builder.negate(self)

    def __lt__(self, other: Value | int | float) -> Value:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Value | int | float) -> Value:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Value | int | float) -> Value:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Value | int | float) -> Value:
        return self.builder.compare("ge", self, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.builder.compare("eq", self, _number(other))

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self.builder.compare("ne", self, _number(other))


def _number(other: object) -> Value | int | float:
    if isinstance(other, Value | int | float):
        return other
    raise TypeError(f"a value of a tile program compares with values and numbers, not {type(other).__name__}")
