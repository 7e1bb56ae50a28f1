"""Printing in compiled code: a call back to whoever runs it.

A word of the status buffer holds the address of ``void (i64 site, i64 *words)``, or 0. ``site`` is the number of the
print in its module, ``words`` says where its values lie: for a scalar or block an address; for a reference an address,
then one extent for each axis. Whoever is called reads the values before it returns.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import SSAValue

from ...artifact import STATUS_PRINT
from ...dialects import scf_ext, tile
from ...dialects.tile.types import shape_of
from .body import BodyLowering
from .loop_builder import INDEX, Index, LoopBuilder
from .signatures import STATUS, private_function, still_well
from .views import storage_type

REPORT_PRINT = "report_print"


def report_print_function() -> func.FuncOp:
    """``@report_print(status, site, words)`` calls back, unless nobody wants to know or a check has failed."""
    function = private_function(REPORT_PRINT, [STATUS, INDEX, STATUS], None)
    block = function.body.block
    status, site, words = block.args
    builder = LoopBuilder(block)
    callee = builder.load(status, STATUS_PRINT, 1)

    def call() -> Sequence[SSAValue]:
        number = builder.cast(site, "index_cast", i64, 1)
        builder.insert(scf_ext.CallAddressOp(callee, [number, _address(builder, words)]))
        return ()

    wanted = builder.compare("ne", callee, builder.scalar(0, i64))
    builder.if_(builder.binary(arith.AndIOp, wanted, still_well(builder, status)), [], call)
    builder.insert(func.ReturnOp())
    return function


def lower_print(lowering: BodyLowering, op: tile.PrintOp, status: SSAValue, site: int) -> None:
    """Values of a program: blocks and scalars are put into memory first."""
    _report(lowering.builder, status, site, [_address(lowering.builder, _memory(lowering, v)) for v in op.values])


def lower_print_tensor(lowering: BodyLowering, op: tile.PrintTensorOp, status: SSAValue, site: int) -> None:
    """A whole buffer of the entry function."""
    builder, view = lowering.builder, lowering.strips.views[op.ref]
    extents = [builder.cast(builder.ssa(axis.size), "index_cast", i64, 1) for axis in view.axes]
    _report(builder, status, site, [_address(builder, view.memory), *extents])


def _memory(lowering: BodyLowering, value: SSAValue) -> SSAValue:
    if shape_of(value.type):
        return lowering.materialise(value).memory
    builder, scalar = lowering.builder, lowering.strips.scalars[value]
    if isinstance(value.type, IndexType):
        scalar = builder.cast(scalar, "index_cast", i64, 1)
    memory = builder.alloca(storage_type(scalar.type), 1)
    builder.store(lowering.strips.encode(scalar), memory, 0)
    return memory


def _address(builder: LoopBuilder, memory: SSAValue) -> SSAValue:
    pointer = builder.emit(memref.ExtractAlignedPointerAsIndexOp.get(memory))
    return builder.cast(pointer, "index_cast", i64, 1)


def _report(builder: LoopBuilder, status: SSAValue, site: Index, words: Sequence[SSAValue]) -> None:
    memory = builder.alloca(i64, max(len(words), 1))
    for position, word in enumerate(words):
        builder.store(word, memory, position)
    cast = builder.emit(memref.CastOp.get(memory, STATUS))
    builder.insert(func.CallOp(REPORT_PRINT, [status, builder.ssa(site), cast], []))
