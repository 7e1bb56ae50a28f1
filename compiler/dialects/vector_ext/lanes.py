"""Ops on the lanes of vectors: indexed memory access, fetching ahead, and a mask as bits."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .types import element_of, lanes_of, like


def _verify_indexed(op_name: str, base: Attribute, indices: Attribute, mask: Attribute, value: Attribute) -> None:
    """Gather and scatter: flat memref, vectors of the same length, element types that agree."""
    if not isinstance(base, MemRefType) or len(base.shape) != 1:
        raise VerifyException(f"{op_name}: base must be a flat memref<?xT>, not {base}")
    if not isinstance(value, VectorType) or len(value.shape) != 1:
        raise VerifyException(f"{op_name}: value must be a 1-D vector, not {value}")
    if value.element_type != base.element_type:
        raise VerifyException(
            f"{op_name}: vector element type must be that of the memref, {base.element_type}, not {value.element_type}"
        )
    if mask != like(value, i1):
        raise VerifyException(f"{op_name}: mask must be {like(value, i1)}, not {mask}")
    width = element_of(indices)
    if lanes_of(indices) != lanes_of(value) or width not in (IntegerType(32), IntegerType(64)):
        raise VerifyException(
            f"{op_name}: indices must be vector<{lanes_of(value)}xi32> or vector<{lanes_of(value)}xi64>, not {indices}"
        )


_FLAT_MEMREF = BaseAttr(MemRefType)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Loads ``base[indices[lane]]`` where the mask is set, and takes the lane of ``pass_thru`` elsewhere.

    Indices count elements and are signed; a lane that is off reads nothing, whatever its index::

        %v = vector_ext.gather %base[%indices], %mask, %pass
            : memref<?xf32>, vector<16xi64>, vector<16xi1> into vector<16xf32>
    """

    name = "vector_ext.gather"
    T: ClassVar = VarConstraint("T", BaseAttr(VectorType))

    base = operand_def(_FLAT_MEMREF)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    pass_thru = operand_def(T)
    result = result_def(T)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
        " `:` type($base) `,` type($indices) `,` type($mask) `into` type($result)"
    )

    def __init__(self, base: SSAValue, indices: SSAValue, mask: SSAValue, pass_thru: SSAValue) -> None:
        super().__init__(operands=[base, indices, mask, pass_thru], result_types=[pass_thru.type])

    def verify_(self) -> None:
        _verify_indexed(self.name, self.base.type, self.indices.type, self.mask.type, self.result.type)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Stores the lanes of ``value`` whose mask is set to ``base[indices[lane]]``, in ascending order of lanes::

    vector_ext.scatter %v, %base[%indices], %mask
        : vector<16xf32>, memref<?xf32>, vector<16xi64>, vector<16xi1>
    """

    name = "vector_ext.scatter"
    value = operand_def(BaseAttr(VectorType))
    base = operand_def(_FLAT_MEMREF)
    indices = operand_def(BaseAttr(VectorType))
    mask = operand_def(BaseAttr(VectorType))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $base `[` $indices `]` `,` $mask attr-dict"
        " `:` type($value) `,` type($base) `,` type($indices) `,` type($mask)"
    )

    def __init__(self, value: SSAValue, base: SSAValue, indices: SSAValue, mask: SSAValue) -> None:
        super().__init__(operands=[value, base, indices, mask])

    def verify_(self) -> None:
        _verify_indexed(self.name, self.base.type, self.indices.type, self.mask.type, self.value.type)


@irdl_op_definition
class MemoryAtOp(IRDLOperation):
    """Flat memory at an address that is a number: ``vector_ext.memory_at %address : memref<4096xf32>``."""

    name = "vector_ext.memory_at"
    address = operand_def(IndexType)
    memory = result_def(_FLAT_MEMREF)
    traits = traits_def(Pure())
    assembly_format = "$address attr-dict `:` type($memory)"

    def __init__(self, address: SSAValue, memory: Attribute) -> None:
        super().__init__(operands=[address], result_types=[memory])

    def verify_(self) -> None:
        if not isinstance(self.memory.type, MemRefType) or len(self.memory.type.shape) != 1:
            raise VerifyException(f"vector_ext.memory_at: memory must be a flat memref, not {self.memory.type}")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Asks for the cache line of ``base[index]``, which is soon to be read, in the second cache.

    It changes nothing that can be seen, and the element need not exist::

        vector_ext.prefetch %base[%index] : memref<?xf32>
    """

    name = "vector_ext.prefetch"
    base = operand_def(_FLAT_MEMREF)
    index = operand_def(IndexType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$base `[` $index `]` attr-dict `:` type($base)"

    def __init__(self, base: SSAValue, index: SSAValue) -> None:
        super().__init__(operands=[base, index])

    def verify_(self) -> None:
        if not isinstance(self.base.type, MemRefType) or len(self.base.type.shape) != 1:
            raise VerifyException(f"vector_ext.prefetch: base must be a flat memref<?xT>, not {self.base.type}")


@irdl_op_definition
class BitmaskOp(IRDLOperation):
    """The lanes of a mask as bits of an integer, lane 0 lowest: ``vector_ext.bitmask %m : vector<16xi1> to i16``."""

    name = "vector_ext.bitmask"
    operand = operand_def(BaseAttr(VectorType))
    result = result_def(IntegerType)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `to` type($result)"

    def __init__(self, operand: SSAValue) -> None:
        super().__init__(operands=[operand], result_types=[IntegerType(lanes_of(operand.type))])

    def verify_(self) -> None:
        if element_of(self.operand.type) != i1 or not lanes_of(self.operand.type):
            raise VerifyException(f"vector_ext.bitmask: operand must be a vector of i1, not {self.operand.type}")
        wanted = IntegerType(lanes_of(self.operand.type))
        if self.result.type != wanted:
            raise VerifyException(
                f"vector_ext.bitmask: result must have one bit per lane, {wanted}, not {self.result.type}"
            )
