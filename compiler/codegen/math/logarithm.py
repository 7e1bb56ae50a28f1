"""log, log2 and log1p.

log: x = 2^k m with m in [2/3, 4/3), taken from the bits of x; f = m - 1 is exact. Then log x = k ln 2 + log(1 + f), and
a minimax polynomial gives log(1 + f) = f - f^2/2 + f^3 P(f). A subnormal x is multiplied by a power of two beforehand.

The f64 forms and log2 sum k ln 2 + f (or k + f log2(e)) in two parts. log1p takes k from 1 + x rounded, and f from x
itself, so that nothing is lost.
"""

from __future__ import annotations

from .emitter import Emitter, V
from .formats import F32, F64, INFINITY, NAN, decompose_f64, unbiased_exponent_f64
from .polynomial import hexadecimal, horner
from .sums_of_two import fast_two_sum, product, two_sum

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

# ln 2 in two parts, the first so short that its product with k is exact.
_LN2_F64 = hexadecimal("0x1.62e42fefa4p-1 -0x1.8432a1b0e2634p-43")
# sqrt(1/2) - 1 <= f <= sqrt(2) - 1; log(1 + f) = f + f^2 P(f), minimax in the relative error: 2^-56.5.
_LOG_F64 = hexadecimal(
    "-0x1p-1 0x1.5555555555533p-2 -0x1.fffffffffef11p-3 0x1.999999999f7cdp-3 -0x1.555555566b60ap-3"
    " 0x1.24924922a07cbp-3 -0x1.ffffff2bd88a8p-4 0x1.c71c71e1957d0p-4 -0x1.9999c2713f787p-4 0x1.745d3eeeb1c89p-4"
    " -0x1.5550edbdbc82cp-4 0x1.3b0b8c366a107p-4 -0x1.24d75bf5e2d63p-4 0x1.11cce37560affp-4 -0x1.fba09c63e843ep-5"
    " 0x1.d05b3a779c08cp-5 -0x1.d126afc644c86p-5 0x1.0a6334369d8e9p-4 -0x1.e9f40818ed432p-5 0x1.ac521a35c4d5cp-6"
)
_LOG2_E_F64 = hexadecimal("0x1.71547652b82fep+0 0x1.777d0ffda0d24p-56")
# As above; log2(1 + f) = f log2(e) + f^2 P(f): 2^-56.4.
_LOG2_F64 = hexadecimal(
    "-0x1.71547652b8303p-1 0x1.ec709dc3a03afp-2 -0x1.71547652b69b1p-2 0x1.2776c50eff137p-2 -0x1.ec709dc5efc4bp-3"
    " 0x1.a61762a4b80c0p-3 -0x1.7154758fb826fp-3 0x1.484b13cf375e8p-3 -0x1.2776e7a0722fap-3 0x1.0c9aa8506b51fp-3"
    " -0x1.ec698c626bf67p-4 0x1.c6821aef0b67ap-4 -0x1.a682127eaf86ap-4 0x1.8b16e7f9936c4p-4 -0x1.6e0e1b4c2f686p-4"
    " 0x1.4e6b5f598ed5dp-4 -0x1.4f7c95598b5c8p-4 0x1.81c55d30038f5p-4 -0x1.62fa73dfa4d1ap-4 0x1.3591de95c4bb2p-5"
)
_THREE_QUARTERS_F64 = 0x3FE8000000000000
_FOUR_F64 = 0x4010000000000000
# -1/4 <= f <= 1/2; minimax in the relative error of log(1 + f): 2^-56.5.
_LOG1P_F64 = hexadecimal(
    "-0x1p-1 0x1.55555555555a0p-2 -0x1.000000000079bp-2 0x1.999999998c88dp-3 -0x1.5555555454adbp-3"
    " 0x1.249249295ce9ep-3 -0x1.000000652e0fcp-3 0x1.c71c70ef9fb7ap-4 -0x1.9999727c20675p-4 0x1.745ce94806f27p-4"
    " -0x1.55593b01a9fb4p-4 0x1.3b1f3e1bbbf34p-4 -0x1.2465d9b59f48cp-4 0x1.101ac80e343b6p-4 -0x1.ffeda63ee9402p-5"
    " 0x1.f24db9b75d7bbp-5 -0x1.e92ee16914480p-5 0x1.9ff3cc003210fp-5 -0x1.e2c1afa60ca69p-6 0x1.0a09554e6cbe2p-7"
)


