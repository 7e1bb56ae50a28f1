"""Memory of the tile dialect: windows into references, loads and stores of whole blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .assembly import IntegerList, Word, integer_values, integers
from .types import SCRATCH, RefType, block_type, element_type, shape_of

BLOCKED = "blocked"
ELEMENT = "element"


def _ref(value: SSAValue) -> RefType:
    assert isinstance(value.type, RefType)
    return value.type


@irdl_op_definition
class WindowOp(IRDLOperation):
    """A block-sized part of a reference.

    With ``blocked`` indexing the window starts at ``index * shape`` along each axis, with ``element`` at
    ``index``; positions are indices, so they wrap at 2^64. Axes listed in ``squeezed`` have size 1 and are absent
    from the result. What lies beyond the reference's own valid range stays invalid: it reads as the pad, and stores
    to it are dropped.

    ``%w = tile.window %x[%i, %c] blocked [1, 4096] squeezed [0] : !tile.ref<[?, ?], f32, global> ->
    !tile.ref<[4096], f32, global>``
    """

    name = "tile.window"

    ref = operand_def(RefType)
    indices = var_operand_def(IndexType)
    indexing = prop_def(StringAttr)
    shape = prop_def(DenseArrayBase.constr(i64))
    squeezed = prop_def(DenseArrayBase.constr(i64))
    result = result_def(RefType)

    traits = traits_def(Pure())

    assembly_format = (
        "$ref `[` $indices `]` custom<Word>($indexing) custom<IntegerList>($shape)"
        " `squeezed` custom<IntegerList>($squeezed) attr-dict `:` type($ref) `->` type($result)"
    )
    custom_directives = (Word, IntegerList)

    def __init__(
        self,
        ref: SSAValue,
        indices: Sequence[SSAValue],
        shape: Sequence[int],
        *,
        indexing: str = BLOCKED,
        squeezed: Sequence[int] = (),
    ) -> None:
        kept = [n for axis, n in enumerate(shape) if axis not in squeezed]
        ref_type = _ref(ref)
        super().__init__(
            operands=[ref, list(indices)],
            properties={
                "indexing": StringAttr(indexing),
                "shape": integers(shape),
                "squeezed": integers(squeezed),
            },
            result_types=[RefType(kept, ref_type.element_type, ref_type.space)],
        )

    @property
    def block_shape(self) -> tuple[int, ...]:
        return integer_values(self.shape)

    @property
    def squeezed_axes(self) -> tuple[int, ...]:
        return integer_values(self.squeezed)

    def verify_(self) -> None:
        rank = _ref(self.ref).rank
        shape, squeezed = self.block_shape, self.squeezed_axes
        if self.indexing.data not in (BLOCKED, ELEMENT):
            raise VerifyException(
                f"tile.window: indexing must be {BLOCKED!r} or {ELEMENT!r}, not {self.indexing.data!r}"
            )
        if len(self.indices) != rank or len(shape) != rank:
            raise VerifyException(
                f"tile.window: a reference of rank {rank} takes {rank} indices and {rank} extents, "
                f"not {len(self.indices)} and {len(shape)}"
            )
        for axis in squeezed:
            if not 0 <= axis < rank or shape[axis] != 1:
                raise VerifyException(f"tile.window: squeezed axis {axis} must have extent 1 in {list(shape)}")
        kept = tuple(n for axis, n in enumerate(shape) if axis not in squeezed)
        result = _ref(self.result)
        if result.extents != kept or result.element_type != _ref(self.ref).element_type:
            raise VerifyException(f"tile.window: result must have extents {list(kept)}, not {result}")


@irdl_op_definition
class FlattenOp(IRDLOperation):
    """All elements of a whole buffer in row-major order, as one axis.

    ``%f = tile.flatten %x : !tile.ref<[?, 8], f32, global> -> !tile.ref<[?], f32, global>``
    """

    name = "tile.flatten"

    ref = operand_def(RefType)
    result = result_def(RefType)

    traits = traits_def(Pure())
    assembly_format = "$ref attr-dict `:` type($ref) `->` type($result)"

    def __init__(self, ref: SSAValue) -> None:
        ref_type = _ref(ref)
        extent = prod(ref_type.extents) if ref_type.is_static else DYNAMIC_INDEX
        super().__init__(operands=[ref], result_types=[RefType([extent], ref_type.element_type, ref_type.space)])

    def verify_(self) -> None:
        if isinstance(self.ref.owner, WindowOp):
            raise VerifyException("tile.flatten: takes a whole buffer, not a window of one; flatten before tile.window")
        source = _ref(self.ref)
        extent = prod(source.extents) if source.is_static else DYNAMIC_INDEX
        if _ref(self.result) != RefType([extent], source.element_type, source.space):
            raise VerifyException(f"tile.flatten: {source} does not flatten to {self.result.type}")


@irdl_op_definition
class ReinterpretOp(IRDLOperation):
    """All elements of a whole buffer in row-major order, under another shape of as many elements.

    Extents that make another number of elements are a fault of the program: then no element is valid.

    ``%r = tile.reinterpret %x[%n, %c8] : !tile.ref<[?], f32, global> -> !tile.ref<[?, 8], f32, global>``
    """

    name = "tile.reinterpret"

    ref = operand_def(RefType)
    extents = var_operand_def(IndexType)
    result = result_def(RefType)

    traits = traits_def(Pure())
    assembly_format = "$ref `[` $extents `]` attr-dict `:` type($ref) `->` type($result)"

    def __init__(self, ref: SSAValue, extents: Sequence[SSAValue], shape: Sequence[int]) -> None:
        ref_type = _ref(ref)
        super().__init__(
            operands=[ref, list(extents)],
            result_types=[RefType(shape, ref_type.element_type, ref_type.space)],
        )

    def verify_(self) -> None:
        if isinstance(self.ref.owner, WindowOp):
            raise VerifyException("tile.reinterpret: takes a whole buffer, not a window of one")
        source, result = _ref(self.ref), _ref(self.result)
        if (source.element_type, source.space) != (result.element_type, result.space):
            raise VerifyException(f"tile.reinterpret: {source} and {result} must differ in shape only")
        if len(self.extents) != result.rank:
            raise VerifyException(f"tile.reinterpret: {result} takes {result.rank} extents, not {len(self.extents)}")
        if source.is_static and result.is_static and prod(source.extents) != prod(result.extents):
            raise VerifyException(f"tile.reinterpret: {source} and {result} must have as many elements")


@irdl_op_definition
class DimOp(IRDLOperation):
    """The extent of a reference along ``axis``."""

    name = "tile.dim"

    ref = operand_def(RefType)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$ref `,` $axis attr-dict `:` type($ref)"

    def __init__(self, ref: SSAValue, axis: int) -> None:
        super().__init__(operands=[ref], properties={"axis": IntegerAttr(axis, i64)}, result_types=[IndexType()])

    def verify_(self) -> None:
        rank = _ref(self.ref).rank
        if not 0 <= self.axis.value.data < rank:
            raise VerifyException(f"tile.dim: axis {self.axis.value.data} is not an axis of {_ref(self.ref)}")


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Scratch memory of one program, filled with ``pad``; it lives until the program ends."""

    name = "tile.alloc"

    pad = operand_def()
    result = result_def(RefType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$pad attr-dict `:` type($pad) `->` type($result)"

    def __init__(self, pad: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[pad], result_types=[RefType(shape, pad.type, SCRATCH)])

    def verify_(self) -> None:
        result = _ref(self.result)
        if result.space.data != SCRATCH or not result.is_static or result.element_type != self.pad.type:
            raise VerifyException(
                f"tile.alloc: result must be a static scratch reference of {self.pad.type}, not {result}"
            )


def _verify_access(name: str, ref: SSAValue, block: Attribute, mask: SSAValue | None) -> None:
    ref_type = _ref(ref)
    shape = block_type(block, f"{name}: the value").get_shape()
    if not ref_type.is_static or ref_type.extents != shape or ref_type.element_type != element_type(block):
        raise VerifyException(
            f"{name}: {block} does not match {ref_type}; take a tile.window of the block's shape first"
        )
    if mask is not None and (shape_of(mask.type) != shape or element_type(mask.type) != i1):
        raise VerifyException(f"{name}: the mask must be an i1 block of shape {list(shape)}, not {mask.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A snapshot of a whole reference. Masked-off and invalid elements are ``other`` (zero if not given)."""

    name = "tile.load"

    ref = operand_def(RefType)
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$ref (`mask` $mask^ `:` type($mask))? (`other` $other^ `:` type($other))? attr-dict"
        " `:` type($ref) `->` type($result)"
    )

    def __init__(
        self,
        ref: SSAValue,
        result_type: Attribute,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
    ) -> None:
        super().__init__(operands=[ref, mask, other], result_types=[result_type])

    def verify_(self) -> None:
        _verify_access("tile.load", self.ref, self.result.type, self.mask)
        if self.other is not None and self.other.type != element_type(self.result.type):
            raise VerifyException(
                f"tile.load: other must be a scalar of {element_type(self.result.type)}, not {self.other.type}"
            )


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a block over a whole reference; masked-off and invalid elements keep what they hold."""

    name = "tile.store"

    value = operand_def()
    ref = operand_def(RefType)
    mask = opt_operand_def()

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $ref (`mask` $mask^ `:` type($mask))? attr-dict `:` type($value) `,` type($ref)"

    def __init__(self, value: SSAValue, ref: SSAValue, mask: SSAValue | None = None) -> None:
        super().__init__(operands=[value, ref, mask])

    def verify_(self) -> None:
        _verify_access("tile.store", self.ref, self.value.type, self.mask)


def root_of(ref: SSAValue) -> SSAValue:
    """The argument or allocation that a reference is a part of. Different roots never overlap."""
    while isinstance(ref.owner, WindowOp | FlattenOp | ReinterpretOp):
        ref = ref.owner.ref
    return ref


MEMORY_OPS: list[type[Operation]] = [WindowOp, FlattenOp, ReinterpretOp, DimOp, AllocOp, LoadOp, StoreOp]

__all__ = ["AllocOp", "BLOCKED", "DimOp", "ELEMENT", "LoadOp", "MEMORY_OPS", "StoreOp", "WindowOp", "root_of"]
