"""Arithmetic and functions of real numbers, under the names that numpy has for them."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType

from . import elementwise as _e
from .comparing import greater, isnan, less, where
from .naming import arithmetic_of, of_reals, of_two
from .promotion import as_float
from .tracing import Array, as_array, constant

add = arithmetic_of("add", "``x + y``; integers wrap.", op="add")
subtract = arithmetic_of("subtract", "``x - y``; integers wrap.", op="sub")
multiply = arithmetic_of("multiply", "``x * y``; integers wrap.", op="mul")


def divide(x: Any, y: Any) -> Array:
    """``x / y``; integers are divided in float32."""
    return _e.divide(x, y, "jnp.divide")


floor_divide = of_two("floor_divide", "``x // y``, rounded down; 0 for integers and a zero divisor.", op="floor_div")
mod = of_two("mod", "``x % y`` with the sign of ``y``; 0 for integers and a zero divisor.", op="mod")
remainder = mod


def power(x: Any, y: Any) -> Array:
    """``x ** y``. A Python int for ``y`` multiplies by squaring."""
    if isinstance(y, int) and not isinstance(y, bool):
        return _e.integer_power(x, y, "jnp.power")
    return _e.library("pow", "jnp.power", x, y)


def square(x: Any) -> Array:
    """``x * x``."""
    return multiply(x, x)


maximum = arithmetic_of("maximum", "The larger of the two; NaN if one is.", op="maximum")
minimum = arithmetic_of("minimum", "The smaller of the two; NaN if one is.", op="minimum")


def clip(x: Any, min: Any = None, max: Any = None) -> Array:
    """``x``, but not below ``min`` and not above ``max``."""
    result = as_array(x, "jnp.clip")
    result = result if min is None else maximum(result, min)
    return result if max is None else minimum(result, max)


def negative(x: Any) -> Array:
    """``-x``; integers wrap."""
    value = as_array(x, "jnp.negative")
    if not value.dtype.is_float:
        return subtract(constant(0, value.dtype), value)
    return Array(value.value.builder.negate(value.value), value.dtype, value.shape, weak=value.weak)


def positive(x: Any) -> Array:
    """``x``."""
    return as_array(x, "jnp.positive")


def abs(x: Any) -> Array:
    """``|x|``; the least signed integer stays itself."""
    value = as_array(x, "jnp.abs")
    return value if value.dtype is DType.bool else _e.library("abs", "jnp.abs", value)


absolute = abs


def sign(x: Any) -> Array:
    """-1, 0 or 1; NaN of NaN."""
    value = as_array(x, "jnp.sign")
    one, zero = constant(1, value.dtype), constant(0, value.dtype)
    result = where(greater(value, zero), one, zero)
    if value.dtype.is_signed:
        result = where(less(value, zero), negative(one), result)
    return where(isnan(value), value, result) if value.dtype.is_float else result


# -- functions of real numbers; integers are computed in float32


def exp(x: Any, *, upper_bounded: bool = False) -> Array:
    """e^x. ``upper_bounded`` promises x <= 64 or NaN: the same bits for less work."""
    if not upper_bounded:
        return _e.library("exp", "jnp.exp", x, floats=True)
    (a,), weak = _e.common("jnp.exp", (x,), as_float)
    return Array(a.value.builder.exp(a.value, upper_bounded=True), a.dtype, a.shape, weak=weak)


log = of_reals("log", "The natural logarithm.")
log1p = of_reals("log1p", "log(1 + x), exact near 0.")
sqrt = of_reals("sqrt", "The square root, correctly rounded; NaN below 0.")
rsqrt = of_reals("rsqrt", "1 / sqrt(x).")
tanh = of_reals("tanh", "The hyperbolic tangent.")
erf = of_reals("erf", "The error function.")
sin = of_reals("sin", "The sine of radians.")
cos = of_reals("cos", "The cosine of radians.")
floor = of_reals("floor", "The largest whole number that is not above x.")
ceil = of_reals("ceil", "The smallest whole number that is not below x.")
trunc = of_reals("trunc", "The whole number next to x towards 0.")
round = of_reals("round", "The nearest whole number, the even one of two.")
