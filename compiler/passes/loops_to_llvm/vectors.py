"""``vector`` and the remaining ops of ``vector_ext`` on 1-D vectors, without memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Operation, SSAValue

from ...dialects import llvm_ext, vector_ext
from ...dialects.vector_ext import lanes_of
from .lowering import FunctionLowering, LoweringFunction

SCALING = "llvm.x86.avx512.mask.scalef.ps"
LEAST_LANES, WIDEST_LANES = 4, 16
_ROUND_AS_SET = 4
"""The rounding mode of MXCSR, which entry functions set to nearest even."""


def broadcast(b: FunctionLowering, value: SSAValue, t: VectorType) -> SSAValue:
    """A scalar in every lane."""
    owner = value.owner
    if isinstance(owner, llvm.ConstantOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
        number, element = owner.value.value.data, t.element_type
        assert isinstance(element, IntegerType | AnyFloat)
        data = BytesAttr(element.pack((number,)) * lanes_of(t))  # type: ignore[arg-type]
        return b.emit(llvm.ConstantOp, (), t, {"value": DenseIntOrFPElementsAttr(VectorType(element, t.shape), data)})
    poison = b.emit(llvm_ext.PoisonOp, (), t)
    first = b.emit(llvm.InsertElementOp, (poison, value, b.integer(i32, 0)), t)
    return shuffle(b, first, poison, [0] * lanes_of(t), t)


def shuffle(b: FunctionLowering, first: SSAValue, second: SSAValue, mask: Sequence[int], t: VectorType) -> SSAValue:
    """``shufflevector``; mask entry -1 leaves the lane undefined."""
    properties = {"mask": DenseArrayBase.from_list(i32, list(mask))}
    return b.emit(llvm.ShuffleVectorOp, (first, second), t, properties)


def _broadcast(b: FunctionLowering, op: vector.BroadcastOp) -> None:
    source, t = b.get(op.source), b.type(op.vector.type)
    assert isinstance(t, VectorType)
    if isinstance(source.type, VectorType):
        if lanes_of(source.type) != 1:
            if source.type != t:
                raise b.error(op, f"broadcasts {op.source.type}; only scalars and single lanes spread")
            b.set(op.vector, source)
            return
        poison = b.emit(llvm_ext.PoisonOp, (), source.type)
        b.set(op.vector, shuffle(b, source, poison, [0] * lanes_of(t), t))
        return
    b.set(op.vector, broadcast(b, source, t))


def _shuffle(b: FunctionLowering, op: vector.ShuffleOp) -> None:
    first, second = b.get(op.v1), b.get(op.v2)
    mask = [int(i) for i in op.mask.get_values()]
    lanes1, lanes2 = lanes_of(first.type), lanes_of(second.type)
    if not lanes1 or not lanes2:
        raise b.error(op, f"shuffles {op.v1.type} and {op.v2.type}; 0-D vectors are not in the subset")
    if lanes1 != lanes2:
        # LLVM wants both of one length: the shorter is widened, and the mask counts from the new length.
        width = max(lanes1, lanes2)
        first, second = widen(b, first, width), widen(b, second, width)
        mask = [i if i < lanes1 else i - lanes1 + width for i in mask]
    t = b.type(op.result.type)
    assert isinstance(t, VectorType)
    b.set(op.result, shuffle(b, first, second, mask, t))


def widen(b: FunctionLowering, value: SSAValue, lanes: int) -> SSAValue:
    """``value`` with more lanes, undefined ones behind its own."""
    t = value.type
    assert isinstance(t, VectorType)
    old = lanes_of(t)
    if old == lanes:
        return value
    poison = b.emit(llvm_ext.PoisonOp, (), t)
    wide = VectorType(t.element_type, [lanes])
    return shuffle(b, value, poison, [*range(old), *[-1] * (lanes - old)], wide)


def _position(b: FunctionLowering, op: vector.ExtractOp | vector.InsertOp) -> SSAValue:
    (static,) = op.static_position.get_values()
    return b.get(op.dynamic_position[0]) if static == DYNAMIC_INDEX else b.integer(i32, static)


def _extract(b: FunctionLowering, op: vector.ExtractOp) -> None:
    source = b.get(op.vector)
    b.set(
        op.result,
        b.emit(llvm_ext.ExtractElementOp, (source, _position(b, op)), b.type(op.result.type)),
    )


def _insert(b: FunctionLowering, op: vector.InsertOp) -> None:
    value, dest = b.get(op.source), b.get(op.dest)
    b.set(op.result, b.emit(llvm.InsertElementOp, (dest, value, _position(b, op)), dest.type))


def _bitcast(b: FunctionLowering, op: vector.BitcastOp) -> None:
    source, t = b.get(op.source), b.type(op.result.type)
    b.set(op.result, source if source.type == t else b.bitcast(source, t))


def _create_mask(b: FunctionLowering, op: vector.CreateMaskOp) -> None:
    """Lanes below a count: the count is cut to [0, lanes] first, so that 32-bit compares do."""
    (size,) = op.mask_dim_sizes
    t = b.type(op.mask_vector.type)
    count = b.get(size)
    lanes = lanes_of(t)
    count = b.call_intrinsic("llvm.smax", (count, b.integer(count.type, 0)), count.type)
    count = b.call_intrinsic("llvm.smin", (count, b.integer(count.type, lanes)), count.type)
    word = b.like(t, i32)
    assert isinstance(word, VectorType)
    spread = broadcast(b, b.emit(llvm.TruncOp, (count,), i32), word)
    iota = b.emit(llvm.ConstantOp, (), word, {"value": DenseIntOrFPElementsAttr.from_list(word, list(range(lanes)))})
    b.set(op.mask_vector, b.icmp("ult", iota, spread))


def _bitmask(b: FunctionLowering, op: vector_ext.BitmaskOp) -> None:
    # A vector of i1 cast to an integer: lane 0 is the lowest bit on a little-endian target, and no other is supported.
    b.set(op.result, b.bitcast(b.get(op.operand), b.type(op.result.type)))


def _scale(b: FunctionLowering, op: vector_ext.ScaleOp) -> None:
    """One instruction on a whole register of 4, 8 or 16 lanes; fewer are widened."""
    given = b.type(op.result.type)
    lanes = lanes_of(given) or 1
    register = VectorType(f32, [max(lanes, LEAST_LANES)])
    operands = [_in_register(b, b.get(value), register) for value in (op.value, op.power)]
    mask_type = IntegerType(max(8, lanes))
    nothing = _zeros(b, register)
    arguments = [*operands, nothing, b.integer(mask_type, -1)]
    if lanes == WIDEST_LANES:
        arguments.append(b.integer(i32, _ROUND_AS_SET))
    name = f"{SCALING}.{32 * max(lanes, LEAST_LANES)}"
    scaled = b.call_intrinsic(name, arguments, register, overloads=())
    if not isinstance(given, VectorType):
        scaled = b.emit(llvm_ext.ExtractElementOp, (scaled, b.integer(i32, 0)), given)
    elif given != register:
        scaled = shuffle(b, scaled, scaled, range(lanes), given)
    b.set(op.result, scaled)


def _zeros(b: FunctionLowering, register: VectorType[Float32Type]) -> SSAValue:
    return b.emit(llvm.ConstantOp, (), register, {"value": DenseIntOrFPElementsAttr.from_list(register, [0.0])})


def _in_register(b: FunctionLowering, value: SSAValue, register: VectorType[Float32Type]) -> SSAValue:
    if not isinstance(value.type, VectorType):
        return b.emit(llvm.InsertElementOp, (_zeros(b, register), value, b.integer(i32, 0)), register)
    return widen(b, value, lanes_of(register))


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    vector.BitcastOp: _bitcast,
    vector.BroadcastOp: _broadcast,
    vector.CreateMaskOp: _create_mask,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ShuffleOp: _shuffle,
    vector_ext.BitmaskOp: _bitmask,
    vector_ext.ScaleOp: _scale,
}
