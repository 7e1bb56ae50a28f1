"""``arith``, and the comparisons and select of ``vector_ext``, on scalars and 1-D vectors."""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    f32,
    i16,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import vector_ext
from ...dialects.vector_ext import element_of
from .casts import extend_float, truncate_float
from .lowering import (
    FunctionLowering,
    LoweringFunction,
    fastmath,
    flag_properties,
    without_approximations,
    without_poison,
)

_OVERFLOW = {
    frozenset(): IntegerAttr(0, 32),
    frozenset({arith.IntegerOverflowFlag.NSW}): IntegerAttr(1, 32),
    frozenset({arith.IntegerOverflowFlag.NUW}): IntegerAttr(2, 32),
    frozenset(arith.IntegerOverflowFlag): IntegerAttr(3, 32),
}


def _integer_binary(target: type[Operation]) -> LoweringFunction:
    def lower(b: FunctionLowering, op: Operation) -> None:
        lhs, rhs = op.operands
        properties: dict[str, Attribute] = {}
        overflow = op.properties.get("overflowFlags")
        if overflow is not None:
            properties["overflowFlags"] = _OVERFLOW[overflow.data]  # type: ignore[attr-defined]
        new = b.get(lhs)
        b.set(op.results[0], b.emit(target, (new, b.get(rhs)), new.type, properties))

    return lower


def _float_binary(target: type[Operation]) -> LoweringFunction:
    """bf16 is computed in f32 and rounded once more, which for + - * / gives the correctly rounded bf16 result.

    (f32 has 24 bits, more than twice the 8 of bf16 plus 2, so the second rounding is innocuous: S. Figueroa, "When is
    double rounding innocuous?", 1995. LLVM's own bf16 arithmetic truncates through instructions that flush subnormals.)
    """

    def lower(b: FunctionLowering, op: Operation) -> None:
        element = element_of(op.operands[0].type)
        lhs, rhs = (b.get(operand) for operand in op.operands)
        properties = flag_properties(without_approximations(fastmath(op), b.options))
        if isinstance(element, BFloat16Type):
            wide = b.like(lhs.type, f32)
            lhs, rhs = extend_float(b, lhs, element, wide), extend_float(b, rhs, element, wide)
            new = truncate_float(b, b.emit(target, (lhs, rhs), wide, properties), element)
        else:
            new = b.emit(target, (lhs, rhs), lhs.type, properties)
        b.set(op.results[0], new)

    return lower


def _integer_intrinsic(name: str) -> LoweringFunction:
    def lower(b: FunctionLowering, op: Operation) -> None:
        lhs, rhs = (b.get(operand) for operand in op.operands)
        b.set(op.results[0], b.call_intrinsic(name, (lhs, rhs), lhs.type))

    return lower


def _constant(b: FunctionLowering, op: arith.ConstantOp) -> None:
    value: Attribute = op.value
    t = b.type(op.result.type)
    if t != op.result.type:
        # index and bf16 are integers in LLVM: the same bits under another type.
        if isinstance(value, FloatAttr):
            bits = int.from_bytes(value.type.pack((value.value.data,)), "little")
            value = IntegerAttr(bits, i16, truncate_bits=True)
        elif isinstance(value, IntegerAttr):
            value = IntegerAttr(value.value.data, i64)
        elif isinstance(value, DenseIntOrFPElementsAttr):
            value = DenseIntOrFPElementsAttr(t, value.data)  # type: ignore[arg-type]
    if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
        raise b.error(op, f"holds {value}; write the values out")
    b.set(op.result, b.emit(llvm.ConstantOp, (), t, {"value": value}))


def _negate(b: FunctionLowering, op: arith.NegfOp) -> None:
    operand = b.get(op.operand)
    t = operand.type
    if isinstance(element_of(op.operand.type), BFloat16Type):
        b.set(op.result, b.emit(llvm.XOrOp, (operand, b.integer(t, 0x8000)), t))
    else:
        b.set(op.result, b.emit(llvm.FNegOp, (operand,), t, flag_properties(fastmath(op))))


def _comparable(b: FunctionLowering, operand: SSAValue) -> SSAValue:
    """The float to compare with: bf16 as f32, which holds every bf16."""
    value, element = b.get(operand), element_of(operand.type)
    if isinstance(element, BFloat16Type):
        return extend_float(b, value, element, b.like(value.type, f32))
    return value


