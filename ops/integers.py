"""Whole numbers: floor_div, mod, bitwise ops, shifts. None of them traps, whatever the operands.

Integers: ``x // 0`` and ``x % 0`` are 0, ``min // -1`` wraps to min, ``//`` rounds down and ``%`` has the sign of the
divisor, as in Python. A shift by the width or more, or by a negative count, gives 0, or the sign for ``>>`` on signed
integers. Floats: ``//`` is the floor of the rounded quotient; ``%`` is exact but for its last sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64

from halfulp.compiler import TensorValue
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.tile_builder import TileBuilder, Value

from .contract import BOOL, CORRECTLY_ROUNDED, EXACT, INTEGERS, NUMBERS, Array, Contract, promise
from .elementwise import Flags, apply_map, declare_map, is_unsigned, through_f32
from .expansion import Steps
from .promotion import TensorValueLike

_HALF_RANGE = 2.0**537


def _floor_div_recipe(k: TileBuilder, call: OpCall, x: Value, y: Value) -> Value:
    if x.is_float:
        return k.unary("floor", k.binary("div", x, y))
    return k.int_div("divu" if is_unsigned(call) else "floordivs", x, y)


def _mod_recipe(k: TileBuilder, call: OpCall, x: Value, y: Value) -> Value:
    if not x.is_float:
        return k.int_div("modu" if is_unsigned(call) else "mods", x, y)
    element = x.element_type
    x, y = k.cast(x, f64), k.cast(y, f64)
    remainder = _truncated_remainder(k, x, y, wide=element == f64)
    opposite = (remainder < 0.0) ^ (y < 0.0)
    moved = k.select(opposite, k.binary("add", remainder, y), remainder)
    zero = k.select(y < 0.0, -0.0, k.constant(0.0, y.type))
    return k.cast(k.select(remainder == 0.0, zero, moved), element)


def _truncated_remainder(k: TileBuilder, x: Value, y: Value, *, wide: bool) -> Value:
    """``x - trunc(x / y) * y``, exact: NaN for ``y`` = 0 and infinite ``x``, ``x`` for infinite ``y``.

    A step takes the nearest multiple of a divisor off by one fma. That leaves a multiple of the last places of quotient
    and divisor, small enough for 53 bits, so nothing is rounded, and the quotient has 52 bits less. The quotient of two
    f64 can overflow; then multiples of ``y`` by powers of two go first.
    """
    steps, size = Steps(k, "mod"), k.unary("absf", y)
    remainder = x
    for divisor, count in _divisors(k, size) if wide else [(size, 6)]:
        for _ in range(count):
            quotient = k.unary("trunc", k.binary("div", remainder, divisor))
            remainder = steps.fma(k.negate(quotient), divisor, remainder)
    # A quotient may have been rounded up, which turns the sign: then one multiple goes back.
    overshot = ((remainder < 0.0) & (x > 0.0)) | ((remainder > 0.0) & (x < 0.0))
    back = k.select(x < 0.0, k.negate(size), size)
    remainder = k.select(overshot, k.binary("add", remainder, back), remainder)
    return k.select((size == np.inf) & (k.unary("absf", x) < np.inf), x, remainder)


def _divisors(k: TileBuilder, size: Value) -> list[tuple[Value, int]]:
    """Multiples of ``size`` by powers of two, each with the steps that it takes at most; the last is ``size``."""
    tiny, below_one = size < 2.0**-52, size < 1.0
    middle = k.binary("mul", size, _HALF_RANGE)
    large = k.select(tiny, k.binary("mul", middle, _HALF_RANGE), k.select(below_one, size * 2.0**52, size))
    return [(large, 21), (k.select(tiny, middle, size), 12), (size, 12)]


def _shift_right_recipe(k: TileBuilder, call: OpCall, x: Value, count: Value) -> Value:
    return k.shift("right_logical" if is_unsigned(call) else "right_arithmetic", x, count)


FLOOR_DIV = declare_map("floor_div", ("lhs", "rhs"), NUMBERS, through_f32(_floor_div_recipe))
MOD = declare_map("mod", ("lhs", "rhs"), NUMBERS, _mod_recipe)
BITWISE_AND = declare_map("bitwise_and", ("lhs", "rhs"), INTEGERS + BOOL, lambda k, call, a, b: k.binary("and", a, b))
BITWISE_OR = declare_map("bitwise_or", ("lhs", "rhs"), INTEGERS + BOOL, lambda k, call, a, b: k.binary("or", a, b))
BITWISE_XOR = declare_map("bitwise_xor", ("lhs", "rhs"), INTEGERS + BOOL, lambda k, call, a, b: k.binary("xor", a, b))
BITWISE_NOT = declare_map("bitwise_not", ("x",), INTEGERS + BOOL, lambda k, call, x: ~x)
SHIFT_LEFT = declare_map("shift_left", ("x", "count"), INTEGERS, lambda k, call, x, n: k.shift("left", x, n))
SHIFT_RIGHT = declare_map("shift_right", ("x", "count"), INTEGERS, _shift_right_recipe)


def floor_div(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs // rhs``, rounded down. Integers: exact, 0 for a zero divisor. Floats: the floor of the
    rounded quotient.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    return apply_map(FLOOR_DIV, [lhs, rhs], fastmath=fastmath)


def mod(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs % rhs`` with the sign of ``rhs``, as in Python. Integers: exact, 0 for a zero divisor.

    Floats: correctly rounded; NaN for a zero divisor or an infinite ``lhs``.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    return apply_map(MOD, [lhs, rhs], fastmath=fastmath)


def bitwise_and(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """``lhs & rhs`` on integers and bools.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are floats.
    """
    return apply_map(BITWISE_AND, [lhs, rhs])


def bitwise_or(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """``lhs | rhs`` on integers and bools.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are floats.
    """
    return apply_map(BITWISE_OR, [lhs, rhs])


def bitwise_xor(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """``lhs ^ rhs`` on integers and bools.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are floats.
    """
    return apply_map(BITWISE_XOR, [lhs, rhs])


def bitwise_not(x: TensorValueLike) -> TensorValue:
    """``~x``: every bit turned, of a bool its one bit.

    Raises:
        GraphTypeError: ``x`` is no tensor, or holds floats.
    """
    return apply_map(BITWISE_NOT, [x])


def shift_left(x: TensorValueLike, count: TensorValueLike) -> TensorValue:
    """``x << count``; 0 if the count, read as unsigned, is the width or more.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are no integers.
    """
    return apply_map(SHIFT_LEFT, [x, count])


def shift_right(x: TensorValueLike, count: TensorValueLike) -> TensorValue:
    """``x >> count``, arithmetic on signed integers; 0 or the sign if the count, read as unsigned, is too large.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are no integers.
    """
    return apply_map(SHIFT_RIGHT, [x, count])


# -- references


def _reference_floor_div(x: Array, y: Array) -> Array:
    if x.dtype != object:
        return np.asarray(np.floor((x / y).astype(np.float64 if x.dtype == np.longdouble else np.float32)))
    return _elementwise(lambda a, b: a // b if b else 0, x, y)


def _reference_mod(x: Array, y: Array) -> Array:
    if x.dtype != object:
        return np.asarray(np.mod(x, y))
    return _elementwise(lambda a, b: a % b if b else 0, x, y)


def _elementwise(function: Callable[[int, int], int], x: Array, y: Array) -> Array:
    pairs: Sequence[tuple[Any, Any]] = list(zip(x.ravel(), y.ravel(), strict=True))
    return np.array([function(a, b) for a, b in pairs], object).reshape(x.shape)


def _shift(x: int, count: int, width: int, *, left: bool) -> int:
    count = count if 0 <= count < width else width
    return x << count if left else x >> count


promise(Contract("floor_div", floor_div, 2, NUMBERS, CORRECTLY_ROUNDED, _reference_floor_div))
promise(Contract("mod", mod, 2, NUMBERS, CORRECTLY_ROUNDED, _reference_mod))
promise(Contract("bitwise_and", bitwise_and, 2, INTEGERS + BOOL, EXACT, lambda a, b: a & b))
promise(Contract("bitwise_or", bitwise_or, 2, INTEGERS + BOOL, EXACT, lambda a, b: a | b))
promise(Contract("bitwise_xor", bitwise_xor, 2, INTEGERS + BOOL, EXACT, lambda a, b: a ^ b))
promise(Contract("bitwise_not", bitwise_not, 1, INTEGERS + BOOL, EXACT, lambda x: ~x))
for _name, _function, _left in (("shift_left", shift_left, True), ("shift_right", shift_right, False)):
    promise(
        Contract(
            _name,
            _function,
            2,
            INTEGERS,
            EXACT,
            lambda x, n, left=_left: _elementwise(lambda a, b: _shift(a, b, 64, left=left), x, n),
        )
    )