def log_f32(e: Emitter[V], x: V) -> V:
    """The natural logarithm."""
    k, m = _decompose_f32(e, x)
    f = e.sub(m, e.constant(1.0, x))
    log_m = e.fma(horner(e, f, _LOG_F32), e.mul(f, f), f)
    value = e.fma(k, e.constant(_LN2_F32 * 2.0**-F32.fraction_bits, x), log_m)
    return _logarithm_specials(e, x, value)


def log_f64(e: Emitter[V], x: V) -> V:
    """The natural logarithm."""
    k, m = _decompose_f64(e, x)
    f = e.sub(m, e.constant(1.0, x))
    return _logarithm_specials(e, x, _log_sum_f64(e, k, f, None, _LOG_F64))


def _log_sum_f64(e: Emitter[V], k: V, f: V, f_low: V | None, polynomial: tuple[float, ...]) -> V:
    """k ln 2 + log(1 + f + f_low); k ln 2 + f is a sum of two."""
    high, low = (e.constant(part, f) for part in _LN2_F64)
    head = e.fma(k, high, f)
    tail = e.sub(f, e.fma(k, e.neg(high), head))
    if f_low is not None:
        tail = e.add(tail, e.fma(e.neg(f), f_low, f_low))  # f_low / (1 + f)
    tail = e.fma(e.mul(f, f), horner(e, f, polynomial), e.fma(k, low, tail))
    return e.add(head, tail)


def log2_f32(e: Emitter[V], x: V) -> V:
    """The logarithm to base 2; exact for powers of two."""
    scaled_k, m = _decompose_f32(e, x)
    k = e.mul(scaled_k, e.constant(2.0**-F32.fraction_bits, x))
    return _logarithm_specials(e, x, _log2_sum(e, k, m, _LOG2_E_F32, _LOG2_F32))


def log2_f64(e: Emitter[V], x: V) -> V:
    """The logarithm to base 2; exact for powers of two."""
    k, m = _decompose_f64(e, x)
    return _logarithm_specials(e, x, _log2_sum(e, k, m, _LOG2_E_F64, _LOG2_F64))


def _log2_sum(e: Emitter[V], k: V, m: V, log2_e: tuple[float, ...], polynomial: tuple[float, ...]) -> V:
    """k + log2 m. k + f log2(e) is a sum of two: near x = 1/2 and 2 it cancels, and one rounding would be too much."""
    f = e.sub(m, e.constant(1.0, m))
    high, low = (e.constant(part, m) for part in log2_e)
    linear, linear_low = product(e, f, high)
    head, tail = fast_two_sum(e, k, linear)
    tail = e.fma(f, low, e.add(tail, linear_low))
    # The square term is rounded once, and what the square lost is made up for.
    square, square_low = product(e, f, f)
    first = e.constant(polynomial[0], m)
    tail = e.fma(square_low, first, tail)
    tail = e.fma(e.mul(f, square), horner(e, f, polynomial[1:]), tail)
    return e.add(head, e.fma(square, first, tail))


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


def log1p_f64(e: Emitter[V], x: V) -> V:
    """log(1 + x)."""
    one = e.constant(1.0, x)
    u = e.add(x, one)
    bits = e.bitcast(u, "i64")
    above = e.isub(bits, e.constant(_THREE_QUARTERS_F64, bits))
    exponent = e.iand(above, e.constant(-(1 << F64.fraction_bits), bits))
    reciprocal = e.bitcast(e.isub(e.constant(_FOUR_F64, bits), exponent), "f64")
    scaled_x = e.bitcast(e.isub(e.bitcast(x, "i64"), exponent), "f64")
    scaled_one = e.fma(e.constant(0.25, x), reciprocal, e.constant(-1.0, x))
    f, f_low = two_sum(e, scaled_x, scaled_one)
    k = unbiased_exponent_f64(e, e.iadd(above, e.constant(F64.bias << F64.fraction_bits, bits)), x)
    value = _log_sum_f64(e, k, f, f_low, _LOG1P_F64)
    return e.copysign(_logarithm_specials(e, u, value), x)


def _decompose_f64(e: Emitter[V], x: V) -> tuple[V, V]:
    """k and m in [sqrt(1/2), sqrt(2)) with x = 2^k m, for finite x > 0; some finite numbers for other x."""
    raise_by = F64.fraction_bits + 2
    subnormal = e.compare("olt", x, e.constant(F64.smallest_normal, x))
    k, m = decompose_f64(e, e.select(subnormal, e.mul(x, e.constant(2.0**raise_by, x)), x))
    return e.sub(k, e.select(subnormal, e.constant(raise_by, x), e.constant(0.0, x))), m


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
