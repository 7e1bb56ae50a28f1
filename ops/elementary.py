"""abs, sqrt, roundings to whole numbers, exp, log, sin and the like, pow.

f16 and bf16 are computed in f32 (``acos`` and ``atanh`` of f32 in f64) and rounded once. Special values are those of
IEEE 754 and of C's Annex F. The expansions behind them, and their bounds, are in `halfulp.compiler.codegen.math`.
"""

from __future__ import annotations

import math
from builtins import pow as builtin_pow
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import f64, i64

from halfulp.compiler import DType, TensorValue
from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.tile_builder import TileBuilder, Value

from .contract import (
    CORRECTLY_ROUNDED,
    EXACT,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Array,
    Contract,
    promise,
)
from .elementwise import Flags, Recipe, apply_map, declare_map, is_unsigned, through_f32
from .expansion import Steps, hex_floats
from .promotion import TensorValueLike, is_tensor

_ASIN = hex_floats(
    "0x1.5555555555556p-3 0x1.3333333332ec4p-4 0x1.6db6db6e3292ep-5 0x1.f1c71c1d4aa0dp-6 0x1.6e8bb1d89492bp-6 "
    "0x1.1c4d343fa57f6p-6 0x1.c9cf3759fd8ffp-7 0x1.78246f32d075cp-7 0x1.524ea8b3aad31p-7 0x1.653a8f8cfd43cp-8 "
    "0x1.1d661531b222ep-6 -0x1.e7a24f548c99fp-7 0x1.d78189767524ep-6"
)
"""(asin(sqrt(z)) / sqrt(z) - 1) / z on [0, 1/4]: the interpolation in 13 Chebyshev nodes, within 2**-57 of asin."""
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")
"""pi/2 less its nearest f64."""


def supported(*functions: str) -> tuple[DType, ...]:
    """The floats for which all of these functions have an expansion."""
    wide = all("f64" in EXPANSIONS[name] for name in functions)
    return FLOATS if wide else tuple(dtype for dtype in FLOATS if dtype is not DType.float64)


def _unary(kind: str) -> Recipe:
    return through_f32(lambda k, call, x: k.unary(kind, x))


def _abs_recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
    if x.is_float:
        return k.unary("absf", x)
    return x if is_unsigned(call) else k.select(x < 0, k.negate(x), x)


def _through_f64(recipe: Recipe) -> Recipe:
    """A recipe for f64 made one for all floats, rounded once at the end."""

    def widened(k: TileBuilder, call: OpCall, x: Value) -> Value:
        return k.cast(recipe(k, call, k.cast(x, f64)), x.element_type)

    return widened


@_through_f64
def _acos_recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
    """|x| <= 1/2: pi/2 - asin x. Above: 2 asin sqrt((1 - x) / 2); below: pi less that of -x. NaN beyond ±1."""
    steps, size = Steps(k, "acos"), k.unary("absf", x)
    central = size <= 0.5
    z = k.select(central, x * x, (1.0 - size) * 0.5)
    root = k.select(central, x, k.unary("sqrt", z))
    tail = k.binary("mul", root, z * steps.polynomial(z, _ASIN))  # asin(root) = root + tail
    inner = math.pi / 2 - (root - (_HALF_PI_LOW - tail))
    outer = 2.0 * (root + tail)
    mirrored = math.pi - (outer - 2 * _HALF_PI_LOW)
    return k.select(central, inner, k.select(x < 0.0, mirrored, outer))


@_through_f64
def _atanh_recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
    """(1 + x) / (1 - x) = 2^e m with m between sqrt(1/2) and sqrt(2), so atanh x = e/2 log 2 + atanh s.

    ``s = (m - 1) / (m + 1) = (x (1 + 2^e) + (1 - 2^e)) / ((1 + 2^e) - x (2^e - 1))`` has no cancellation beyond one
    fma, and is x itself while e is 0; |s| < 0.172, where twelve terms of the series do.
    """
    steps, size = Steps(k, "atanh"), k.unary("absf", x)
    ratio = (1.0 + size) / (1.0 - size)
    exponent = k.shift("right_arithmetic", steps.bitcast(ratio, i64) - _SQRT_HALF_BITS, 52)
    power = steps.bitcast(k.shift("left", exponent + 1023, 52), f64)
    s = steps.fma(size, 1.0 + power, 1.0 - power) / steps.fma(size, 1.0 - power, 1.0 + power)
    z = s * s
    series = steps.fma(s, z * steps.polynomial(z, [1 / (2 * n + 3) for n in range(12)]), s)
    result = steps.fma(k.cast(exponent, f64), math.log(2) / 2, series)
    outside = k.select(size == 1.0, math.inf, k.constant(math.nan, x.type))
    return steps.copysign(k.select(size < 1.0, result, outside), x)


