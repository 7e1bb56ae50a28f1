"""Array functions on the values of a kernel: ``import halfulp.ops.pallas.numpy as jnp``.

They are named, promote types, broadcast and treat axes as ``jax.numpy`` does. Operands are values of the kernel and
Python or numpy numbers; whatever is named here works on scalars too. Nothing here is for arrays of the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as _np

from halfulp.compiler import DType

from . import elementwise as _e
from .reducing import all, any, argmax, argmin, cumsum, dot, matmul, max, mean, min, sum
from .reducing import prod_of as prod
from .shaping import (
    broadcast_to,
    checked_shape,
    concatenate,
    expand_dims,
    reshape,
    squeeze,
    stack,
    transpose,
)
from .specs import as_dtype
from .tracing import Array, as_array, broadcast, cast, constant, current_trace, plain

inf = math.inf
nan = math.nan
pi = math.pi


class ScalarType:
    """An element type that also converts: ``jnp.int32(0)``, ``x.astype(jnp.int32)``."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype

    @property
    def dtype(self) -> _np.dtype[Any]:
        """The numpy dtype, so that numpy takes this for one."""
        return self._dtype.to_numpy()

    def __call__(self, value: Any) -> Any:
        """A value of the kernel converted, or a number as a numpy scalar."""
        return cast(value, self._dtype) if isinstance(value, Array) else self.dtype.type(value)

    def __repr__(self) -> str:
        return f"jnp.{self._dtype.value}"


bool_ = ScalarType(DType.bool)
int8 = ScalarType(DType.int8)
int16 = ScalarType(DType.int16)
int32 = ScalarType(DType.int32)
int64 = ScalarType(DType.int64)
uint8 = ScalarType(DType.uint8)
uint16 = ScalarType(DType.uint16)
uint32 = ScalarType(DType.uint32)
uint64 = ScalarType(DType.uint64)
float16 = ScalarType(DType.float16)
bfloat16 = ScalarType(DType.bfloat16)
float32 = ScalarType(DType.float32)
float64 = ScalarType(DType.float64)

# -- making values


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """A block whose every element is ``fill_value``, a number or a scalar of the kernel."""
    sizes = checked_shape(shape, "jnp.full")
    value = as_array(fill_value, "jnp.full")
    wanted = value.dtype if dtype is None else as_dtype(dtype, "jnp.full")
    if not isinstance(fill_value, Array):
        return constant(fill_value if wanted.is_float else wanted.to_numpy().type(fill_value).item(), wanted, sizes)
    return broadcast_to(cast(value, wanted), sizes)


def zeros(shape: Any, dtype: Any = DType.float32) -> Array:
    """A block of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = DType.float32) -> Array:
    """A block of ones."""
    return full(shape, 1, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Array:
    """A block of the shape (and type) of ``x``, filled with a value."""
    array = as_array(x, "jnp.full_like")
    return full(array.shape, fill_value, array.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None) -> Array:
    """Zeros of the shape (and type) of ``x``."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Array:
    """Ones of the shape (and type) of ``x``."""
    return full_like(x, 1, dtype)


def arange(start: int, stop: int | None = None, step: int = 1, dtype: Any = DType.int32) -> Array:
    """The ints from ``start`` (or 0) up to ``stop``, ``step`` apart, which are known when the kernel is traced."""
    first, last = (0, start) if stop is None else (start, stop)
    (count,) = checked_shape(len(range(first, last, step)), "jnp.arange")
    wanted = as_dtype(dtype, "jnp.arange")
    k = current_trace("jnp.arange").builder
    places = Array(k.iota([count], DType.int32.to_element_type()), DType.int32, [count])
    return cast(_e.arithmetic("add", "jnp.arange", _e.arithmetic("mul", "jnp.arange", places, step), first), wanted)


def asarray(x: Any, dtype: Any = None) -> Array:
    """A number as a value of the kernel, of ``dtype`` if that is given."""
    array = plain(as_array(x, "jnp.asarray"))
    return array if dtype is None else astype(array, dtype)


array = asarray


def astype(x: Any, dtype: Any) -> Array:
    """The same numbers in another type: floats to integers truncate and saturate, to bool is "not zero"."""
    return cast(as_array(x, "astype"), as_dtype(dtype, "astype"))


