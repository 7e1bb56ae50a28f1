"""Elementwise ops of the tile dialect on scalars and vectors: one table, the same for one lane or many.

``tile.cast``, ``tile.int_div`` and ``tile.shift`` are total; here they become ops that are total as well, by
guarding the operands that arith leaves undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, VectorType, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import tile, vector_ext
from ...dialects.tile.types import element_type
from .loop_builder import Index, LoopBuilder, vector_of

Lower = Callable[[LoopBuilder, Operation, Sequence[SSAValue], int], SSAValue]


def _width(element: Attribute) -> int:
    return element.width.data if isinstance(element, IntegerType) else 64


def _constant_like(builder: LoopBuilder, value: int | float, like: SSAValue, lanes: int) -> SSAValue:
    element = like.type.element_type if isinstance(like.type, VectorType) else like.type
    return builder.constant(value, element, lanes)


def _same_op(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    """An arith or math op: the same op on vectors."""
    result = vector_of(element_type(op.results[0].type), lanes)
    return builder.emit(
        type(op).create(
            operands=list(operands), properties=op.properties, attributes=op.attributes, result_types=[result]
        )
    )


def _cmpf(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    assert isinstance(op, tile.CmpFOp)
    lhs, rhs = operands
    return builder.emit(vector_ext.CmpFOp(op.predicate.data, lhs, rhs, op.fastmath))


def _cmpi(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    assert isinstance(op, tile.CmpIOp)
    lhs, rhs = operands
    return builder.compare(op.predicate.data, lhs, rhs)


def _select(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    assert isinstance(op, tile.SelectOp)
    condition, true_value, false_value = operands
    return builder.emit(vector_ext.SelectOp(condition, true_value, false_value, op.fastmath))


def _cast_to_integer(
    builder: LoopBuilder, value: SSAValue, source: Attribute, target: Attribute, unsigned: bool, lanes: int
) -> SSAValue:
    if isinstance(source, IndexType) != isinstance(target, IndexType):
        return builder.cast(value, "index_castui" if unsigned else "index_cast", target, lanes)
    if _width(source) == _width(target):
        return value
    if _width(source) > _width(target):
        return builder.cast(value, "trunci", target, lanes)
    return builder.cast(value, "extui" if unsigned else "extsi", target, lanes)


def _cast(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    assert isinstance(op, tile.CastOp)
    (value,) = operands
    source, target = element_type(op.operand.type), element_type(op.result.type)
    unsigned_source = op.unsigned_source is not None or source == i1
    if source == target:
        return value
    if target == i1:
        zero = _constant_like(builder, 0, value, lanes)
        if isinstance(source, AnyFloat):
            return builder.emit(vector_ext.CmpFOp("une", value, zero))
        return builder.compare("ne", value, zero)
    if isinstance(source, AnyFloat):
        if isinstance(target, AnyFloat):
            return _cast_float(builder, value, source, target, lanes, op.fastmath)
        kind = "fptoui_sat" if op.unsigned_result is not None else "fptosi_sat"
        return builder.cast(value, kind, target, lanes)
    if isinstance(target, AnyFloat):
        return builder.cast(value, "uitofp" if unsigned_source else "sitofp", target, lanes)
    return _cast_to_integer(builder, value, source, target, unsigned_source, lanes)


def _cast_float(
    builder: LoopBuilder, value: SSAValue, source: AnyFloat, target: AnyFloat, lanes: int, flags: FastMathFlagsAttr
) -> SSAValue:
    """f16 and bf16 are no wider than each other: they convert through f32, which holds both exactly."""
    if source.bitwidth == target.bitwidth:
        wide = builder.cast(value, "extf", f32, lanes, flags)
        return builder.cast(wide, "truncf", target, lanes, flags)
    kind = "extf" if source.bitwidth < target.bitwidth else "truncf"
    return builder.cast(value, kind, target, lanes, flags)


def _int_div(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    """x / 0 = x % 0 = 0; min / -1 = min, min % -1 = 0; signed forms round towards minus infinity."""
    assert isinstance(op, tile.IntDivOp)
    a, b = operands
    zero, one = (_constant_like(builder, value, b, lanes) for value in (0, 1))
    by_zero = builder.compare("eq", b, zero)
    kind = op.kind.data
    if kind in ("divu", "modu"):
        safe = builder.select(by_zero, one, b)
        result = builder.emit((arith.DivUIOp if kind == "divu" else arith.RemUIOp)(a, safe))
        return builder.select(by_zero, zero, result)
    # Dividing by -1 overflows for the least integer, so that division is a negation, which wraps.
    by_minus_one = builder.compare("eq", b, _constant_like(builder, -1, b, lanes))
    unsafe = builder.binary(arith.OrIOp, by_zero, by_minus_one)
    safe = builder.select(unsafe, one, b)
    remainder = builder.binary(arith.RemSIOp, a, safe)
    mixed = builder.compare("slt", builder.binary(arith.XOrIOp, remainder, safe), zero)
    adjust = builder.binary(arith.AndIOp, mixed, builder.compare("ne", remainder, zero))
    if kind == "mods":
        result = builder.select(adjust, builder.binary(arith.AddiOp, remainder, safe), remainder)
        return builder.select(unsafe, zero, result)
    quotient = builder.binary(arith.DivSIOp, a, safe)
    quotient = builder.select(adjust, builder.binary(arith.SubiOp, quotient, one), quotient)
    quotient = builder.select(by_minus_one, builder.binary(arith.SubiOp, zero, a), quotient)
    return builder.select(by_zero, zero, quotient)


_SHIFTS: dict[str, type[Operation]] = {
    "left": arith.ShLIOp,
    "right_logical": arith.ShRUIOp,
    "right_arithmetic": arith.ShRSIOp,
}


def _shift(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    """Counts of the width and more: 0 is shifted then, or the count is the most that keeps the sign.

    Not ``fits ? value << count : 0``: of that LLVM makes one instruction for GPUs that reads half of a 64-bit count.
    """
    assert isinstance(op, tile.ShiftOp)
    value, count = operands
    kind, width = op.kind.data, _width(element_type(op.result.type))
    fits = builder.compare("ult", count, _constant_like(builder, width, count, lanes))
    most = _constant_like(builder, width - 1, count, lanes)
    if kind == "right_arithmetic":
        count = builder.select(fits, count, most)
    else:
        count = builder.binary(arith.AndIOp, count, most)
        value = builder.select(fits, value, _constant_like(builder, 0, value, lanes))
    return builder.emit(_SHIFTS[kind].create(operands=[value, count], result_types=[value.type]))


def _scale(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    return builder.emit(vector_ext.ScaleOp(*operands))


def _lookup(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    assert isinstance(op, tile.LookupOp)
    (index,) = operands
    return builder.emit(vector_ext.LookupOp(index, op.table))


_TILE_OPS: dict[type[Operation], Lower] = {
    tile.CmpFOp: _cmpf,
    tile.CmpIOp: _cmpi,
    tile.SelectOp: _select,
    tile.CastOp: _cast,
    tile.IntDivOp: _int_div,
    tile.ShiftOp: _shift,
    tile.ScaleOp: _scale,
    tile.LookupOp: _lookup,
}


def lower_index(builder: LoopBuilder, op: Operation, operands: Sequence[Index]) -> Index | None:
    """A scalar op as index arithmetic, which folds constants and knows what is never negative; None for other ops."""
    if isinstance(op, arith.AddiOp):
        return builder.add(*operands)
    if isinstance(op, arith.SubiOp):
        return builder.sub(*operands)
    if isinstance(op, arith.MuliOp):
        return builder.mul(*operands)
    if isinstance(op, tile.IntDivOp):
        a, b = operands
        if isinstance(b, int) and b > 0 and builder.is_natural(a):
            return builder.rem(a, b) if op.kind.data.startswith("mod") else builder.div(a, b)
    return None


def is_elementwise(op: Operation) -> bool:
    """Whether ``op`` computes each element of its result from the same element of its operands."""
    return type(op) in _TILE_OPS or (op.dialect_name() in ("arith", "math") and not isinstance(op, arith.ConstantOp))


def lower_elementwise(builder: LoopBuilder, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    """``op`` on ``lanes`` lanes (1: scalars)."""
    return _TILE_OPS.get(type(op), _same_op)(builder, op, operands, lanes)
