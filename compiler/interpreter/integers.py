"""Integer arithmetic of any width, wrapping, total: no operands trap or are undefined.

IR integers carry no sign, so arrays hold them signed (i1 as bool) and an operation reads them as signed or unsigned.
An i1 that is set counts as -1 when it is read as signed, as in LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .exact import Array

Binary = Callable[[Array, Array], Array]

_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
BOOL = np.dtype(np.bool_)


def as_signed(a: Array) -> Array:
    """The array to compute with when it is read as signed: i1 becomes 0 or -1 in eight bits."""
    array = np.asarray(a)
    return np.negative(array.view(np.int8)) if array.dtype == BOOL else array


def as_unsigned(a: Array) -> Array:
    """The array to compute with when it is read as unsigned."""
    array = np.asarray(a)
    return array.view(np.uint8 if array.dtype == BOOL else _UNSIGNED[array.dtype])


def stored(result: Array, dtype: np.dtype[Any]) -> Array:
    """A result of the same width, or of eight bits for i1, as values of ``dtype`` are held."""
    array = np.asarray(result)
    return (array & 1).astype(BOOL) if dtype == BOOL else array.view(dtype)


def wrapped_index(value: int) -> int:
    """A number as a value of type ``index``, modulo 2^64."""
    return (value + 2**63) % 2**64 - 2**63


def as_stored(a: Array) -> Array:
    """An array of unsigned integers as signed ones, in which the bits are held; others as they are."""
    return a.view(f"i{a.dtype.itemsize}") if a.dtype.kind == "u" else a


def signed(operation: Binary) -> Binary:
    """``operation`` on operands read as signed."""
    return lambda a, b: stored(operation(as_signed(a), as_signed(b)), a.dtype)


def unsigned(operation: Binary) -> Binary:
    """``operation`` on operands read as unsigned."""
    return lambda a, b: stored(operation(as_unsigned(a), as_unsigned(b)), a.dtype)


def width(dtype: np.dtype[Any]) -> int:
    """Bits of an integer type."""
    return 1 if dtype == BOOL else dtype.itemsize * 8


def _divide_or_zero(operation: Binary) -> Binary:
    """Division or remainder whose result is 0 where the divisor is."""

    def total(a: Array, b: Array) -> Array:
        no_divisor = b == 0
        return np.where(no_divisor, np.zeros_like(a), operation(a, np.where(no_divisor, np.ones_like(b), b)))

    return total


def _floor_divide(a: Array, b: Array) -> Array:
    # numpy leaves min // -1 to the machine; negation wraps by definition
    opposite = b == -1
    return np.where(opposite, np.zeros_like(a) - a, np.floor_divide(a, np.where(opposite, np.ones_like(b), b)))


def _modulo(a: Array, b: Array) -> Array:
    opposite = b == -1
    return np.where(opposite, np.zeros_like(a), np.mod(a, np.where(opposite, np.ones_like(b), b)))


def _truncating_divide(a: Array, b: Array) -> Array:
    floor = _floor_divide(a, b)
    return np.asarray(floor + ((_modulo(a, b) != 0) & ((a < 0) != (b < 0))))


def _truncating_remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - _truncating_divide(a, b) * b)


def _ceiling_divide(a: Array, b: Array) -> Array:
    return np.asarray(_floor_divide(a, b) + (_modulo(a, b) != 0))


def _unsigned_ceiling_divide(a: Array, b: Array) -> Array:
    return np.asarray(np.floor_divide(a, b) + (np.mod(a, b) != 0))


floor_divide_signed = signed(_divide_or_zero(_floor_divide))
modulo_signed = signed(_divide_or_zero(_modulo))
truncating_divide_signed = signed(_divide_or_zero(_truncating_divide))
truncating_remainder_signed = signed(_divide_or_zero(_truncating_remainder))
ceiling_divide_signed = signed(_divide_or_zero(_ceiling_divide))
divide_unsigned = unsigned(_divide_or_zero(np.floor_divide))
modulo_unsigned = unsigned(_divide_or_zero(np.mod))
ceiling_divide_unsigned = unsigned(_divide_or_zero(_unsigned_ceiling_divide))

DIVISIONS: dict[str, Binary] = {
    "floordivs": floor_divide_signed,
    "divu": divide_unsigned,
    "mods": modulo_signed,
    "modu": modulo_unsigned,
}


def shift_left(a: Array, count: Array) -> Array:
    """``a * 2**count``, 0 for a count of the width or more."""
    value, by = as_unsigned(a), as_unsigned(count)
    fits = by < width(a.dtype)
    return stored(np.where(fits, value << np.where(fits, by, 0).astype(value.dtype), 0).astype(value.dtype), a.dtype)


def shift_right_logical(a: Array, count: Array) -> Array:
    """The bits moved down and zeros moved in, 0 for a count of the width or more."""
    value, by = as_unsigned(a), as_unsigned(count)
    fits = by < width(a.dtype)
    return stored(np.where(fits, value >> np.where(fits, by, 0).astype(value.dtype), 0).astype(value.dtype), a.dtype)


def shift_right_arithmetic(a: Array, count: Array) -> Array:
    """The bits moved down and the sign moved in; only the sign is left for a count of the width or more."""
    value, by = as_signed(a), as_unsigned(count)
    limited = np.minimum(by, width(a.dtype) - 1).astype(value.dtype)
    return stored(value >> limited, a.dtype)


SHIFTS: dict[str, Binary] = {
    "left": shift_left,
    "right_logical": shift_right_logical,
    "right_arithmetic": shift_right_arithmetic,
}

add = signed(np.add)
subtract = signed(np.subtract)
multiply = signed(np.multiply)
bitwise_and = signed(np.bitwise_and)
bitwise_or = signed(np.bitwise_or)
bitwise_xor = signed(np.bitwise_xor)
maximum_signed = signed(np.maximum)
maximum_unsigned = unsigned(np.maximum)
minimum_signed = signed(np.minimum)
minimum_unsigned = unsigned(np.minimum)


def absolute(a: Array) -> Array:
    """The absolute value; that of the smallest number wraps to itself."""
    value = as_signed(a)
    return stored(np.where(value < 0, np.zeros_like(value) - value, value), a.dtype)


def _bits_set_below(a: Array) -> Array:
    """Sets all bits below the highest one set."""
    shift = 1
    while shift < a.dtype.itemsize * 8:
        a = a | (a >> a.dtype.type(shift))
        shift *= 2
    return a


def count_ones(a: Array) -> Array:
    """The number of bits set."""
    return stored(np.bitwise_count(as_unsigned(a)).astype(as_unsigned(a).dtype), a.dtype)


def count_leading_zeros(a: Array) -> Array:
    """The number of zeros above the highest bit set; the width for 0."""
    value = as_unsigned(a)
    used = np.bitwise_count(_bits_set_below(value)).astype(value.dtype)
    return stored(value.dtype.type(width(a.dtype)) - used, a.dtype)


def count_trailing_zeros(a: Array) -> Array:
    """The number of zeros below the lowest bit set; the width for 0."""
    value = as_unsigned(a)
    below = ~value & (value - value.dtype.type(1))
    return stored(np.minimum(np.bitwise_count(below), width(a.dtype)).astype(value.dtype), a.dtype)
