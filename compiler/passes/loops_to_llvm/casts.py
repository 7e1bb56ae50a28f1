"""Casts between number types, each with one rounding and a result for every input.

LLVM's own are unusable in part: ``fptrunc`` to bf16 flushes subnormals or calls a library function, from f64 to f16
it calls one; ``fptosi.sat`` on vectors falls apart into scalars (118 instructions for 16 lanes); an integer to bf16
or a wide integer to f16 rounds twice. The sequences here are built of exact steps, of which only the last one rounds.

bf16 is i16 from here on: LLVM turns even a ``select`` of bf16 into conversions that flush subnormals.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, bf16, f32, f64, i1, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import llvm_ext, vector_ext
from ...dialects.vector_ext import CastKind, bit_width, element_of
from .lowering import NO_FLAGS, FunctionLowering, LoweringFunction, fastmath, flag_properties

_16_BITS = (BFloat16Type, Float16Type)


# Float to float


def extend_float(
    b: FunctionLowering, value: SSAValue, source: Attribute, t: Attribute, flags: llvm.FastMathAttr = NO_FLAGS
) -> SSAValue:
    """From element type ``source`` to the wider type ``t``, exactly. bf16 is the upper half of an f32."""
    if isinstance(source, BFloat16Type):
        word = b.like(t, i32)
        bits = b.emit(llvm.ZExtOp, (value,), word)
        bits = b.emit(llvm.ShlOp, (bits, b.integer(word, 16)), word)
        value = b.bitcast(bits, b.like(t, f32))
    elif isinstance(source, Float16Type):
        value = b.emit(llvm_ext.FPExtOp, (value,), b.like(t, f32), flag_properties(flags))
    if element_of(value.type) == element_of(t):
        return value
    return b.emit(llvm_ext.FPExtOp, (value,), t, flag_properties(flags))


def truncate_float(
    b: FunctionLowering, value: SSAValue, target: Attribute, flags: llvm.FastMathAttr = NO_FLAGS
) -> SSAValue:
    """To the narrower element type ``target``, rounded once to nearest even; subnormals and NaN kept."""
    if isinstance(target, _16_BITS) and isinstance(element_of(value.type), Float64Type):
        value = _round_to_odd(b, value)
    if isinstance(target, BFloat16Type):
        return _to_bf16(b, value)
    return b.emit(llvm_ext.FPTruncOp, (value,), b.like(value.type, target), flag_properties(flags))


def _to_bf16(b: FunctionLowering, value: SSAValue) -> SSAValue:
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
    chosen = b.select(b.fcmp("uno", value, value), quiet, rounded)
    return b.emit(llvm.TruncOp, (chosen,), b.like(word, i16))


def _round_to_odd(b: FunctionLowering, value: SSAValue) -> SSAValue:
    """f64 to f32, rounded to odd: towards zero, with the last bit set if anything was lost.

    A second rounding to 8 or 11 bits then gives what one rounding would (S. Boldo, G. Melquiond, "Emulation of FMA
    and correctly rounded sums", 2008: the middle format needs two bits more).
    """
    nearest = b.emit(llvm_ext.FPTruncOp, (value,), b.like(value.type, f32))
    back = b.emit(llvm_ext.FPExtOp, (nearest,), value.type)
    bits = b.bits_of(nearest)
    word = bits.type
    went_up = b.fcmp("ogt", _magnitude(b, back), _magnitude(b, value))
    below = b.emit(llvm.SubOp, (bits, b.integer(word, 1)), word)
    towards_zero = b.select(went_up, below, bits)
    sticky = b.emit(llvm.OrOp, (towards_zero, b.integer(word, 1)), word)
    inexact = b.fcmp("one", back, value)
    return b.bitcast(b.select(inexact, sticky, bits), nearest.type)


def _magnitude(b: FunctionLowering, value: SSAValue) -> SSAValue:
    return b.call_intrinsic("llvm.fabs", (value,), value.type)


# Integer to float


def integer_to_float(b: FunctionLowering, value: SSAValue, target: Attribute, *, signed: bool) -> SSAValue:
    """To the float element type ``target``, rounded once, to nearest even."""
    width, t = bit_width(element_of(value.type)), value.type
    if isinstance(target, Float32Type | Float64Type):
        return _convert(b, value, b.like(t, target), signed)
    if isinstance(target, Float16Type) or width <= 16:
        # f32 holds every integer up to 2^24 exactly, and f16 overflows at 65520: only one step rounds.
        return truncate_float(b, _convert(b, value, b.like(t, f32), signed), target)
    if width <= 32:
        return truncate_float(b, _convert(b, value, b.like(t, f64), signed), target)
    return _wide_integer_to_bf16(b, value, signed)


def _convert(b: FunctionLowering, value: SSAValue, t: Attribute, signed: bool) -> SSAValue:
    return b.emit(llvm.SIToFPOp if signed else llvm_ext.UIToFPOp, (value,), t)


def _wide_integer_to_bf16(b: FunctionLowering, value: SSAValue, signed: bool) -> SSAValue:
    """i64 to bf16: the magnitude without its 11 low bits, the last bit set if any of them was, fits an f64.

    Below 2^32 all bits count and f64 holds them; above, 21 bits and more remain and bf16 needs 10.
    """
    word, double = value.type, b.like(value.type, f64)
    plain = flag_properties(NO_FLAGS)
    size = b.call_intrinsic("llvm.abs", (value, b.integer(i1, 0)), word) if signed else value
    high = b.emit(llvm.LShrOp, (size, b.integer(word, 11)), word)
    low = b.emit(llvm.AndOp, (size, b.integer(word, 0x7FF)), word)
    lost = b.emit(llvm.ZExtOp, (b.icmp("ne", low, b.integer(word, 0)),), word)
    high = b.emit(llvm.OrOp, (high, lost), word)
    big = b.emit(llvm.FMulOp, (_convert(b, high, double, False), b.float(double, 2048.0)), double, plain)
    is_big = b.icmp("uge", size, b.integer(word, 1 << 32))
    exact = b.select(is_big, big, _convert(b, size, double, False))
    if signed:
        negative = b.icmp("slt", value, b.integer(word, 0))
        exact = b.select(negative, b.emit(llvm.FNegOp, (exact,), double, plain), exact)
    return truncate_float(b, exact, bf16)


# Float to integer


def float_to_integer(
    b: FunctionLowering, value: SSAValue, source: Attribute, t: Attribute, *, signed: bool
) -> SSAValue:
    """From float element type ``source``: truncated towards zero and saturated; NaN gives 0.

    The conversion of a lane out of range is poison in LLVM, and the selects behind it never choose such a lane.
    """
    if isinstance(source, _16_BITS):
        value = extend_float(b, value, source, b.like(value.type, f32))
    width = bit_width(element_of(t))
    if width < 32:
        # 32-bit conversions are the narrowest instructions; the bounds are exact in f32.
        return _clamped_to_integer(b, value, t, width, signed)
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1)) if signed else (0, 2**width)
    float_type, zero = value.type, b.integer(t, 0)
    converted = b.emit(llvm_ext.FPToSIOp if signed else llvm_ext.FPToUIOp, (value,), t)
    too_high = b.fcmp("oge", value, b.float(float_type, float(high)))
    result = b.select(too_high, b.integer(t, high - 1), converted)
    if not signed:
        return b.select(b.fcmp("ogt", value, b.float(float_type, 0.0)), result, zero)
    too_low = b.fcmp("ole", value, b.float(float_type, float(low)))
    result = b.select(too_low, b.integer(t, low), result)
    return b.select(b.fcmp("uno", value, value), zero, result)


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


def cast(b: FunctionLowering, kind: CastKind, operand: SSAValue, result: SSAValue, flags: llvm.FastMathAttr) -> None:
    """One cast of ``vector_ext.cast``'s kinds, between values of the loops stage."""
    value, source, target = b.get(operand), element_of(operand.type), element_of(result.type)
    match kind:
        case CastKind.SITOFP | CastKind.UITOFP:
            new = integer_to_float(b, value, target, signed=kind == CastKind.SITOFP)
        case CastKind.FPTOSI_SAT | CastKind.FPTOUI_SAT:
            t = b.type(result.type)
            new = float_to_integer(b, value, source, t, signed=kind == CastKind.FPTOSI_SAT)
        case CastKind.EXTF:
            new = extend_float(b, value, source, b.type(result.type), flags)
        case CastKind.TRUNCF:
            new = truncate_float(b, value, target, flags)
        case _:
            t = b.type(result.type)
            new = _resize(b, value, t, signed=kind in (CastKind.EXTSI, CastKind.INDEX_CAST))
    b.set(result, new)


def _arith_cast(kind: CastKind) -> LoweringFunction:
    def lower(b: FunctionLowering, op: Operation) -> None:
        cast(b, kind, op.operands[0], op.results[0], fastmath(op))

    return lower


def _cast(b: FunctionLowering, op: vector_ext.CastOp) -> None:
    cast(b, op.kind.data, op.operand, op.result, fastmath(op))


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