def _compare_floats(b: FunctionLowering, op: arith.CmpfOp | vector_ext.CmpFOp) -> None:
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    b.set(op.result, b.fcmp(predicate, _comparable(b, op.lhs), _comparable(b, op.rhs), fastmath(op)))


def _compare_integers(b: FunctionLowering, op: arith.CmpiOp | vector_ext.CmpIOp) -> None:
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    b.set(op.result, b.icmp(predicate, b.get(op.lhs), b.get(op.rhs)))


def _select(b: FunctionLowering, op: arith.SelectOp | vector_ext.SelectOp) -> None:
    condition, true_value, false_value = (b.get(operand) for operand in op.operands)
    b.set(op.result, b.select(condition, true_value, false_value, fastmath(op)))


def _extremum(is_max: bool) -> LoweringFunction:
    """maximumf, minimumf: NaN propagates and -0.0 < +0.0.

    On x86 ``llvm.maximum`` takes 6 instructions of AVX-512, and branches for scalars. This takes 5 and never
    branches: both orders     of ``a > b ? a : b`` (one ``vmaxps`` each) differ only in zeros and NaN; of two zeros
    ``and`` gives +0.0 (``or`` gives -0.0, for the minimum); a lane with a NaN is set to all ones, a NaN.
    """
    predicate, join, name = ("ogt", llvm.AndOp, "llvm.maximum") if is_max else ("olt", llvm.OrOp, "llvm.minimum")

    def lower(b: FunctionLowering, op: arith.MaximumfOp | arith.MinimumfOp) -> None:
        lhs, rhs = b.get(op.lhs), b.get(op.rhs)
        flags, t = fastmath(op), lhs.type
        if b.options.arch != "x86_64" and not isinstance(element_of(op.lhs.type), BFloat16Type):
            b.set(op.result, b.call_intrinsic(name, (lhs, rhs), t, flags))
            return
        x, y = _comparable(b, op.lhs), _comparable(b, op.rhs)
        safe = without_poison(flags)
        new = b.select(b.fcmp(predicate, x, y, safe), lhs, rhs, safe)
        if FastMathFlag.NO_SIGNED_ZEROS not in flags.data:
            swapped = b.select(b.fcmp(predicate, y, x, safe), rhs, lhs, safe)
            new = b.bits_of(new)
            new = b.emit(join, (new, b.bits_of(swapped)), new.type)
        if FastMathFlag.NO_NANS not in flags.data:
            new = b.bits_of(new)
            new = b.select(b.fcmp("uno", x, y, safe), b.integer(new.type, -1), new)
        b.set(op.result, b.bitcast(new, t))

    return lower


def _number_extremum(predicate: str) -> LoweringFunction:
    """maxnumf, minnumf: a NaN loses to a number. Of equal operands (two zeros as well) the second is taken.

    Spelled out, since ``llvm.maxnum`` leaves the sign of zero to each target.
    """

    def lower(b: FunctionLowering, op: arith.MaxnumfOp | arith.MinnumfOp) -> None:
        lhs, rhs = b.get(op.lhs), b.get(op.rhs)
        flags = fastmath(op)
        x, y = _comparable(b, op.lhs), _comparable(b, op.rhs)
        safe = without_poison(flags)
        new = b.select(b.fcmp(predicate, x, y, safe), lhs, rhs, safe)
        if FastMathFlag.NO_NANS not in flags.data:
            new = b.select(b.fcmp("uno", y, y, safe), lhs, new, safe)
        b.set(op.result, new)

    return lower


def _divide_rounding(rem: str, div: type[Operation], towards: str) -> LoweringFunction:
    """floordivsi, ceildivsi, ceildivui: the truncated quotient, corrected by one where a remainder calls for it."""

    def lower(b: FunctionLowering, op: Operation) -> None:
        lhs, rhs = (b.get(operand) for operand in op.operands)
        t = lhs.type
        quotient = b.emit(div, (lhs, rhs), t)
        remainder = b.emit(llvm.URemOp if rem == "urem" else llvm.SRemOp, (lhs, rhs), t)
        zero = b.integer(t, 0)
        inexact = b.icmp("ne", remainder, zero)
        if rem == "srem":
            # Truncation went up (towards zero) exactly where the signs of remainder and divisor differ.
            signs = b.emit(llvm.XOrOp, (remainder, rhs), t)
            side = b.icmp("slt" if towards == "floor" else "sge", signs, zero)
            inexact = b.emit(llvm.AndOp, (inexact, side), inexact.type)
        step = inexact if inexact.type == t else b.emit(llvm.ZExtOp, (inexact,), t)
        b.set(op.results[0], b.emit(llvm.SubOp if towards == "floor" else llvm.AddOp, (quotient, step), t))

    return lower


