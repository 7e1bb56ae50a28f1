"""Memory: flat memrefs as pointers, loads and stores of scalars and vectors, masks, gathers, stack buffers.

An access has the alignment of its element type unless the op's attribute ``alignment`` promises more. A bool
takes one byte in memory (0 is false, anything else true) and is a vector of i1 only in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, memref, ub, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from ...dialects import llvm_ext, vector_ext
from ...dialects.gpu_ext import SHARED_SPACE, space_of
from ...dialects.vector_ext import bit_width, element_of
from .lowering import PTR, FunctionLowering, LoweringFunction, intrinsic_op, verify_flat

STACK_LIMIT = 1 << 20
"""Bytes of stack buffers a function may have; the pool's threads and small Python threads have little more."""

_ONE_INDEX = DenseArrayBase.from_list(i32, [llvm.GEP_USE_SSA_VAL])
_ORDERING = IntegerAttr(0, i64)
_FOR_READING, _SECOND_CACHE, _DATA = 0, 2, 1
"""Of ``llvm.prefetch``. The first cache is small, and full of what is read now."""
_NO_WRAP_FLAGS = IntegerAttr(0, 32)
_INBOUNDS = UnitAttr()


def is_bool(t: Attribute) -> bool:
    """Whether values of this type are stored as bytes."""
    element = element_of(t)
    return isinstance(element, IntegerType) and element.width.data == 1


def stored_type(b: FunctionLowering, t: Attribute) -> Attribute:
    """The type of a value in memory: bytes for bools, otherwise itself."""
    if isinstance(t, IntegerType | VectorType) and is_bool(t):
        return b.like(t, i8)
    return t


def natural_alignment(element: Attribute) -> int:
    """Bytes of one element in memory, which is also its alignment there."""
    return max(8, bit_width(element)) // 8


def element_address(
    b: FunctionLowering, base: SSAValue, index: SSAValue, element: Attribute, *, inbounds: bool
) -> SSAValue:
    """``&base[index]``."""
    properties: dict[str, Attribute] = {
        "rawConstantIndices": _ONE_INDEX,
        "elem_type": element,
        "noWrapFlags": _NO_WRAP_FLAGS,
    }
    if inbounds:
        properties["inbounds"] = _INBOUNDS
    return b.emit(llvm.GEPOp, (base, index), base.type, properties)


def _address(
    b: FunctionLowering, op: IRDLOperation, base: SSAValue, indices: Sequence[SSAValue], *, inbounds: bool = True
) -> tuple[SSAValue, Attribute, IntegerAttr]:
    """Address of the access, element type in memory, alignment in bytes."""
    t = base.type
    assert isinstance(t, MemRefType)
    verify_flat(t)
    (index,) = indices
    element = stored_type(b, b.type(t.element_type))
    alignment = op.attributes.get("alignment")
    if alignment is None:
        alignment = IntegerAttr(natural_alignment(element), i64)
    assert isinstance(alignment, IntegerAttr)
    return element_address(b, b.get(base), b.get(index), element, inbounds=inbounds), element, alignment


def _from_memory(b: FunctionLowering, value: SSAValue, t: Attribute) -> SSAValue:
    return b.icmp("ne", value, b.integer(value.type, 0)) if value.type != t else value


def _to_memory(b: FunctionLowering, value: SSAValue) -> SSAValue:
    t = stored_type(b, value.type)
    return b.emit(llvm.ZExtOp, (value,), t) if t != value.type else value


def _load(b: FunctionLowering, op: memref.LoadOp | vector.LoadOp) -> None:
    (result,) = op.results
    base = op.operands[0]
    pointer, _, alignment = _address(b, op, base, op.indices)
    t = b.type(result.type)
    properties = {"alignment": alignment, "ordering": _ORDERING}
    loaded = b.emit(llvm.LoadOp, (pointer,), stored_type(b, t), properties)
    b.set(result, _from_memory(b, loaded, t))


def _store(b: FunctionLowering, op: memref.StoreOp | vector.StoreOp) -> None:
    value, base = op.operands[0], op.operands[1]
    pointer, _, alignment = _address(b, op, base, op.indices)
    properties: dict[str, Attribute] = {"alignment": alignment, "ordering": _ORDERING}
    if op.nontemporal is not None and op.nontemporal.value.data:
        properties["nontemporal"] = UnitAttr()
    b.emit_void(llvm.StoreOp, (_to_memory(b, b.get(value)), pointer), properties)


def _masked_load(b: FunctionLowering, op: vector.MaskedLoadOp) -> None:
    pointer, _, alignment = _address(b, op, op.base, op.indices, inbounds=False)
    t = b.type(op.result.type)
    pass_thru = _to_memory(b, b.get(op.pass_thru))
    operands = (pointer, b.get(op.mask), pass_thru)
    loaded = b.emit(llvm_ext.MaskedLoadOp, operands, pass_thru.type, {"alignment": alignment})
    b.set(op.result, _from_memory(b, loaded, t))


def _masked_store(b: FunctionLowering, op: vector.MaskedStoreOp) -> None:
    pointer, _, alignment = _address(b, op, op.base, op.indices, inbounds=False)
    value = _to_memory(b, b.get(op.value_to_store))
    b.emit_void(llvm_ext.MaskedStoreOp, (value, pointer, b.get(op.mask)), {"alignment": alignment})


