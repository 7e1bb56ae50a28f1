"""``gpu`` and ``gpu_ext``: the intrinsics of NVPTX for thread numbers, barriers, shuffles and atomics."""

from __future__ import annotations

from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import UnitAttr, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import gpu_ext, llvm_ext
from ...dialects.gpu_ext import SCRATCH_BYTES
from ...dialects.llvm_ext import AtomicKind, AtomicKindAttr, Ordering, OrderingAttr
from ...dialects.vector_ext import bit_width
from .lowering import FunctionLowering, LoweringFunction, intrinsic_op
from .memory import element_address

_ALL_THREADS = -1
"""The mask of a shuffle that all threads of the warp take part in."""
_LAST_LANE = 31


def _register(name: str) -> LoweringFunction:
    """A number of the thread, the block or the grid, along an axis; unsigned and 32 bits wide."""

    def lower(b: FunctionLowering, op: gpu.ThreadIdOp | gpu.BlockIdOp | gpu.GridDimOp) -> None:
        value = b.call_intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}.{op.dimension.data.value}", (), i32, overloads=())
        b.set(op.result, b.emit(llvm.ZExtOp, (value,), i64, {"nonNeg": UnitAttr()}))

    return lower


def _barrier(b: FunctionLowering, op: gpu.BarrierOp) -> None:
    b.block.add_op(intrinsic_op("llvm.nvvm.barrier.cta.sync.aligned.all", (b.integer(i32, 0),), ()))


def _shuffle_down(b: FunctionLowering, op: gpu_ext.ShuffleDownOp) -> None:
    """Registers have 32 bits: narrower values are widened, 64-bit values go in two halves."""
    value = b.get(op.value)
    bits, distance = b.bits_of(value), op.distance.value.data
    width = bit_width(bits.type)
    if width <= 32:
        word = bits if width == 32 else b.emit(llvm.ZExtOp, (bits,), i32)
        moved = _shuffle_word(b, word, distance)
        moved = moved if width == 32 else b.emit(llvm.TruncOp, (moved,), bits.type)
    else:
        high = b.emit(llvm.LShrOp, (bits, b.integer(i64, 32)), i64)
        low, high = (_shuffle_word(b, b.emit(llvm.TruncOp, (half,), i32), distance) for half in (bits, high))
        low, high = (b.emit(llvm.ZExtOp, (half,), i64) for half in (low, high))
        moved = b.emit(llvm.OrOp, (b.emit(llvm.ShlOp, (high, b.integer(i64, 32)), i64), low), i64)
    b.set(op.result, b.bitcast(moved, value.type))


def _shuffle_word(b: FunctionLowering, word: SSAValue, distance: int) -> SSAValue:
    operands = [b.integer(i32, _ALL_THREADS), word, b.integer(i32, distance), b.integer(i32, _LAST_LANE)]
    return b.call_intrinsic("llvm.nvvm.shfl.sync.down.i32", operands, i32, overloads=())


def _atomic_min(b: FunctionLowering, op: gpu_ext.AtomicMinOp) -> None:
    address = element_address(b, b.get(op.memory), b.get(op.index), i64, inbounds=True)
    properties: dict[str, Attribute] = {
        "kind": AtomicKindAttr(AtomicKind.UMIN),
        "ordering": OrderingAttr(Ordering.MONOTONIC),
    }
    b.set(op.result, b.emit(llvm_ext.AtomicRMWOp, (address, b.get(op.value)), i64, properties))


def _block_scratch(b: FunctionLowering, op: gpu_ext.BlockScratchOp) -> None:
    block = b.call_intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.x", (), i32, overloads=())
    start = b.emit(llvm.MulOp, (b.emit(llvm.ZExtOp, (block,), i64), b.integer(i64, _scratch_bytes(op))), i64)
    start = b.emit(llvm.AddOp, (start, b.integer(i64, op.offset.value.data)), i64)
    b.set(op.result, element_address(b, b.get(op.memory), start, i8, inbounds=True))


def _scratch_bytes(op: Operation) -> int:
    function = op.parent_op()
    while function is not None and SCRATCH_BYTES not in function.attributes:
        function = function.parent_op()
    assert function is not None, f"{op.name} stands in a function with {SCRATCH_BYTES}"
    number = function.attributes[SCRATCH_BYTES]
    return int(number.value.data)  # type: ignore[attr-defined]


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    gpu.BarrierOp: _barrier,
    gpu.BlockIdOp: _register("ctaid"),
    gpu.GridDimOp: _register("nctaid"),
    gpu.ThreadIdOp: _register("tid"),
    gpu_ext.AtomicMinOp: _atomic_min,
    gpu_ext.BlockScratchOp: _block_scratch,
    gpu_ext.ShuffleDownOp: _shuffle_down,
}
