"""What the compiler did to the rounding of a graph, for the user to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from .dtypes import DType
from .errors import SourceLocation
from .options import ordered_flags

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

CONTRACTIONS = "halfulp.contractions"
"""On a ``graph.graph``: what the pass ``contract-fma`` fused, one dictionary each."""


@dataclass(frozen=True)
class Contraction:
    """A product and a sum that became one fma, rounded once.

    Attributes:
        op: the sum or difference, by the name of its op.
        location: the user's line that built it; None if it is not known.
        operand: which of its two operands was the product.
        product: the product, by the name of its op.
        product_location: the user's line that built the product.
        product_kept: whether the product is also rounded by itself, for its other users.
        dtype: the element type of all of them.
        flags: the fastmath flags of the fma.
    """

    op: str
    location: SourceLocation | None
    operand: int
    product: str
    product_location: SourceLocation | None
    product_kept: bool
    dtype: DType
    flags: frozenset[str]

    def __str__(self) -> str:
        place = "" if self.location is None else f"{self.location}: "
        origin = "" if self.product_location is None else f" of {self.product_location}"
        kept = ", which other users still get rounded by itself" if self.product_kept else ""
        flags = ", ".join(ordered_flags(self.flags)) or "none"
        return (
            f"{place}{self.op} fused with its operand {self.operand}, the {self.product}{origin}{kept}; "
            f"{self.dtype}, flags: {flags}"
        )

    def to_attribute(self) -> Attribute:
        """As the dictionary that the IR holds."""
        from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64

        entries: dict[str, Attribute] = {
            "op": StringAttr(self.op),
            "operand": IntegerAttr(self.operand, i64),
            "product": StringAttr(self.product),
            "dtype": StringAttr(self.dtype.ir_name),
            "flags": StringAttr(",".join(ordered_flags(self.flags))),
        }
        if self.location is not None:
            entries["at"] = StringAttr(str(self.location))
        if self.product_location is not None:
            entries["product_at"] = StringAttr(str(self.product_location))
        if self.product_kept:
            entries["product_kept"] = UnitAttr()
        return DictionaryAttr(entries)

    @classmethod
    def from_attribute(cls, attribute: Attribute) -> Contraction:
        """The reverse of `to_attribute`."""
        from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr

        entries = cast(DictionaryAttr, attribute).data

        def text(key: str) -> str:
            return cast(StringAttr, entries[key]).data

        return cls(
            text("op"),
            _location(text("at")) if "at" in entries else None,
            cast("IntegerAttr", entries["operand"]).value.data,
            text("product"),
            _location(text("product_at")) if "product_at" in entries else None,
            "product_kept" in entries,
            DType.from_ir_name(text("dtype")),
            frozenset(text("flags").split(",")) - {""},
        )


def _location(text: str) -> SourceLocation:
    filename, _, line = text.rpartition(":")
    return SourceLocation(filename, int(line))


def contractions_of(module: ModuleOp) -> tuple[Contraction, ...]:
    """What ``contract-fma`` noted on the graphs of a module, in order."""
    return tuple(_contractions(module))


def _contractions(module: ModuleOp) -> Iterator[Contraction]:
    from xdsl.dialects.builtin import ArrayAttr

    for op in module.body.block.ops:
        noted = op.attributes.get(CONTRACTIONS)
        if isinstance(noted, ArrayAttr):
            yield from map(Contraction.from_attribute, noted)
