"""log, log2 and log1p.

log: x = 2^k m with m in [2/3, 4/3), taken from the bits of x; f = m - 1 is exact. Then log x = k ln 2 + log(1 + f), and
a minimax polynomial gives log(1 + f) = f - f^2/2 + f^3 P(f). A subnormal x is multiplied by a power of two beforehand.

log2 sums k + f log2(e) in two parts. log1p takes k from 1 + x rounded, and f from x itself, so that nothing is lost.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F32, INFINITY, NAN
from .polynomial import hexadecimal, horner

_TWO_THIRDS_F32 = 0x3F2AAAAB  # the bits of 2/3
_EXPONENT_MASK_F32 = -(1 << F32.fraction_bits)  # sign and exponent
_LN2_F32 = float.fromhex("0x1.62e430p-1")
# |f| <= 1/3; minimax in the relative error of log(1 + f): 2^-27.5.
_LOG_F32 = hexadecimal(
    "-0x1p-1 0x1.55550ap-2 -0x1.ffff1ep-3 0x1.99d026p-3 -0x1.5597a0p-3"
    " 0x1.1ed348p-3 -0x1.f29f3cp-4 0x1.1e7704p-3 -0x1.0c07dcp-3"
)

_LOG2_E_F32 = hexadecimal("0x1.715476p0 0x1.4ae0c0p-26")
# |f| <= 1/3; log2(1 + f) = f log2(e) + f^2 P(f), minimax in the relative error: 2^-26.9.
_LOG2_F32 = hexadecimal(
    "-0x1.715476p-1 0x1.ec700ep-2 -0x1.715488p-2 0x1.27a392p-2 -0x1.ec8d54p-3 0x1.9d20e2p-3"
    " -0x1.6c5414p-3 0x1.a0b322p-3 -0x1.6932a0p-3"
)

_THREE_QUARTERS_F32 = 0x3F400000
_FOUR_F32 = 0x40800000
# -1/4 <= f <= 1/2; minimax in the relative error of log(1 + f): 2^-27.6.
_LOG1P_F32 = hexadecimal(
    "-0x1p-1 0x1.5555aep-2 -0x1.000056p-2 0x1.996946p-3 -0x1.54ed46p-3"
    " 0x1.288468p-3 -0x1.0da5acp-3 0x1.ad0c38p-4 -0x1.71e882p-5"
)


def log_f32(e: Emitter[V], x: V) -> V:
    """The natural logarithm."""
    k, m = _decompose_f32(e, x)
    f = e.sub(m, e.constant(1.0, x))
    log_m = e.fma(horner(e, f, _LOG_F32), e.mul(f, f), f)
    value = e.fma(k, e.constant(_LN2_F32 * 2.0**-F32.fraction_bits, x), log_m)
    return _logarithm_specials(e, x, value)


def log2_f32(e: Emitter[V], x: V) -> V:
    """The logarithm to base 2; exact for powers of two."""
    scaled_k, m = _decompose_f32(e, x)
    k = e.mul(scaled_k, e.constant(2.0**-F32.fraction_bits, x))
    f = e.sub(m, e.constant(1.0, x))
    high, low = (e.constant(part, x) for part in _LOG2_E_F32)
    # k + f log2(e) as a sum of two: near x = 1/2 and 2 it cancels, and one rounding would be too much.
    head = e.fma(f, high, k)
    tail = e.fma(f, low, e.fma(f, high, e.sub(k, head)))
    tail = e.fma(e.mul(f, f), horner(e, f, _LOG2_F32), tail)
    return _logarithm_specials(e, x, e.add(head, tail))


def log1p_f32(e: Emitter[V], x: V) -> V:
    """log(1 + x)."""
    one = e.constant(1.0, x)
    u = e.add(x, one)
    bits = e.bitcast(u, "i32")
    above = e.isub(bits, e.constant(_THREE_QUARTERS_F32, bits))
    exponent = e.iand(above, e.constant(_EXPONENT_MASK_F32, bits))
    # f = 2^-k (1 + x) - 1, from x itself; 2^(2 - k) is normal where 2^-k may not be.
    reciprocal = e.bitcast(e.isub(e.constant(_FOUR_F32, bits), exponent), "f32")
    scaled_x = e.bitcast(e.isub(e.bitcast(x, "i32"), exponent), "f32")
    f = e.add(scaled_x, e.fma(e.constant(0.25, x), reciprocal, e.constant(-1.0, x)))
    k = e.cast(exponent, "f32")
    log_m = e.fma(horner(e, f, _LOG1P_F32), e.mul(f, f), f)
    value = e.fma(k, e.constant(_LN2_F32 * 2.0**-F32.fraction_bits, x), log_m)
    return e.copysign(_logarithm_specials(e, u, value), x)


def _decompose_f32(e: Emitter[V], x: V) -> tuple[V, V]:
    """2^23 k and m in [2/3, 4/3) with x = 2^k m, for finite x > 0; no NaN or infinity for other x."""
    raise_by = F32.fraction_bits + 1
    subnormal = e.compare("olt", x, e.constant(F32.smallest_normal, x))
    bits = e.bitcast(e.select(subnormal, e.mul(x, e.constant(2.0**raise_by, x)), x), "i32")
    above = e.isub(bits, e.constant(_TWO_THIRDS_F32, bits))
    exponent = e.iand(above, e.constant(_EXPONENT_MASK_F32, bits))
    m = e.bitcast(e.isub(bits, exponent), "f32")
    correction = e.constant(raise_by << F32.fraction_bits, bits)
    exponent = e.isub(exponent, e.select(subnormal, correction, e.constant(0, bits)))
    return e.cast(exponent, "f32"), m


def _logarithm_specials(e: Emitter[V], x: V, value: V) -> V:
    """log x from its ``value`` for finite x > 0: -inf at zero, NaN below, +inf and NaN unchanged."""
    zero = e.constant(0.0, x)
    value = e.select(e.compare("olt", x, e.constant(INFINITY, x)), value, x)
    value = e.select(e.compare("olt", x, zero), e.constant(NAN, x), value)
    return e.select(e.compare("oeq", x, zero), e.constant(-INFINITY, x), value)