# -- arithmetic


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


# -- comparisons and logic


def equal(x: Any, y: Any) -> Array:
    """``x == y``."""
    return _e.compare("eq", "jnp.equal", x, y)


def not_equal(x: Any, y: Any) -> Array:
    """``x != y``."""
    return _e.compare("ne", "jnp.not_equal", x, y)


def less(x: Any, y: Any) -> Array:
    """``x < y``."""
    return _e.compare("lt", "jnp.less", x, y)


def less_equal(x: Any, y: Any) -> Array:
    """``x <= y``."""
    return _e.compare("le", "jnp.less_equal", x, y)


def greater(x: Any, y: Any) -> Array:
    """``x > y``."""
    return _e.compare("gt", "jnp.greater", x, y)


def greater_equal(x: Any, y: Any) -> Array:
    """``x >= y``."""
    return _e.compare("ge", "jnp.greater_equal", x, y)


def _truth(x: Any, subject: str) -> Array:
    return cast(as_array(x, subject), DType.bool)


def logical_and(x: Any, y: Any) -> Array:
    """Whether both are not zero."""
    return bitwise_and(_truth(x, "jnp.logical_and"), _truth(y, "jnp.logical_and"))


def logical_or(x: Any, y: Any) -> Array:
    """Whether one is not zero."""
    return bitwise_or(_truth(x, "jnp.logical_or"), _truth(y, "jnp.logical_or"))


def logical_xor(x: Any, y: Any) -> Array:
    """Whether exactly one is not zero."""
    return bitwise_xor(_truth(x, "jnp.logical_xor"), _truth(y, "jnp.logical_xor"))


def logical_not(x: Any) -> Array:
    """Whether it is zero."""
    return invert(_truth(x, "jnp.logical_not"))


def bitwise_and(x: Any, y: Any) -> Array:
    """``x & y`` of integers or bools."""
    return _e.bitwise("and", "jnp.bitwise_and", x, y)


def bitwise_or(x: Any, y: Any) -> Array:
    """``x | y`` of integers or bools."""
    return _e.bitwise("or", "jnp.bitwise_or", x, y)


def bitwise_xor(x: Any, y: Any) -> Array:
    """``x ^ y`` of integers or bools."""
    return _e.bitwise("xor", "jnp.bitwise_xor", x, y)


def invert(x: Any) -> Array:
    """``~x`` of integers or bools."""
    value = as_array(x, "jnp.invert")
    ones = True if value.dtype is DType.bool else value.dtype.integer_range[1] if not value.dtype.is_signed else -1
    return bitwise_xor(value, constant(ones, value.dtype))


def left_shift(x: Any, y: Any) -> Array:
    """``x << y`` of integers; 0 for a count of the width or more."""
    return _e.library("shift_left", "jnp.left_shift", x, y)


def right_shift(x: Any, y: Any) -> Array:
    """``x >> y`` of integers, arithmetic on signed ones."""
    return _e.library("shift_right", "jnp.right_shift", x, y)


def isnan(x: Any) -> Array:
    """Whether it is NaN."""
    return _e.predicate("is_nan", "jnp.isnan", x)


def isinf(x: Any) -> Array:
    """Whether it is infinite."""
    return _e.predicate("is_inf", "jnp.isinf", x)


def isfinite(x: Any) -> Array:
    """Whether it is neither NaN nor infinite."""
    return logical_not(logical_or(isnan(x), isinf(x)))


def where(condition: Any, x: Any, y: Any) -> Array:
    """``x`` where the condition holds, ``y`` elsewhere; neither is an error where it is not taken."""
    return _e.select(condition, x, y, "jnp.where")


def iota(shape: Sequence[int], axis: int = 0, dtype: Any = DType.int32) -> Array:
    """The index of each element along an axis."""
    sizes, wanted = checked_shape(shape, "iota"), as_dtype(dtype, "iota")
    k = current_trace("iota").builder
    whole = wanted if wanted.is_integral else DType.int32
    return cast(Array(k.iota(sizes, whole.to_element_type(), axis), whole, sizes), wanted)


def ravel(x: Any) -> Array:
    """All elements along one axis."""
    return reshape(x, -1)


__all__ = [name for name in dir() if not name.startswith("_") and name not in ("annotations", "math", "Any")]
