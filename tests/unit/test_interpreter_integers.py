"""The interpreter's integers against Python's, and its casts against exact rationals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from halfulp.compiler.interpreter import integers
from halfulp.compiler.interpreter.casts import cast, extend_unsigned, float_to_integer, resize_signed, signed_to_float

Array = np.ndarray[Any, np.dtype[Any]]

I1, I8, I16, I32, I64 = (np.dtype(t) for t in (np.bool_, np.int8, np.int16, np.int32, np.int64))
F16, BF16, F32, F64 = (np.dtype(t) for t in (np.float16, bfloat16, np.float32, np.float64))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


Scalar = Callable[[int, int], int]
SIGNED: dict[str, tuple[integers.Binary, Scalar]] = {
    "add": (integers.add, lambda a, b: a + b),
    "subtract": (integers.subtract, lambda a, b: a - b),
    "multiply": (integers.multiply, lambda a, b: a * b),
    "and": (integers.bitwise_and, lambda a, b: a & b),
    "or": (integers.bitwise_or, lambda a, b: a | b),
    "xor": (integers.bitwise_xor, lambda a, b: a ^ b),
    "maximum": (integers.maximum_signed, max),
    "minimum": (integers.minimum_signed, min),
    "floordivs": (integers.DIVISIONS["floordivs"], lambda a, b: a // b if b else 0),
    "mods": (integers.DIVISIONS["mods"], lambda a, b: a % b if b else 0),
    "divs": (integers.truncating_divide_signed, lambda a, b: truncated(a, b) if b else 0),
    "rems": (integers.truncating_remainder_signed, lambda a, b: a - truncated(a, b) * b if b else 0),
    "ceildivs": (integers.ceiling_divide_signed, lambda a, b: -(-a // b) if b else 0),
}
UNSIGNED: dict[str, tuple[integers.Binary, Scalar]] = {
    "maximum": (integers.maximum_unsigned, max),
    "minimum": (integers.minimum_unsigned, min),
    "divu": (integers.DIVISIONS["divu"], lambda a, b: a // b if b else 0),
    "modu": (integers.DIVISIONS["modu"], lambda a, b: a % b if b else 0),
    "ceildivu": (integers.ceiling_divide_unsigned, lambda a, b: -(-a // b) if b else 0),
}


def all_pairs(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Every pair of i1 or i8; for wider types pairs of numbers near the ends, 0 and powers of two."""
    bits = integers.width(dtype)
    if bits <= 8:
        numbers = list(range(1 << bits))
    else:
        numbers = sorted(
            {(base + d) % (1 << bits) for base in (0, 1 << bits - 1, 1 << bits // 2, 1000) for d in range(-3, 4)}
        )
    unsigned = np.array(numbers, np.uint64)
    values = unsigned.astype(np.bool_) if dtype == I1 else unsigned.astype(f"u{dtype.itemsize}").view(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def as_int(x: Any, dtype: np.dtype[Any], *, signed: bool) -> int:
    bits = integers.width(dtype)
    pattern = int(x) & (1 << bits) - 1
    return pattern - (1 << bits) if signed and pattern >> bits - 1 else pattern


@pytest.mark.parametrize("dtype", [I1, I8, I16, I32, I64], ids=str)
@pytest.mark.parametrize("signed", [True, False])
def test_every_operation_wraps_as_python_integers_do(dtype: np.dtype[Any], signed: bool) -> None:
    a, b = all_pairs(dtype)
    mask = (1 << integers.width(dtype)) - 1
    for name, (operation, scalar) in (SIGNED if signed else UNSIGNED).items():
        got = operation(a, b)
        assert got.dtype == dtype, name
        for x, y, g in zip(a, b, got, strict=True):
            expected = scalar(as_int(x, dtype, signed=signed), as_int(y, dtype, signed=signed)) & mask
            assert as_int(g, dtype, signed=False) == expected, (name, x, y)


@pytest.mark.parametrize("dtype", [I1, I8, I16, I32, I64], ids=str)
def test_shifts_by_the_width_or_more(dtype: np.dtype[Any]) -> None:
    a, b = all_pairs(dtype)
    bits = integers.width(dtype)
    got = {kind: shift(a, b) for kind, shift in integers.SHIFTS.items()}
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        value, count = as_int(x, dtype, signed=False), as_int(y, dtype, signed=False)
        signed = as_int(x, dtype, signed=True)
        inside = min(count, bits)
        expected = {
            "left": (value << inside) & (1 << bits) - 1,
            "right_logical": value >> inside,
            "right_arithmetic": (signed >> inside) & (1 << bits) - 1,
        }
        assert {kind: as_int(g[i], dtype, signed=False) for kind, g in got.items()} == expected, (x, y)


@pytest.mark.parametrize("dtype", [I1, I8, I16, I32, I64], ids=str)
def test_bit_counts_and_absolute_value(dtype: np.dtype[Any]) -> None:
    a, _ = all_pairs(dtype)
    bits = integers.width(dtype)
    for x, ones, leading, trailing, positive in zip(
        a,
        integers.count_ones(a),
        integers.count_leading_zeros(a),
        integers.count_trailing_zeros(a),
        integers.absolute(a),
        strict=True,
    ):
        text = format(as_int(x, dtype, signed=False), f"0{bits}b")
        found = [as_int(n, dtype, signed=False) for n in (ones, leading, trailing, positive)]
        expected = [
            text.count("1"),
            len(text) - len(text.lstrip("0")),
            len(text) - len(text.rstrip("0")),
            abs(as_int(x, dtype, signed=True)),
        ]
        assert found == [n & (1 << bits) - 1 for n in expected], x


def test_scalars_keep_their_type() -> None:
    assert integers.add(np.array(127, np.int8), np.array(1, np.int8)) == np.int8(-128)
    assert integers.floor_divide_signed(np.array(-128, np.int8), np.array(-1, np.int8)).dtype == I8
    assert not integers.bitwise_xor(np.array(True), np.array(True))


# -- casts


def convert(value: Any, source: np.dtype[Any], target: np.dtype[Any], **options: bool) -> Any:
    got = cast(np.array([value]).astype(source), target, **options)
    assert got.dtype == target
    return got[0]


def test_float_to_integer_truncates_saturates_and_takes_nan_to_zero() -> None:
    for source in (F16, BF16, F32, F64):
        for value, expected in ((2.75, 2), (-2.75, -2), (-0.5, 0), (1000.0, 127), (-1000.0, -128), (math.nan, 0)):
            assert convert(value, source, I8) == expected
        assert convert(math.inf, source, I64) == 2**63 - 1
        assert convert(-math.inf, source, I64) == -(2**63)
        unsigned = [convert(v, source, I8, unsigned_result=True).view(np.uint8) for v in (200.0, -1.0, 300.0, math.nan)]
        assert unsigned == [200, 0, 255, 0]
        assert convert(math.inf, source, I64, unsigned_result=True).view(np.uint64) == 2**64 - 1
    assert convert(2.0**63, F64, I64, unsigned_result=True).view(np.uint64) == 2**63
    assert convert(2.0**63, F32, I64) == 2**63 - 1
    assert convert(-(2.0**63), F32, I64) == -(2**63)
    assert convert(np.nextafter(2.0**63, 0), F64, I64) == 2**63 - 1024


def test_to_i1_is_not_equal_to_zero() -> None:
    for source, values in ((F32, [0.0, -0.0, 1e-45, math.nan, -2.0]), (BF16, [0.0, -0.0, 1e-38, math.nan, 2.0])):
        assert cast(np.array(values).astype(source), I1).tolist() == [False, False, True, True, True]
    assert cast(np.array([0, 2, -1], np.int16), I1).tolist() == [False, True, True]


def test_from_i1_counts_as_unsigned() -> None:
    bits = np.array([True, False])
    for target in (I8, I64, F16, BF16, F32, F64):
        assert cast(bits, target).tolist() == [1, 0]


def test_integer_to_integer_extends_or_wraps() -> None:
    assert convert(-1, I8, I32) == -1
    assert convert(-1, I8, I32, unsigned_source=True) == 255
    assert convert(0x1234567890, I64, I32) == 0x34567890
    assert convert(300, I16, I8) == 44


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([F16, BF16, F32, F64]), st.booleans())
def test_integer_to_float_rounds_once(n: int, target: np.dtype[Any], unsigned: bool) -> None:
    value = n & 2**64 - 1 if unsigned else n
    got = float(convert(n, I64, target, unsigned_source=unsigned))
    precision = {F16: 11, BF16: 8, F32: 24, F64: 53}[target]
    dropped = max(abs(value).bit_length() - precision, 0)
    # int's own rounding of a quotient by a power of two: to the nearest, ties to even
    expected = float(rounded_quotient(abs(value), dropped) << dropped)
    if target == F16 and expected > 65504:
        expected = math.inf
    assert got == math.copysign(expected, value)


def rounded_quotient(n: int, shift: int) -> int:
    quotient, rest = divmod(n, 1 << shift)
    return quotient + (2 * rest > 1 << shift or (2 * rest == 1 << shift and quotient % 2))


@pytest.mark.parametrize(("target", "precision"), [(F16, 11), (BF16, 8)], ids=["f16", "bf16"])
def test_integer_to_narrow_float_around_ties(target: np.dtype[Any], precision: int) -> None:
    """One off a tie, where two roundings go wrong: numpy's own conversion fails this."""
    for bits in range(precision + 1, 16 if target == F16 else 63):
        tie = (1 << bits) + (1 << bits - precision)
        for n in (tie - 1, tie, tie + 1):
            dropped = bits + 1 - precision
            assert float(convert(n, I64, target)) == rounded_quotient(n, dropped) << dropped


def test_float_to_float_keeps_nan_and_overflows_to_infinity() -> None:
    assert math.isnan(convert(math.nan, F64, BF16))
    assert math.isnan(convert(math.nan, F32, F16))
    assert convert(65519.0, F32, F16) == 65504
    assert convert(65520.0, F32, F16) == math.inf
    assert convert(3.4e38, F32, BF16) == math.inf
    # above the tie between 1 and the next bf16 by less than f32 can hold
    assert convert(1 + 2.0**-8 + 2.0**-40, F64, BF16) == 1 + 2.0**-7
    assert convert(2.0**-24, F32, F16) == 2.0**-24


def test_arith_conversions_of_i1_and_resizing() -> None:
    bits = np.array([True, False])
    assert resize_signed(bits, I32).tolist() == [-1, 0]
    assert extend_unsigned(bits, I32).tolist() == [1, 0]
    assert signed_to_float(bits, F32).tolist() == [-1.0, 0.0]
    assert resize_signed(np.array([2, 3, -1], np.int64), I1).tolist() == [False, True, True]
    assert extend_unsigned(np.array([-1], np.int8), I64).tolist() == [255]
    floats = np.array([0.5, 3.0, -3.0, math.nan], np.float32)
    assert float_to_integer(floats, I1, unsigned=True).view(np.uint8).tolist() == [0, 1, 0, 0]
    assert float_to_integer(floats, I1, unsigned=False).view(np.uint8).tolist() == [0, 0, 1, 0]
