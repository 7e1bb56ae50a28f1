"""Arithmetic and functions of real numbers, under the names that numpy has for them."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType

from . import elementwise as _e
from .comparing import greater, isnan, less, where
from .tracing import Array, as_array, constant


def add(x: Any, y: Any) -> Array:
    """``x + y``; integers wrap."""
    return _e.arithmetic("add", "jnp.add", x, y)


def subtract(x: Any, y: Any) -> Array:
    """``x - y``; integers wrap."""
    return _e.arithmetic("sub", "jnp.subtract", x, y)


def multiply(x: Any, y: Any) -> Array:
    """``x * y``; integers wrap."""
    return _e.arithmetic("mul", "jnp.multiply", x, y)


def divide(x: Any, y: Any) -> Array:
    """``x / y``; integers are divided in float32."""
    return _e.divide(x, y, "jnp.divide")


def floor_divide(x: Any, y: Any) -> Array:
    """``x // y``, rounded down; 0 for integers and a zero divisor."""
    return _e.library("floor_div", "jnp.floor_divide", x, y)


def mod(x: Any, y: Any) -> Array:
    """``x % y`` with the sign of ``y``; 0 for integers and a zero divisor."""
    return _e.library("mod", "jnp.mod", x, y)


remainder = mod


def power(x: Any, y: Any) -> Array:
    """``x ** y``. A Python int for ``y`` multiplies by squaring."""
    if isinstance(y, int) and not isinstance(y, bool):
        return _e.integer_power(x, y, "jnp.power")
    return _e.library("pow", "jnp.power", x, y)


def square(x: Any) -> Array:
    """``x * x``."""
    return multiply(x, x)


def maximum(x: Any, y: Any) -> Array:
    """The larger of the two; NaN if one is."""
    return _e.arithmetic("maximum", "jnp.maximum", x, y)


def minimum(x: Any, y: Any) -> Array:
    """The smaller of the two; NaN if one is."""
    return _e.arithmetic("minimum", "jnp.minimum", x, y)


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


def exp(x: Any) -> Array:
    """e^x."""
    return _e.library("exp", "jnp.exp", x, floats=True)


def log(x: Any) -> Array:
    """The natural logarithm."""
    return _e.library("log", "jnp.log", x, floats=True)


def log1p(x: Any) -> Array:
    """log(1 + x), exact near 0."""
    return _e.library("log1p", "jnp.log1p", x, floats=True)


def sqrt(x: Any) -> Array:
    """The square root, correctly rounded; NaN below 0."""
    return _e.library("sqrt", "jnp.sqrt", x, floats=True)


def rsqrt(x: Any) -> Array:
    """1 / sqrt(x)."""
    return _e.library("rsqrt", "jnp.rsqrt", x, floats=True)


def tanh(x: Any) -> Array:
    """The hyperbolic tangent."""
    return _e.library("tanh", "jnp.tanh", x, floats=True)


def erf(x: Any) -> Array:
    """The error function."""
    return _e.library("erf", "jnp.erf", x, floats=True)


def sin(x: Any) -> Array:
    """The sine of radians."""
    return _e.library("sin", "jnp.sin", x, floats=True)


def cos(x: Any) -> Array:
    """The cosine of radians."""
    return _e.library("cos", "jnp.cos", x, floats=True)


def floor(x: Any) -> Array:
    """The largest whole number that is not above x."""
    return _e.library("floor", "jnp.floor", x, floats=True)


def ceil(x: Any) -> Array:
    """The smallest whole number that is not below x."""
    return _e.library("ceil", "jnp.ceil", x, floats=True)


def trunc(x: Any) -> Array:
    """The whole number next to x towards 0."""
    return _e.library("trunc", "jnp.trunc", x, floats=True)


def round(x: Any) -> Array:
    """The nearest whole number, the even one of two."""
    return _e.library("round", "jnp.round", x, floats=True)
