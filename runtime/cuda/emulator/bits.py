"""Operations on bits: logic, shifts, bit fields, permutation, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .operation import Family, Modifiers, Operation, unsupported
from .syntax import Instruction
from .types import B32, BOOL, PRED, TYPES, U8, U32, U64, Array, ScalarType

_U32_TYPE = TYPES["u32"]


def logic(function: Callable[..., Array], count: int = 2) -> Family:
    """``and``, ``or``, ``xor``, ``not``, of predicates too."""

    def family(instruction: Instruction) -> Operation:
        type = _bits_type(instruction, "bp")
        return Operation(function, (type,) * count, type)

    return family


def shift_left(instruction: Instruction) -> Operation:
    """An amount beyond the width gives 0."""
    type = _bits_type(instruction, "b")
    return Operation(lambda a, n: _in_range(a << _clamped(n, type), n, type), (type, _U32_TYPE), type)


def shift_right(instruction: Instruction) -> Operation:
    """An amount beyond the width gives 0, or all bits the sign's."""
    type = _bits_type(instruction, "bus")
    if not type.is_signed:
        return Operation(lambda a, n: _in_range(a >> _clamped(n, type), n, type), (type, _U32_TYPE), type)
    return Operation(
        lambda a, n: (a.view(type.dtype) >> _clamped(n, type).view(type.dtype)).view(type.raw),
        (type, _U32_TYPE),
        type,
    )


def _clamped(n: Array, type: ScalarType) -> Array:
    return np.minimum(n, np.uint32(type.bits - 1)).astype(type.raw)


def _in_range(shifted: Array, n: Array, type: ScalarType) -> Array:
    outside = n >= type.bits
    return np.where(outside, np.zeros(1, type.raw), shifted) if np.count_nonzero(outside) else shifted


def funnel_shift(instruction: Instruction) -> Operation:
    """``shf.l`` and ``shf.r`` on the 64 bits of b:a; ``.wrap`` takes the amount modulo 32, ``.clamp`` at most 32."""
    modifiers = Modifiers(instruction)
    direction = modifiers.one_of("l", "r")
    wraps = modifiers.one_of("wrap", "clamp") == "wrap"
    modifiers.type("b", (32,))
    modifiers.end()

    def shift(a: Array, b: Array, n: Array) -> Any:
        amount = (n & np.uint32(31) if wraps else np.minimum(n, np.uint32(32))).astype(U64)
        both = (b.astype(U64) << np.uint64(32)) | a
        shifted = (both << amount) >> np.uint64(32) if direction == "l" else both >> amount
        return shifted.astype(U32)

    return Operation(shift, (B32, B32, _U32_TYPE), B32)


def extract_field(instruction: Instruction) -> Operation:
    """``bfe``: ``length`` bits from ``start`` on, sign or zero extended; what lies above the top is the sign."""
    type = _one_type(instruction, "us", (32, 64))
    width = type.bits

    def extract(a: Array, start: Array, length: Array) -> Any:
        start, length = start & np.uint32(255), length & np.uint32(255)
        wide = a.view(type.dtype).astype(type.dtype)
        first = np.minimum(start, np.uint32(width - 1)).astype(type.raw)
        shifted = wide >> first.view(type.dtype)
        if not type.is_signed:
            shifted = np.where(start >= width, type.dtype.type(0), shifted)
        # move the field to the top and back, so that its first bit fills the rest
        kept = np.clip(width - length.astype(np.int64), 0, width - 1).astype(type.raw).view(type.dtype)
        field = (shifted.view(type.raw) << kept.view(type.raw)).view(type.dtype) >> kept
        return np.where(length == 0, type.dtype.type(0), field).view(type.raw)

    return Operation(extract, (type, _U32_TYPE, _U32_TYPE), type)


