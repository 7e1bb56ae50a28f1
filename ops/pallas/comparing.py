"""Comparisons, logic and bits, under the names that numpy has for them."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType

from . import elementwise as _e
from .tracing import Array, as_array, cast, constant


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