def _pow_recipe(k: TileBuilder, call: OpCall, x: Value, y: Value) -> Value:
    if not x.is_float:
        return _integer_pow(k, call, x, y)
    op = math_dialect.PowFOp(x.ssa, y.ssa, k.fastmath)
    k.insert(op)
    return Value(k, op.result)


def _integer_pow(k: TileBuilder, call: OpCall, x: Value, y: Value) -> Value:
    """By squaring, wrapping. A negative exponent gives what truncating the exact value gives: 0, but for ±1."""
    result, square = k.constant(1, x.type), x
    bits = call.operands[0].dtype.bits
    for bit in range(bits):
        taken = k.binary("and", y, 1 << bit) != 0
        result = k.select(taken, k.binary("mul", result, square), result)
        if bit + 1 < bits:
            square = k.binary("mul", square, square)
    if is_unsigned(call):
        return result
    odd = k.binary("and", y, 1) != 0
    ones = k.select(x == 1, 1, k.select(x == -1, k.select(odd, k.constant(-1, x.type), 1), k.constant(0, x.type)))
    return k.select(y < 0, ones, result)


ABS = declare_map("abs", ("x",), NUMBERS, through_f32(_abs_recipe))
SQRT = declare_map("sqrt", ("x",), FLOATS, _unary("sqrt"))
FLOOR = declare_map("floor", ("x",), FLOATS, _unary("floor"))
CEIL = declare_map("ceil", ("x",), FLOATS, _unary("ceil"))
TRUNC = declare_map("trunc", ("x",), FLOATS, _unary("trunc"))
ROUND = declare_map("round", ("x",), FLOATS, _unary("roundeven"))
RSQRT = declare_map("rsqrt", ("x",), supported("rsqrt"), _unary("rsqrt"))
EXP = declare_map("exp", ("x",), supported("exp"), _unary("exp"))
LOG = declare_map("log", ("x",), supported("log"), _unary("log"))
LOG1P = declare_map("log1p", ("x",), supported("log1p"), _unary("log1p"))
SIN = declare_map("sin", ("x",), supported("sin"), _unary("sin"))
COS = declare_map("cos", ("x",), supported("cos"), _unary("cos"))
TANH = declare_map("tanh", ("x",), supported("tanh"), _unary("tanh"))
ERF = declare_map("erf", ("x",), supported("erf"), _unary("erf"))
ACOS = declare_map("acos", ("x",), FLOATS, _acos_recipe)
ATANH = declare_map("atanh", ("x",), FLOATS, _atanh_recipe)
POW = declare_map("pow", ("lhs", "rhs"), supported("pow") + INTEGERS, through_f32(_pow_recipe))


