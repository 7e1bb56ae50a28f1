"""Casts between number types, each with one rounding and a result for every input.

LLVM's own are unusable in part: ``fptrunc`` to bf16 flushes subnormals or calls a library function, from f64 to f16 it calls one;
``fptosi.sat`` on vectors falls apart into scalars (118 instructions for 16 lanes); an integer to bf16 or a wide
integer to f16 rounds twice. The sequences here are built of exact steps, of which only the last one rounds.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    f32,
    f64,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import llvm_ext, vector_ext
from ...dialects.vector_ext import CastKind, bit_width, element_of
from .lowering import NO_FLAGS, FunctionLowering, LoweringFunction, fastmath, flag_properties, integer_type

_16_BITS = (BFloat16Type, Float16Type)


# Float to float


def extend_float(b: FunctionLowering, value: SSAValue, t: Attribute, flags: llvm.FastMathAttr = NO_FLAGS) -> SSAValue:
    """To a wider float type, exactly. bf16 is the upper half of an f32, so a shift does it."""
    element = element_of(value.type)
    if isinstance(element, BFloat16Type):
        word = b.like(t, i32)
        bits = b.emit(llvm.ZExtOp, (b.bits_of(value),), word)
        bits = b.emit(llvm.ShlOp, (bits, b.integer(word, 16)), word)
        value = b.bitcast(bits, b.like(t, f32))
    elif isinstance(element, Float16Type):
        value = b.emit(llvm_ext.FPExtOp, (value,), b.like(t, f32), flag_properties(flags))
    if element_of(value.type) == element_of(t):
        return value
    return b.emit(llvm_ext.FPExtOp, (value,), t, flag_properties(flags))


def truncate_float(b: FunctionLowering, value: SSAValue, t: Attribute, flags: llvm.FastMathAttr = NO_FLAGS) -> SSAValue:
    """To a narrower float type, rounded once to nearest even; subnormals and NaN kept."""
    to_16_bits = isinstance(element_of(t), _16_BITS)
    if to_16_bits and isinstance(element_of(value.type), Float64Type):
        value = _round_to_odd(b, value)
    if isinstance(element_of(t), BFloat16Type):
        return _to_bf16(b, value, t)
    return b.emit(llvm_ext.FPTruncOp, (value,), t, flag_properties(flags))


def _to_bf16(b: FunctionLowering, value: SSAValue, t: Attribute) -> SSAValue:
    """f32 to bf16: adds half of the last place (one less if that place is even) and keeps the upper half.

    The carry runs into the exponent as it should, up to infinity. NaN keeps sign and upper payload, and is made quiet.
    """
    bits = b.bits_of(value)
    word = bits.type
    shift = b.integer(word, 16)
    upper = b.emit(llvm.LShrOp, (bits, shift), word)
    odd = b.emit(llvm.AndOp, (upper, b.integer(word, 1)), word)
    rounded = b.emit(llvm.AddOp, (bits, b.integer(word, 0x7FFF)), word)
    rounded = b.emit(llvm.AddOp, (rounded, odd), word)
    rounded = b.emit(llvm.LShrOp, (rounded, shift), word)
    quiet = b.emit(llvm.OrOp, (upper, b.integer(word, 0x40)), word)
    is_nan = b.fcmp("uno", value, value)
    chosen = b.select(is_nan, quiet, rounded)
    half = b.emit(llvm.TruncOp, (chosen,), b.like(t, integer_type(16)))
    return b.bitcast(half, t)


def _round_to_odd(b: FunctionLowering, value: SSAValue) -> SSAValue:
    """f64 to f32, rounded to odd: towards zero, with the last bit set if anything was lost.

    A second rounding to 8 or 11 bits then gives what one rounding would (S. Boldo, G. Melquiond, "Emulation of FMA and
    correctly rounded sums", 2008: the middle format needs two bits more).
    """
    nearest = b.emit(llvm_ext.FPTruncOp, (value,), b.like(value.type, f32))
    back = b.emit(llvm_ext.FPExtOp, (nearest,), value.type)
    bits = b.bits_of(nearest)
    word = bits.type
    went_up = b.fcmp("ogt", magnitude(b, back), magnitude(b, value))
    below = b.emit(llvm.SubOp, (bits, b.integer(word, 1)), word)
    towards_zero = b.select(went_up, below, bits)
    sticky = b.emit(llvm.OrOp, (towards_zero, b.integer(word, 1)), word)
    inexact = b.fcmp("one", back, value)
    return b.bitcast(b.select(inexact, sticky, bits), nearest.type)


def magnitude(b: FunctionLowering, value: SSAValue) -> SSAValue:
    """``|value|``."""
    return b.call_intrinsic("llvm.fabs", (value,), value.type)


# Integer to float


def integer_to_float(b: FunctionLowering, value: SSAValue, t: Attribute, *, signed: bool) -> SSAValue:
    """Rounded once, to nearest even."""
    width = bit_width(element_of(value.type))
    element = element_of(t)
    if isinstance(element, Float32Type | Float64Type):
        return _convert(b, value, t, signed)
    if isinstance(element, Float16Type) or width <= 16:
        # f32 holds every integer up to 2^24 exactly, and f16 overflows at 65520: only one step rounds.
        return truncate_float(b, _convert(b, value, b.like(t, f32), signed), t)
    if width <= 32:
        return truncate_float(b, _convert(b, value, b.like(t, f64), signed), t)
    return _wide_integer_to_bf16(b, value, t, signed)


def _convert(b: FunctionLowering, value: SSAValue, t: Attribute, signed: bool) -> SSAValue:
    return b.emit(llvm.SIToFPOp if signed else llvm_ext.UIToFPOp, (value,), t)


def _wide_integer_to_bf16(b: FunctionLowering, value: SSAValue, t: Attribute, signed: bool) -> SSAValue:
    """i64 to bf16: the magnitude without its 11 low bits, the last bit set if any of them was, fits an f64.

    Below 2^32 all bits count and f64 holds them; above, 21 bits and more remain and bf16 needs 10.
    """
    word, double = value.type, b.like(t, f64)
    size = b.call_intrinsic("llvm.abs", (value, b.integer(i1, 0)), word) if signed else value
    high = b.emit(llvm.LShrOp, (size, b.integer(word, 11)), word)
    low = b.emit(llvm.AndOp, (size, b.integer(word, 0x7FF)), word)
    lost = b.icmp("ne", low, b.integer(word, 0))
    high = b.emit(llvm.OrOp, (high, b.emit(llvm.ZExtOp, (lost,), word)), word)
    big = b.emit(
        llvm.FMulOp,
        (b.emit(llvm_ext.UIToFPOp, (high,), double), b.float(double, 2048.0)),
        double,
        flag_properties(NO_FLAGS),
    )
    is_big = b.icmp("uge", size, b.integer(word, 1 << 32))
    exact = b.select(is_big, big, b.emit(llvm_ext.UIToFPOp, (size,), double))
    if signed:
        negative = b.icmp("slt", value, b.integer(word, 0))
        minus = b.emit(llvm.FNegOp, (exact,), double, flag_properties(NO_FLAGS))
        exact = b.select(negative, minus, exact)
    return truncate_float(b, exact, t)


# Float to integer


def float_to_integer(b: FunctionLowering, value: SSAValue, t: Attribute, *, signed: bool) -> SSAValue:
    """Truncated towards zero and saturated; NaN gives 0.

    The conversion of a lane out of range is poison in LLVM, and the selects behind it never choose such a lane.
    """
    if isinstance(element_of(value.type), _16_BITS):
        value = extend_float(b, value, b.like(value.type, f32))
    width = bit_width(element_of(t))
    if width < 32:
        # 32-bit conversions are the narrowest instructions; the bounds are exact in f32.
        return _clamped_to_integer(b, value, t, width, signed)
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1)) if signed else (0, 2**width)
    float_type = value.type
    converted = b.emit(llvm_ext.FPToSIOp if signed else llvm_ext.FPToUIOp, (value,), t)
    largest = b.integer(t, high - 1)
    result = b.select(b.fcmp("oge", value, b.float(float_type, float(high))), largest, converted)
    if signed:
        # "not >" takes NaN along; the last select puts it right. -2^n itself converts to the same value.
        too_low = b.fcmp("ole", value, b.float(float_type, float(low)))
        result = b.select(too_low, b.integer(t, low), result)
        return b.select(b.fcmp("uno", value, value), b.integer(t, 0), result)
    positive = b.fcmp("ogt", value, b.float(float_type, 0.0))
    return b.select(positive, result, b.integer(t, 0))


def _clamped_to_integer(b: FunctionLowering, value: SSAValue, t: Attribute, width: int, signed: bool) -> SSAValue:
    """i1 to i16: clamps the float first; comparisons with NaN are false, which takes it to the lower bound."""
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    float_type, word = value.type, b.like(t, i32)
    lower, upper = b.float(float_type, float(low)), b.float(float_type, float(high))
    clamped = b.select(b.fcmp("ogt", value, lower), value, lower)
    clamped = b.select(b.fcmp("olt", clamped, upper), clamped, upper)
    converted = b.emit(llvm_ext.FPToSIOp, (clamped,), word)
    if signed:
        converted = b.select(b.fcmp("uno", value, value), b.integer(word, 0), converted)
    return b.emit(llvm.TruncOp, (converted,), t)


# Dispatch


def _resize(b: FunctionLowering, value: SSAValue, t: Attribute, *, signed: bool) -> SSAValue:
    """An integer to another width: sign- or zero-extended, or its low bits."""
    old, new = bit_width(element_of(value.type)), bit_width(element_of(t))
    if old == new:
        return value
    if new < old:
        return b.emit(llvm.TruncOp, (value,), t)
    return b.emit(llvm.SExtOp if signed else llvm.ZExtOp, (value,), t)


def cast(b: FunctionLowering, kind: CastKind, value: SSAValue, t: Attribute, flags: llvm.FastMathAttr) -> SSAValue:
    """One cast of ``vector_ext.cast``'s kinds; ``value`` and ``t`` are of the ``llvm`` dialect's types."""
    match kind:
        case CastKind.SITOFP | CastKind.UITOFP:
            return integer_to_float(b, value, t, signed=kind == CastKind.SITOFP)
        case CastKind.FPTOSI_SAT | CastKind.FPTOUI_SAT:
            return float_to_integer(b, value, t, signed=kind == CastKind.FPTOSI_SAT)
        case CastKind.EXTF:
            return extend_float(b, value, t, flags)
        case CastKind.TRUNCF:
            return truncate_float(b, value, t, flags)
        case _:
            return _resize(b, value, t, signed=kind in (CastKind.EXTSI, CastKind.INDEX_CAST))


def _arith_cast(kind: CastKind) -> LoweringFunction:
    def lower(b: FunctionLowering, op: Operation) -> None:
        result = op.results[0]
        b.set(result, cast(b, kind, b.get(op.operands[0]), b.type(result.type), fastmath(op)))

    return lower


def _cast(b: FunctionLowering, op: vector_ext.CastOp) -> None:
    b.set(op.result, cast(b, op.kind.data, b.get(op.operand), b.type(op.result.type), fastmath(op)))


LOWERINGS: dict[type[Operation], LoweringFunction] = {
    arith.ExtFOp: _arith_cast(CastKind.EXTF),
    arith.ExtSIOp: _arith_cast(CastKind.EXTSI),
    arith.ExtUIOp: _arith_cast(CastKind.EXTUI),
    arith.FPToSIOp: _arith_cast(CastKind.FPTOSI_SAT),
    arith.FPToUIOp: _arith_cast(CastKind.FPTOUI_SAT),
    arith.IndexCastOp: _arith_cast(CastKind.INDEX_CAST),
    arith.SIToFPOp: _arith_cast(CastKind.SITOFP),
    arith.TruncFOp: _arith_cast(CastKind.TRUNCF),
    arith.TruncIOp: _arith_cast(CastKind.TRUNCI),
    arith.UIToFPOp: _arith_cast(CastKind.UITOFP),
    vector_ext.CastOp: _cast,
}
