"""The ``gpu_ext`` dialect: what upstream's ``gpu`` lacks.

Upstream has thread and block ids and the barrier, but no shuffle, no atomic minimum and no memory that belongs to one
block of threads beyond what fits on the chip.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, MemRefType, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

WARP = 32
"""Threads that run together and can shuffle values."""

GLOBAL_SPACE = 1
"""Memory space of a memref in the device's own memory; the numbers are those of LLVM's address spaces."""
SHARED_SPACE = 3
"""Memory space of a memref that the threads of one block share."""

KERNEL = "gpu.kernel"
"""On a function that the host launches. The other attributes tell its launcher what to give it."""
THREADS = "gpu.threads"
SHARED_BYTES = "gpu.shared_bytes"
SCRATCH_BYTES = "gpu.scratch_bytes"
KERNEL_ATTRIBUTES = (KERNEL, THREADS, SHARED_BYTES, SCRATCH_BYTES)

INDEPENDENT_ROUNDS = "gpu.independent_rounds"
"""On a loop: what one round does to the function's arguments concerns no other round."""


def memory_in(element: Attribute, size: int, space: int) -> MemRefType:
    """Flat memory of ``size`` elements (``DYNAMIC_INDEX``: unknown) in a memory space."""
    return MemRefType(element, [size], memory_space=IntegerAttr(space, 32))


def space_of(memory: Attribute) -> int:
    """The memory space of a memref; 0 is the default, that of a CPU."""
    assert isinstance(memory, MemRefType)
    space = memory.memory_space
    return space.value.data if isinstance(space, IntegerAttr) else 0


@irdl_op_definition
class ShuffleDownOp(IRDLOperation):
    """The value of the thread ``distance`` places behind in the warp; the last ``distance`` threads get their own.

    All threads of the warp take part: ``%w = gpu_ext.shuffle_down 16 of %v : f32``
    """

    name = "gpu_ext.shuffle_down"
    T: ClassVar = VarConstraint("T", AnyAttr())
    distance = prop_def(IntegerAttr.constr(i64))
    value = operand_def(T)
    result = result_def(T)
    assembly_format = "$distance `of` $value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, distance: int) -> None:
        super().__init__(
            operands=[value], properties={"distance": IntegerAttr(distance, i64)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        if not 0 < self.distance.value.data < WARP:
            raise VerifyException(
                f"gpu_ext.shuffle_down: the distance must be 1 to {WARP - 1}, not {self.distance.value.data}"
            )
        if not isinstance(self.value.type, AnyFloat | IntegerType | IndexType):
            raise VerifyException(f"gpu_ext.shuffle_down: moves one number a thread, not {self.value.type}")


@irdl_op_definition
class AtomicMinOp(IRDLOperation):
    """Puts the lesser of two unsigned words into memory, undivided from other threads; gives the old one.

    ``%old = gpu_ext.atomic_umin %memory[%at], %v : memref<?xi64, 1 : i32>``
    """

    name = "gpu_ext.atomic_umin"
    memory = operand_def(MemRefType)
    index = operand_def(IndexType)
    value = operand_def(i64)
    result = result_def(i64)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$memory `[` $index `]` `,` $value attr-dict `:` type($memory)"

    def __init__(self, memory: SSAValue, index: SSAValue, value: SSAValue) -> None:
        super().__init__(operands=[memory, index, value], result_types=[i64])

    def verify_(self) -> None:
        memory = self.memory.type
        if not isinstance(memory, MemRefType) or memory.element_type != i64:
            raise VerifyException(f"gpu_ext.atomic_umin: the memory holds i64, not {memory}")


@irdl_op_definition
class BlockScratchOp(IRDLOperation):
    """A part of the global memory that belongs to this block of threads, ``offset`` bytes from its start.

    ``%memory`` is that of all blocks; a block has as many bytes of it as its function says (``gpu.scratch_bytes``).

    ``%m = gpu_ext.block_scratch 1024 of %memory : memref<?xi8, 1 : i32> -> memref<4096xf32, 1 : i32>``
    """

    name = "gpu_ext.block_scratch"
    offset = prop_def(IntegerAttr.constr(i64))
    memory = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$offset `of` $memory attr-dict `:` type($memory) `->` type($result)"

    def __init__(self, memory: SSAValue, offset: int, result_type: MemRefType) -> None:
        super().__init__(operands=[memory], properties={"offset": IntegerAttr(offset, i64)}, result_types=[result_type])


GPUExt = Dialect("gpu_ext", [AtomicMinOp, BlockScratchOp, ShuffleDownOp], [])