def insert_field(instruction: Instruction) -> Operation:
    """``bfi``: the low ``length`` bits of a replace those of b from ``start`` on."""
    type = _one_type(instruction, "b", (32, 64))
    shift = shift_left(Instruction(instruction.line, instruction.text, "shl", (type.name,), ())).function
    everything = np.array([-1]).astype(type.raw)

    def insert(a: Array, b: Array, start: Array, length: Array) -> Array:
        start, length = start & np.uint32(255), length & np.uint32(255)
        mask = shift(~shift(everything, length), start)
        return np.asarray((shift(a, start) & mask) | (b & ~mask))

    return Operation(insert, (type, type, _U32_TYPE, _U32_TYPE), type)


def permute(instruction: Instruction) -> Operation:
    """``prmt.b32``: each byte of the result is one of the eight of b:a, or its sign eight times."""
    _one_type(instruction, "b", (32,))

    def select(a: Array, b: Array, selector: Array) -> Array:
        both = (b.astype(U64) << np.uint64(32)) | a
        result = np.zeros(1, U32)
        for place in range(4):
            choice = (selector >> np.uint32(4 * place)) & np.uint32(15)
            byte = ((both >> ((choice & np.uint32(7)) * np.uint32(8)).astype(U64)) & np.uint64(255)).astype(U8)
            sign = (byte.view(np.int8) >> np.int8(7)).view(U8)
            chosen = np.where(choice & np.uint32(8), sign, byte)
            result = result | (chosen.astype(U32) << np.uint32(8 * place))
        return result

    return Operation(select, (B32, B32, B32), B32)


def look_up(instruction: Instruction) -> Operation:
    """``lop3.b32``: any function of three bits, given by its table of eight."""
    _one_type(instruction, "b", (32,))

    def lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
        result = np.zeros(1, U32)
        for row in range(8):
            chosen = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
            bit = (table >> np.uint32(row)) & np.uint32(1)
            result = result | (chosen & (np.uint32(0) - bit))
        return result

    return Operation(lop3, (B32, B32, B32, B32), B32)


def count(function: Callable[[Array, int], Array]) -> Family:
    """``popc`` and ``clz``, whose result has 32 bits."""

    def family(instruction: Instruction) -> Operation:
        type = _one_type(instruction, "b", (32, 64))
        return Operation(lambda a: function(a, type.bits).astype(U32), (type,), B32)

    return family


def ones(a: Array, bits: int) -> Array:
    return np.bitwise_count(a)


def leading_zeros(a: Array, bits: int) -> Array:
    for shift in (1, 2, 4, 8, 16, 32):  # copies the highest one to all places below
        if shift < bits:
            a = a | (a >> a.dtype.type(shift))
    return np.bitwise_count(~a)


def reverse(instruction: Instruction) -> Operation:
    """``brev``: the bits in the other order."""
    type = _one_type(instruction, "b", (32, 64))

    def reversed_bits(a: Array) -> Array:
        bits = np.unpackbits(a.view(U8).reshape(*a.shape, type.nbytes), axis=-1, bitorder="little")
        return np.packbits(bits[..., ::-1], axis=-1, bitorder="little").view(type.raw).reshape(a.shape)

    return Operation(lambda a: reversed_bits(np.ascontiguousarray(a)), (type,), type)


def select(instruction: Instruction) -> Operation:
    """``selp d, a, b, p``: a where p holds, else b."""
    type = _one_type(instruction, "busf", (16, 32, 64))
    return Operation(lambda a, b, p: np.asarray(np.where(p, a, b)), (type, type, PRED), type)


def _bits_type(instruction: Instruction, kinds: str) -> ScalarType:
    return _one_type(instruction, kinds, (16, 32, 64))


def _one_type(instruction: Instruction, kinds: str, bits: tuple[int, ...]) -> ScalarType:
    modifiers = Modifiers(instruction)
    type = modifiers.type(kinds, bits)
    modifiers.end()
    if type.dtype == BOOL and instruction.opcode not in ("and", "or", "xor", "not", "mov"):
        raise unsupported(instruction)
    return type
