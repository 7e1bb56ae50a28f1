"""Comparisons, logic and bits, under the names that numpy has for them."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType

from . import elementwise as _e
from .naming import bits_of, comparison_of, of_two
from .tracing import Array, as_array, cast, constant

equal = comparison_of("equal", "``x == y``.", op="eq")
not_equal = comparison_of("not_equal", "``x != y``.", op="ne")
less = comparison_of("less", "``x < y``.", op="lt")
less_equal = comparison_of("less_equal", "``x <= y``.", op="le")
greater = comparison_of("greater", "``x > y``.", op="gt")
greater_equal = comparison_of("greater_equal", "``x >= y``.", op="ge")


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


bitwise_and = bits_of("bitwise_and", "``x & y`` of integers or bools.", op="and")
bitwise_or = bits_of("bitwise_or", "``x | y`` of integers or bools.", op="or")
bitwise_xor = bits_of("bitwise_xor", "``x ^ y`` of integers or bools.", op="xor")


def invert(x: Any) -> Array:
    """``~x`` of integers or bools."""
    value = as_array(x, "jnp.invert")
    ones = True if value.dtype is DType.bool else value.dtype.integer_range[1] if not value.dtype.is_signed else -1
    return bitwise_xor(value, constant(ones, value.dtype))


left_shift = of_two("left_shift", "``x << y`` of integers; 0 for a count of the width or more.", op="shift_left")
right_shift = of_two("right_shift", "``x >> y`` of integers, arithmetic on signed ones.", op="shift_right")


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