def _multiply_extended(extend: type[Operation]) -> LoweringFunction:
    """mului_extended, mulsi_extended: both halves of the double-width product."""

    def lower(b: FunctionLowering, op: arith.MulUIExtendedOp | arith.MulSIExtendedOp) -> None:
        lhs, rhs = b.get(op.lhs), b.get(op.rhs)
        t = lhs.type
        width = element_of(t).width.data  # type: ignore[attr-defined]
        wide = b.like(t, IntegerType(2 * width))
        product = b.emit(llvm.MulOp, (b.emit(extend, (lhs,), wide), b.emit(extend, (rhs,), wide)), wide)
        high = b.emit(llvm.LShrOp, (product, b.integer(wide, width)), wide)
        b.set(op.low, b.emit(llvm.TruncOp, (product,), t))
        b.set(op.high, b.emit(llvm.TruncOp, (high,), t))

    return lower


def _add_extended(b: FunctionLowering, op: arith.AddUIExtendedOp) -> None:
    lhs, rhs = b.get(op.lhs), b.get(op.rhs)
    total = b.emit(llvm.AddOp, (lhs, rhs), lhs.type)
    b.set(op.sum, total)
    b.set(op.overflow, b.icmp("ult", total, lhs))


def _bitcast(b: FunctionLowering, op: arith.BitcastOp) -> None:
    operand = b.get(op.input)
    if isinstance(op.input.type, MemRefType):
        b.type(op.result.type)
        b.set(op.result, operand)
        return
    b.set(op.result, b.bitcast(operand, b.type(op.result.type)))


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    arith.AddfOp: _float_binary(llvm.FAddOp),
    arith.AddiOp: _integer_binary(llvm.AddOp),
    arith.AddUIExtendedOp: _add_extended,
    arith.AndIOp: _integer_binary(llvm.AndOp),
    arith.BitcastOp: _bitcast,
    arith.CeilDivSIOp: _divide_rounding("srem", llvm.SDivOp, "ceil"),
    arith.CeilDivUIOp: _divide_rounding("urem", llvm.UDivOp, "ceil"),
    arith.CmpfOp: _compare_floats,
    arith.CmpiOp: _compare_integers,
    arith.ConstantOp: _constant,
    arith.DivfOp: _float_binary(llvm.FDivOp),
    arith.DivSIOp: _integer_binary(llvm.SDivOp),
    arith.DivUIOp: _integer_binary(llvm.UDivOp),
    arith.FloorDivSIOp: _divide_rounding("srem", llvm.SDivOp, "floor"),
    arith.MaximumfOp: _extremum(is_max=True),
    arith.MaxnumfOp: _number_extremum("ogt"),
    arith.MaxSIOp: _integer_intrinsic("llvm.smax"),
    arith.MaxUIOp: _integer_intrinsic("llvm.umax"),
    arith.MinimumfOp: _extremum(is_max=False),
    arith.MinnumfOp: _number_extremum("olt"),
    arith.MinSIOp: _integer_intrinsic("llvm.smin"),
    arith.MinUIOp: _integer_intrinsic("llvm.umin"),
    arith.MulfOp: _float_binary(llvm.FMulOp),
    arith.MuliOp: _integer_binary(llvm.MulOp),
    arith.MulSIExtendedOp: _multiply_extended(llvm.SExtOp),
    arith.MulUIExtendedOp: _multiply_extended(llvm.ZExtOp),
    arith.NegfOp: _negate,
    arith.OrIOp: _integer_binary(llvm.OrOp),
    arith.RemSIOp: _integer_binary(llvm.SRemOp),
    arith.RemUIOp: _integer_binary(llvm.URemOp),
    arith.SelectOp: _select,
    arith.ShLIOp: _integer_binary(llvm.ShlOp),
    arith.ShRSIOp: _integer_binary(llvm.AShrOp),
    arith.ShRUIOp: _integer_binary(llvm.LShrOp),
    arith.SubfOp: _float_binary(llvm.FSubOp),
    arith.SubiOp: _integer_binary(llvm.SubOp),
    arith.XOrIOp: _integer_binary(llvm.XOrOp),
    vector_ext.CmpFOp: _compare_floats,
    vector_ext.CmpIOp: _compare_integers,
    vector_ext.SelectOp: _select,
}
