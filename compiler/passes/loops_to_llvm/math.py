"""The ops of ``math`` that are one instruction, or exact; everything else in ``math`` is expand-math's."""

from __future__ import annotations

from xdsl.dialects import llvm, math, vector
from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32, f64, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.vector_ext import element_of
from .casts import extend_float, truncate_float
from .lowering import (
    NO_FLAGS,
    FunctionLowering,
    LoweringFunction,
    fastmath,
    flag_properties,
    without_approximations,
)

_16_BITS = (BFloat16Type, Float16Type)


def _float_unary(name: str) -> LoweringFunction:
    """bf16 goes through f32: what rounds to an integer stays one in bf16, and sqrt rounds innocuously there."""

    def lower(b: FunctionLowering, op: Operation) -> None:
        element = element_of(op.operands[0].type)
        operand = b.get(op.operands[0])
        t, flags = operand.type, without_approximations(fastmath(op), b.options)
        if isinstance(element, BFloat16Type):
            wide = b.like(t, f32)
            new = b.call_intrinsic(name, (extend_float(b, operand, element, wide),), wide, flags)
            b.set(op.results[0], truncate_float(b, new, element))
        else:
            b.set(op.results[0], b.call_intrinsic(name, (operand,), t, flags))

    return lower


def _absolute(b: FunctionLowering, op: math.AbsFOp) -> None:
    operand = b.get(op.operand)
    t = operand.type
    if isinstance(element_of(op.operand.type), BFloat16Type):
        b.set(op.result, b.emit(llvm.AndOp, (operand, b.integer(t, 0x7FFF)), t))
    else:
        b.set(op.result, b.call_intrinsic("llvm.fabs", (operand,), t, fastmath(op)))


def _copysign(b: FunctionLowering, op: math.CopySignOp) -> None:
    lhs, rhs = b.get(op.lhs), b.get(op.rhs)
    t = lhs.type
    if isinstance(element_of(op.lhs.type), BFloat16Type):
        size = b.emit(llvm.AndOp, (lhs, b.integer(t, 0x7FFF)), t)
        sign = b.emit(llvm.AndOp, (rhs, b.integer(t, 0x8000)), t)
        b.set(op.result, b.emit(llvm.OrOp, (size, sign), t))
    else:
        b.set(op.result, b.call_intrinsic("llvm.copysign", (lhs, rhs), t, fastmath(op)))


def _fma(b: FunctionLowering, op: math.FmaOp | vector.FMAOp) -> None:
    a, c, addend = (b.get(operand) for operand in op.operands)
    element = element_of(op.operands[0].type)
    if isinstance(element, _16_BITS):
        b.set(op.results[0], _narrow_fma(b, element, a, c, addend))
    else:
        b.set(op.results[0], b.call_intrinsic("llvm.fma", (a, c, addend), a.type, fastmath(op)))


def _narrow_fma(b: FunctionLowering, element: Attribute, a: SSAValue, c: SSAValue, addend: SSAValue) -> SSAValue:
    """fma of f16 or bf16, rounded once.

    The product of two is exact in f64. Its sum with the addend need not be, so the error of the sum (D. Knuth's
    TwoSum) decides whether the last bit of the f64 is set, which makes the rounding that follows the only one that
    counts (round to odd, as in ``casts``). LLVM's own goes through f32 and rounds twice.
    """
    double = b.like(a.type, f64)
    plain = flag_properties(NO_FLAGS)

    def compute(target: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        return b.emit(target, (x, y), double, plain)

    a, c, addend = (extend_float(b, value, element, double) for value in (a, c, addend))
    product = compute(llvm.FMulOp, a, c)
    total = compute(llvm.FAddOp, product, addend)
    from_addend = compute(llvm.FSubOp, total, product)
    from_product = compute(llvm.FSubOp, total, from_addend)
    error = compute(
        llvm.FAddOp,
        compute(llvm.FSubOp, product, from_product),
        compute(llvm.FSubOp, addend, from_addend),
    )
    return truncate_float(b, _odd(b, total, error), element)


def _odd(b: FunctionLowering, total: SSAValue, error: SSAValue) -> SSAValue:
    """``total``, nearest to ``total + error``, made the odd one of its neighbours if there is an error."""
    bits, error_bits = b.bits_of(total), b.bits_of(error)
    word = bits.type
    # Rounded away from zero if the error points back: one pattern lower, then as for rounding towards zero.
    signs = b.emit(llvm.XOrOp, (bits, error_bits), word)
    opposite = b.emit(llvm.LShrOp, (signs, b.integer(word, 63)), word)
    odd = b.emit(llvm.OrOp, (b.emit(llvm.SubOp, (bits, opposite), word), b.integer(word, 1)), word)
    inexact = b.fcmp("one", error, b.float(error.type, 0.0))  # false for NaN, which inf - inf above gives
    return b.bitcast(b.select(inexact, odd, bits), total.type)


def _count_zeros(name: str) -> LoweringFunction:
    def lower(b: FunctionLowering, op: Operation) -> None:
        operand = b.get(op.operands[0])
        # The second argument makes the count of 0 the width, not poison.
        b.set(op.results[0], b.call_intrinsic(name, (operand, b.integer(i1, 0)), operand.type))

    return lower


def _population(b: FunctionLowering, op: math.CtPopOp) -> None:
    operand = b.get(op.operand)
    b.set(op.result, b.call_intrinsic("llvm.ctpop", (operand,), operand.type))


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    math.AbsFOp: _absolute,
    math.AbsIOp: _count_zeros("llvm.abs"),
    math.CeilOp: _float_unary("llvm.ceil"),
    math.CopySignOp: _copysign,
    math.CountLeadingZerosOp: _count_zeros("llvm.ctlz"),
    math.CountTrailingZerosOp: _count_zeros("llvm.cttz"),
    math.CtPopOp: _population,
    math.FloorOp: _float_unary("llvm.floor"),
    math.FmaOp: _fma,
    math.RoundEvenOp: _float_unary("llvm.roundeven"),
    math.SqrtOp: _float_unary("llvm.sqrt"),
    math.TruncOp: _float_unary("llvm.trunc"),
    vector.FMAOp: _fma,
}
