"""``vector_ext.lookup``: by a permutation of registers where a target has one, otherwise from memory.

A permutation takes its table from a register and its indices from another, of which it reads as many bits as it
needs. A table twice as long as a register is two permutations and a selection; any other is a constant of the module.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntAttr,
    IntegerAttr,
    SymbolRefAttr,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Operation, SSAValue

from ...dialects import llvm_ext, vector_ext
from ...dialects.gpu_ext import GLOBAL_SPACE
from ...dialects.lookup_table import TableAttr, entries_of
from ...dialects.vector_ext import lanes_of
from .lowering import PTR, FunctionLowering, LoweringFunction
from .memory import element_address
from .vectors import shuffle, widen

PERMUTATIONS = {256: "llvm.x86.avx2.permps", 512: "llvm.x86.avx512.permvar.sf.512"}
"""By the bits of a register: a table, then indices."""

_LANE_BITS = 32
_ALIGNMENT = 64
"""Of a table in memory, in bytes: one of 16 entries is in one cache line."""


def _lookup(b: FunctionLowering, op: vector_ext.LookupOp) -> None:
    table, index = entries_of(op.table), b.get(op.index)
    lanes, register = lanes_of(index.type), b.options.permutes // _LANE_BITS
    if 0 < lanes <= register and len(table) <= 2 * register:
        b.set(op.result, _permuted(b, index, table, register))
    else:
        b.set(op.result, _loaded(b, index, op.table))


def _permuted(b: FunctionLowering, index: SSAValue, table: Sequence[float], register: int) -> SSAValue:
    """The index modulo the length of the table is what the permutation itself takes of it."""
    lanes = lanes_of(index.type)
    wide = widen(b, index, register)
    parts = [_permutation(b, wide, table[first : first + register]) for first in range(0, len(table), register)]
    found = parts[0]
    if len(parts) == 2:
        bit = b.emit(llvm.AndOp, (wide, b.integer(wide.type, register)), wide.type)
        found = b.select(b.icmp("eq", bit, b.integer(wide.type, 0)), found, parts[1])
    return found if lanes == register else shuffle(b, found, found, range(lanes), VectorType(f32, [lanes]))


def _permutation(b: FunctionLowering, index: SSAValue, table: Sequence[float]) -> SSAValue:
    register = lanes_of(index.type)
    t = VectorType(f32, [register])
    # A short table is repeated: the bits of the index beyond it change nothing then.
    entries = DenseIntOrFPElementsAttr.from_list(t, [*table] * (register // len(table)))
    constant = b.emit(llvm.ConstantOp, (), t, {"value": entries})
    return b.call_intrinsic(PERMUTATIONS[register * _LANE_BITS], (constant, index), t, overloads=())


def _loaded(b: FunctionLowering, index: SSAValue, table: TableAttr) -> SSAValue:
    """A load for each lane. The index of no lane leaves the table."""
    base = _in_memory(b, table)
    within = b.emit(llvm.AndOp, (index, b.integer(index.type, len(table) - 1)), index.type)
    if not isinstance(index.type, VectorType):
        return _load(b, base, within)
    t = VectorType(f32, index.type.shape)
    result = b.emit(llvm_ext.PoisonOp, (), t)
    for lane in range(lanes_of(t)):
        number = b.integer(i32, lane)
        entry = _load(b, base, b.emit(llvm_ext.ExtractElementOp, (within, number), i32))
        result = b.emit(llvm.InsertElementOp, (result, entry, number), t)
    return result


def _load(b: FunctionLowering, base: SSAValue, index: SSAValue) -> SSAValue:
    wide = b.emit(llvm.ZExtOp, (index,), i64)
    properties = {"alignment": IntegerAttr(_LANE_BITS // 8, i64), "ordering": IntegerAttr(0, i64)}
    return b.emit(llvm.LoadOp, (element_address(b, base, wide, f32, inbounds=True),), f32, properties)


def _in_memory(b: FunctionLowering, table: TableAttr) -> SSAValue:
    """The address of a constant of the module; a function has each table once."""
    space = GLOBAL_SPACE if b.options.arch == "nvptx64" else 0
    if table not in b.tables:
        name = f"{b.name}_table_{len(b.tables)}"
        t = llvm.LLVMArrayType(IntAttr(len(table)), f32)
        b.tables[table] = llvm.GlobalOp(
            t, name, "internal", addr_space=space, constant=True, value=table, alignment=_ALIGNMENT
        )
        b.globals.append(b.tables[table])
    pointer = llvm.LLVMPointerType(IntAttr(space)) if space else PTR
    return b.emit(llvm.AddressOfOp, (), pointer, {"global_name": SymbolRefAttr(b.tables[table].sym_name.data)})


LOWERINGS: dict[type[Operation], LoweringFunction] = {vector_ext.LookupOp: _lookup}