def _element_alignment(b: FunctionLowering, base: SSAValue) -> IntegerAttr:
    t = base.type
    assert isinstance(t, MemRefType)
    verify_flat(t)
    return IntegerAttr(natural_alignment(b.type(t.element_type)), i64)


def _gather(b: FunctionLowering, op: vector_ext.GatherOp) -> None:
    t = b.type(op.result.type)
    pass_thru = _to_memory(b, b.get(op.pass_thru))
    operands = (b.get(op.base), b.get(op.indices), b.get(op.mask), pass_thru)
    alignment = _element_alignment(b, op.base)
    loaded = b.emit(llvm_ext.GatherOp, operands, pass_thru.type, {"alignment": alignment})
    b.set(op.result, _from_memory(b, loaded, t))


def _scatter(b: FunctionLowering, op: vector_ext.ScatterOp) -> None:
    value = _to_memory(b, b.get(op.value))
    operands = (value, b.get(op.base), b.get(op.indices), b.get(op.mask))
    b.emit_void(llvm_ext.ScatterOp, operands, {"alignment": _element_alignment(b, op.base)})


def _prefetch(b: FunctionLowering, op: vector_ext.PrefetchOp) -> None:
    """The address may lie outside of the buffer, so nothing is promised of it."""
    pointer, _, _ = _address(b, op, op.base, (op.index,), inbounds=False)
    hints = (b.integer(i32, _FOR_READING), b.integer(i32, _SECOND_CACHE), b.integer(i32, _DATA))
    b.block.add_op(intrinsic_op("llvm.prefetch", (pointer, *hints), (), overloads=(PTR,)))


def _shared(b: FunctionLowering, t: Attribute, alignment: int) -> SSAValue:
    """A variable of the module, of which each block of threads has its own."""
    name = f"{b.name}_shared_{len(b.globals)}"
    b.globals.append(
        llvm.GlobalOp(t, name, "internal", addr_space=SHARED_SPACE, value=ub.PoisonAttr(), alignment=alignment)
    )
    return b.emit(
        llvm.AddressOfOp, (), llvm.LLVMPointerType(IntAttr(SHARED_SPACE)), {"global_name": SymbolRefAttr(name)}
    )


def _alloca(b: FunctionLowering, op: memref.AllocaOp) -> None:
    """A stack buffer of static size. It moves to the entry block, so that a loop does not grow the stack."""
    t = op.memref.type
    assert isinstance(t, MemRefType)
    verify_flat(t)
    size = t.shape.data[0].data
    if size == DYNAMIC_INDEX:
        raise b.error(op, f"needs a static size, not {t}; use an argument for buffers of dynamic size")
    element = stored_type(b, b.type(t.element_type))
    alignment = op.alignment.value.data if op.alignment is not None else natural_alignment(element)
    if space_of(t) == SHARED_SPACE:
        b.set(op.memref, _shared(b, llvm.LLVMArrayType(IntAttr(size), element), alignment))
        return
    b.stack_bytes += size * natural_alignment(element)
    if b.stack_bytes > STACK_LIMIT:
        raise b.error(
            op, f"brings the stack buffers to {b.stack_bytes} bytes of {STACK_LIMIT} allowed; use an argument instead"
        )
    count = llvm.ConstantOp(IntegerAttr(size, i64), i64)
    alloca = llvm.AllocaOp.create(
        operands=(count.result,),
        result_types=(PTR,),
        properties={"alignment": IntegerAttr(alignment, i64), "elem_type": element},
    )
    b.entry_allocas.extend((count, alloca))
    b.set(op.memref, alloca.res)


def _cast(b: FunctionLowering, op: memref.CastOp) -> None:
    for t in (op.source.type, op.dest.type):
        if not isinstance(t, MemRefType):
            raise b.error(op, f"casts {t}; only flat memrefs are in the subset")
        verify_flat(t)
    b.set(op.dest, b.get(op.source))


def _pointer(b: FunctionLowering, op: memref.ExtractAlignedPointerAsIndexOp) -> None:
    """The address in memory, for whoever is called from here."""
    b.set(op.aligned_pointer, b.emit(llvm.PtrToIntOp, (b.get(op.source),), i64))


def _memory_at(b: FunctionLowering, op: vector_ext.MemoryAtOp) -> None:
    b.set(op.memory, b.emit(llvm.IntToPtrOp, (b.get(op.address),), PTR))


def _dim(b: FunctionLowering, op: memref.DimOp) -> None:
    t = op.source.type
    assert isinstance(t, MemRefType)
    verify_flat(t)
    size = t.shape.data[0].data
    if size == DYNAMIC_INDEX:
        raise b.error(op, f"asks for the size of {t}, which a flat memref does not carry; pass it as an index argument")
    b.set(op.result, b.integer(i64, size))


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    memref.AllocaOp: _alloca,
    memref.CastOp: _cast,
    memref.DimOp: _dim,
    memref.ExtractAlignedPointerAsIndexOp: _pointer,
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    vector.LoadOp: _load,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
    vector.StoreOp: _store,
    vector_ext.GatherOp: _gather,
    vector_ext.MemoryAtOp: _memory_at,
    vector_ext.PrefetchOp: _prefetch,
    vector_ext.ScatterOp: _scatter,
}
