"""Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg. Results wrap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .operation import Family, Modifiers, Operation, on_values, unsupported
from .syntax import Instruction
from .types import TYPES, U64, Array, ScalarType

_HALF_BITS = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)


def add(instruction: Instruction) -> Operation:
    """``add.s32``, ``add.u64``; the carry of ``add.cc`` is not covered. The sign does not matter."""
    type = _only_type(instruction, "us")
    return Operation(np.add, (type, type), type)


def subtract(instruction: Instruction) -> Operation:
    type = _only_type(instruction, "us")
    return Operation(np.subtract, (type, type), type)


def extreme(ufunc: Callable[..., Array]) -> Family:
    """``min.s32``, ``max.u16``."""
    return lambda instruction: _binary(instruction, ufunc, "us")


def negate(instruction: Instruction) -> Operation:
    type = _only_type(instruction, "s")
    return Operation(on_values(np.negative, type), (type,), type)


def absolute(instruction: Instruction) -> Operation:
    type = _only_type(instruction, "s")
    return Operation(on_values(np.abs, type), (type,), type)


def multiply(instruction: Instruction) -> Operation:
    """``mul.lo``, ``mul.hi`` and ``mul.wide``."""
    part, type, result = _part(instruction)
    return Operation(_product(part, type, result), (type, type), result)


def multiply_add(instruction: Instruction) -> Operation:
    """``mad.lo``, ``mad.hi`` and ``mad.wide``."""
    part, type, result = _part(instruction)
    product = _product(part, type, result)
    return Operation(lambda a, b, c: product(a, b) + c, (type, type, result), result)


def divide(instruction: Instruction) -> Operation:
    """Towards zero; the smallest number by -1 wraps. PTX leaves a division by zero to the machine."""
    return _division(instruction, _quotient, "division")


def remainder(instruction: Instruction) -> Operation:
    """With the sign of the dividend."""
    return _division(instruction, np.fmod, "remainder")


def _quotient(a: Array, b: Array) -> Array:
    """numpy rounds down; where a remainder is left and the signs differ, the quotient towards zero is one more."""
    down = np.floor_divide(a, b)
    if down.dtype.kind == "u":
        return down
    return np.asarray(down + ((down < 0) & (down * b != a)))


def _division(instruction: Instruction, function: Callable[..., Array], name: str) -> Operation:
    type = _only_type(instruction, "us")
    return Operation(
        on_values(function, type, type),
        (type, type),
        type,
        undefined=lambda a, b: np.broadcast_to(b == 0, np.broadcast_shapes(a.shape, b.shape)),
        complaint=f"takes an integer {name} by zero, whose result PTX leaves to the machine; test the divisor before",
    )


def _only_type(instruction: Instruction, kinds: str) -> ScalarType:
    modifiers = Modifiers(instruction)
    type = modifiers.type(kinds)
    modifiers.end()
    return type


def _binary(instruction: Instruction, ufunc: Callable[..., Array], kinds: str) -> Operation:
    type = _only_type(instruction, kinds)
    return Operation(on_values(ufunc, type, type), (type, type), type)


def _part(instruction: Instruction) -> tuple[str, ScalarType, ScalarType]:
    """Which part of the product, the type of the factors and of the result."""
    modifiers = Modifiers(instruction)
    part = modifiers.take("lo", "hi", "wide")
    if part is None:
        raise unsupported(instruction)
    type = modifiers.type("us", (16, 32) if part == "wide" else (16, 32, 64))
    modifiers.end()
    return part, type, TYPES[f"{type.kind}{2 * type.bits}"] if part == "wide" else type


def _product(part: str, type: ScalarType, result: ScalarType) -> Callable[[Array, Array], Array]:
    if part == "lo":
        return np.multiply
    if part == "wide":
        return lambda a, b: _wide(a, type, result) * _wide(b, type, result)
    if type.bits == 64:
        return _high_signed if type.is_signed else _high_unsigned
    double = TYPES[f"{type.kind}{2 * type.bits}"]
    shift = double.raw.type(type.bits)
    return lambda a, b: ((_wide(a, type, double) * _wide(b, type, double)) >> shift).astype(type.raw)


def _wide(a: Array, type: ScalarType, result: ScalarType) -> Array:
    """Sign or zero extended, as raw bits: the low half of a product is the same for both signs."""
    return a.view(type.dtype).astype(result.dtype).view(result.raw)


def _high_unsigned(a: Array, b: Array) -> Array:
    """The upper 64 bits of a product of 128, from four products of 32-bit halves."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_BITS
    b_low, b_high = b & _LOW_HALF, b >> _HALF_BITS
    middle = a_high * b_low + ((a_low * b_low) >> _HALF_BITS)  # cannot overflow: (2**32 - 1)**2 + 2**32 - 1 < 2**64
    other = a_low * b_high + (middle & _LOW_HALF)
    return np.asarray(a_high * b_high + (middle >> _HALF_BITS) + (other >> _HALF_BITS))


def _high_signed(a: Array, b: Array) -> Array:
    """A negative factor counts 2**64 too much as an unsigned one."""
    zero = np.zeros(1, U64)
    high = _high_unsigned(a, b)
    return high - np.where(a.view(np.int64) < 0, b, zero) - np.where(b.view(np.int64) < 0, a, zero)
