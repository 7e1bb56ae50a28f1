"""The ``scf_ext`` dialect: what upstream's ``scf`` lacks on a CPU with several threads.

Upstream's ``scf.parallel`` says that rounds may run at the same time, but neither how many threads may share them
nor how one of them keeps the others out. And its functions call by name only, never back to whoever runs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, i64
from xdsl.ir import Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

INDEX = IndexType()


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a round, or a critical section."""

    name = "scf_ext.yield"
    traits = traits_def(IsTerminator(), NoMemoryEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


def _verify_end(op: ForallOp | CriticalOp) -> None:
    if not isinstance(op.body.block.last_op, YieldOp):
        raise VerifyException(f"{op.name}: the body must end in scf_ext.yield")


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Runs its body for every round 0 .. ``count`` - 1, on at most ``threads`` threads, in any order.

    It ends when all rounds have. Rounds must not depend on each other. The body's argument is the round; a second
    one is the number of the thread, below ``threads``: at no time do two rounds run under the same number.

    ``scf_ext.forall %count threads %threads { ^bb0(%round : index): ... scf_ext.yield }``
    """

    name = "scf_ext.forall"
    count = operand_def(IndexType)
    threads = operand_def(IndexType)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$count `threads` $threads $body attr-dict"

    def __init__(self, count: SSAValue, threads: SSAValue, body: Region) -> None:
        super().__init__(operands=[count, threads], regions=[body])

    def verify_(self) -> None:
        if [arg.type for arg in self.body.block.args] not in ([INDEX], [INDEX, INDEX]):
            raise VerifyException("scf_ext.forall: the body takes one index, its round, or two, the thread behind it")
        _verify_end(self)


@irdl_op_definition
class CriticalOp(IRDLOperation):
    """Runs its body while no other thread is inside a critical section of the same word.

    The word of ``memory`` (flat, i64) at ``index`` is 0 while nobody is inside. Waiting threads spin: the body
    should take a few stores and no more.

    ``scf_ext.critical %status[%c8] : memref<?xi64> { ... scf_ext.yield }``
    """

    name = "scf_ext.critical"
    memory = operand_def(MemRefType)
    index = operand_def(IndexType)
    body = region_def("single_block")
    traits = traits_def(MemoryWriteEffect(), MemoryReadEffect())
    assembly_format = "$memory `[` $index `]` `:` type($memory) $body attr-dict"

    def __init__(self, memory: SSAValue, index: SSAValue, body: Region) -> None:
        super().__init__(operands=[memory, index], regions=[body])

    def verify_(self) -> None:
        memory = self.memory.type
        if not isinstance(memory, MemRefType) or memory.element_type != i64 or memory.get_num_dims() != 1:
            raise VerifyException(f"scf_ext.critical: the word lies in flat memory of i64, not {memory}")
        _verify_end(self)


@irdl_op_definition
class CallAddressOp(IRDLOperation):
    """Calls the C function at an address that is known only when running; it takes i64 and returns nothing.

    ``scf_ext.call_address %address(%a, %b)``
    """

    name = "scf_ext.call_address"
    address = operand_def(i64)
    arguments = var_operand_def(i64)
    traits = traits_def(MemoryWriteEffect(), MemoryReadEffect())
    assembly_format = "$address `(` $arguments `)` attr-dict"

    def __init__(self, address: SSAValue, arguments: Sequence[SSAValue]) -> None:
        super().__init__(operands=[address, list(arguments)])


SCFExt = Dialect("scf_ext", [CallAddressOp, CriticalOp, ForallOp, YieldOp], [])