def abs(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``|x|``, exact; the smallest signed integer wraps to itself. Raises `GraphTypeError` for bool."""
    return apply_map(ABS, [x], fastmath=fastmath)


def sqrt(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The square root of floats, correctly rounded; NaN below zero. Raises `GraphTypeError` for other types."""
    return apply_map(SQRT, [x], fastmath=fastmath)


def floor(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The next whole number downwards. Raises `GraphTypeError` for anything but floats."""
    return apply_map(FLOOR, [x], fastmath=fastmath)


def ceil(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The next whole number upwards. Raises `GraphTypeError` for anything but floats."""
    return apply_map(CEIL, [x], fastmath=fastmath)


def trunc(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The next whole number towards zero. Raises `GraphTypeError` for anything but floats."""
    return apply_map(TRUNC, [x], fastmath=fastmath)


def round(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The nearest whole number, halves to even. Raises `GraphTypeError` for anything but floats."""
    return apply_map(ROUND, [x], fastmath=fastmath)


def rsqrt(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``1 / sqrt(x)``; ±inf at ±0, NaN below zero. Raises `GraphTypeError` for anything but floats."""
    return apply_map(RSQRT, [x], fastmath=fastmath)


def exp(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """e^x. Raises `GraphTypeError` for anything but floats."""
    return apply_map(EXP, [x], fastmath=fastmath)


def log(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The natural logarithm; -inf at ±0, NaN below. Raises `GraphTypeError` for anything but floats."""
    return apply_map(LOG, [x], fastmath=fastmath)


def log1p(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``log(1 + x)``, exact near 0; -inf at -1, NaN below. Raises `GraphTypeError` for anything but floats."""
    return apply_map(LOG1P, [x], fastmath=fastmath)


def sin(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The sine of radians of any size; NaN at ±inf. Raises `GraphTypeError` for anything but floats."""
    return apply_map(SIN, [x], fastmath=fastmath)


def cos(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The cosine of radians of any size; NaN at ±inf. Raises `GraphTypeError` for anything but floats."""
    return apply_map(COS, [x], fastmath=fastmath)


def acos(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The angle in [0, pi] whose cosine is x; NaN beyond ±1. Raises `GraphTypeError` for anything but floats."""
    return apply_map(ACOS, [x], fastmath=fastmath)


def atanh(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The inverse of tanh; ±inf at ±1, NaN beyond. Raises `GraphTypeError` for anything but floats."""
    return apply_map(ATANH, [x], fastmath=fastmath)


def tanh(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The hyperbolic tangent. Raises `GraphTypeError` for anything but floats."""
    return apply_map(TANH, [x], fastmath=fastmath)


def erf(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The error function. Raises `GraphTypeError` for anything but floats."""
    return apply_map(ERF, [x], fastmath=fastmath)


def pow(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs`` to the power ``rhs``. Integers wrap; a negative exponent of integers truncates the exact value.

    The exponent 2, written as a number, is a product, correctly rounded.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    if isinstance(rhs, int | float) and rhs == 2 and is_tensor(lhs):
        from .arithmetic import mul

        return mul(lhs, lhs, fastmath=fastmath)
    return apply_map(POW, [lhs, rhs], fastmath=fastmath)


# -- contracts


def _reference_erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[x.dtype])(x))


def _reference_pow(x: Array, y: Array) -> Array:
    if x.dtype != object:
        # powl of the C library gives inf for (-inf) ** -2.0**63
        special = np.power(x.astype(np.float64), y.astype(np.float64))
        return np.asarray(np.where(np.isfinite(x) & np.isfinite(y) & (x != 0), np.power(x, y), special))
    pairs = zip(x.ravel(), y.ravel(), strict=True)
    return np.array([_int_pow(int(a), int(b)) for a, b in pairs], object).reshape(x.shape)


def _int_pow(base: int, exponent: int) -> int:
    if exponent < 0:
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    return builtin_pow(base, exponent, 1 << 64)


def _promise(
    name: str, function: Callable[..., Any], ulp: float, reference: Callable[..., Any], *uses: str, mpmath: str = ""
) -> None:
    promise(Contract(name, function, 1, supported(*uses), ulp, reference, mpmath=mpmath))


for _name, _function, _reference in (
    ("floor", floor, np.floor),
    ("ceil", ceil, np.ceil),
    ("trunc", trunc, np.trunc),
    ("round", round, np.rint),
):
    _promise(_name, _function, EXACT, _reference)
promise(Contract("abs", abs, 1, NUMBERS, EXACT, np.abs))
_promise("sqrt", sqrt, CORRECTLY_ROUNDED, np.sqrt)
_promise("rsqrt", rsqrt, 1.0, lambda x: 1 / np.sqrt(x), "rsqrt")
_promise("acos", acos, 2.0, np.arccos, mpmath="acos")
_promise("atanh", atanh, 2.0, np.arctanh, mpmath="atanh")
for _name, _function, _numpy in (
    ("exp", exp, np.exp),
    ("log", log, np.log),
    ("log1p", log1p, np.log1p),
    ("sin", sin, np.sin),
    ("cos", cos, np.cos),
    ("tanh", tanh, np.tanh),
    ("erf", erf, _reference_erf),
):
    _promise(_name, _function, 1.0, _numpy, _name, mpmath=_name)
promise(Contract("pow", pow, 2, supported("pow") + INTEGERS, 2.0, _reference_pow, mpmath="power"))
