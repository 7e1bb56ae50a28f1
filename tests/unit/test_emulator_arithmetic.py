"""What single PTX instructions compute, against numpy, Python's integers and exact rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from ptx_kernels import PREDICATE, Array, run_elementwise

from halfulp.runtime.cuda.emulator import UnsupportedPtxError

U8, U16, U32, U64 = (np.dtype(f"u{n}") for n in (1, 2, 4, 8))
S8, S16, S32, S64 = (np.dtype(f"i{n}") for n in (1, 2, 4, 8))
F16, BF16, F32, F64 = np.dtype(np.float16), np.dtype(bfloat16), np.dtype(np.float32), np.dtype(np.float64)
INTEGERS: dict[str, np.dtype[Any]] = {"s16": S16, "u16": U16, "s32": S32, "u32": U32, "s64": S64, "u64": U64}
FLOATS: dict[str, np.dtype[Any]] = {"f32": F32, "f64": F64}
NAN: dict[np.dtype[Any], int] = {F32: 0x7FFFFFFF, F64: 0x7FF8000000000000, F16: 0x7FFF, BF16: 0x7FFF}


def integers(dtype: np.dtype[Any], seed: int) -> Array:
    """Random bits, small numbers, and the ends of the range, in random order."""
    generator = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    bits = generator.integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    small = generator.integers(0, 40, 100).astype(dtype)
    ends = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 31, 32, 33, 63, 64], dtype)
    return generator.permutation(np.concatenate([bits, small, -small, np.repeat(ends, 8)]))


def floats(dtype: np.dtype[Any], seed: int) -> Array:
    """Random bits, ordinary numbers and special values, in random order."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    usual = (generator.standard_normal(200) * 2.0 ** generator.integers(-4, 5, 200)).astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -1.5, 2.0**31, 2.0**63, 1e-41, 3e38]
    with np.errstate(over="ignore"):
        return generator.permutation(np.concatenate([bits, usual, np.repeat(np.array(special).astype(dtype), 6)]))


def same_bits(actual: Array, expected: Array) -> None:
    """Equal bits; NaN must be PTX's own."""
    assert actual.dtype == expected.dtype
    word = f"u{actual.dtype.itemsize}"
    want = expected.view(word).copy()
    if actual.dtype in NAN:
        want[expected != expected] = NAN[actual.dtype]
    different = np.flatnonzero(actual.view(word) != want)
    assert not different.size, f"{different.size} differ, at {different[0]}: {actual[different[0]]}"


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % (1 << 8 * dtype.itemsize) + int(limits.min)


def by_elements(function: Callable[..., int], result: np.dtype[Any], *operands: Array) -> Array:
    """Python's integers as the reference, wrapped to the type of the result."""
    rows = zip(*(operand.tolist() for operand in operands), strict=True)
    return np.array([wrapped(function(*row), result) for row in rows], result)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul.lo", lambda a, b: a * b),
        ("min", min),
        ("max", max),
        ("div", truncated),
        ("rem", lambda a, b: a - truncated(a, b) * b),
    ],
)
@pytest.mark.parametrize("type", INTEGERS)
def test_integer_arithmetic(opcode: str, type: str, function: Callable[..., int]) -> None:
    dtype = INTEGERS[type]
    a, b = integers(dtype, 1), integers(dtype, 2)
    if opcode in ("div", "rem"):
        b[b == 0] = 3
    actual = run_elementwise(f"{opcode}.{type} {{d}}, {{a}}, {{b}};", [a, b], dtype)
    same_bits(actual, by_elements(function, dtype, a, b))


@pytest.mark.parametrize("type", INTEGERS)
def test_upper_half_of_a_product(type: str) -> None:
    dtype = INTEGERS[type]
    a, b, c = (integers(dtype, seed) for seed in (3, 4, 5))
    bits = 8 * dtype.itemsize
    high = run_elementwise(f"mul.hi.{type} {{d}}, {{a}}, {{b}};", [a, b], dtype)
    same_bits(high, by_elements(lambda a, b: a * b >> bits, dtype, a, b))
    added = run_elementwise(f"mad.hi.{type} {{d}}, {{a}}, {{b}}, {{c}};", [a, b, c], dtype)
    same_bits(added, by_elements(lambda a, b, c: (a * b >> bits) + c, dtype, a, b, c))


@pytest.mark.parametrize("type", ["s16", "u16", "s32", "u32"])
def test_product_of_twice_the_width(type: str) -> None:
    dtype = INTEGERS[type]
    wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
    a, b = integers(dtype, 3), integers(dtype, 4)
    c = np.resize(integers(wide, 5), a.size)
    product = run_elementwise(f"mul.wide.{type} {{d}}, {{a}}, {{b}};", [a, b], wide)
    same_bits(product, by_elements(lambda a, b: a * b, wide, a, b))
    added = run_elementwise(f"mad.wide.{type} {{d}}, {{a}}, {{b}}, {{c}};", [a, b, c], wide)
    same_bits(added, by_elements(lambda a, b, c: a * b + c, wide, a, b, c))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_beyond_the_width(bits: int) -> None:
    unsigned, signed = INTEGERS[f"u{bits}"], INTEGERS[f"s{bits}"]
    a = integers(unsigned, 6)
    amounts = np.resize(np.concatenate([np.arange(80), [255, 2**32 - 1]]).astype(np.uint32), a.size)
    left = run_elementwise(f"shl.b{bits} {{d}}, {{a}}, {{b}};", [a, amounts], unsigned)
    same_bits(left, by_elements(lambda a, n: a << n if n < bits else 0, unsigned, a, amounts))
    right = run_elementwise(f"shr.u{bits} {{d}}, {{a}}, {{b}};", [a, amounts], unsigned)
    same_bits(right, by_elements(lambda a, n: a >> n, unsigned, a, amounts))
    arithmetic = run_elementwise(f"shr.s{bits} {{d}}, {{a}}, {{b}};", [a.view(signed), amounts], signed)
    same_bits(arithmetic, by_elements(lambda a, n: a >> n, signed, a.view(signed), amounts))


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_and_reversing_bits(bits: int) -> None:
    dtype = INTEGERS[f"u{bits}"]
    a = integers(dtype, 7)
    ones = run_elementwise(f"popc.b{bits} {{d}}, {{a}};", [a], U32)
    same_bits(ones, by_elements(int.bit_count, U32, a))
    zeros = run_elementwise(f"clz.b{bits} {{d}}, {{a}};", [a], U32)
    same_bits(zeros, by_elements(lambda a: bits - a.bit_length(), U32, a))
    reverse = run_elementwise(f"brev.b{bits} {{d}}, {{a}};", [a], dtype)
    same_bits(reverse, by_elements(lambda a: int(f"{a:0{bits}b}"[::-1], 2), dtype, a))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bit_fields(type: str) -> None:
    dtype = INTEGERS[type]
    width = 8 * dtype.itemsize
    a, b = integers(dtype, 8), integers(dtype, 9)
    generator = np.random.default_rng(10)
    start, length = (generator.integers(0, 70, a.size).astype(np.uint32) for _ in range(2))

    def extract(a: int, start: int, length: int) -> int:
        """The definition of the PTX manual, bit by bit."""
        bits = a % (1 << width)
        top = min(start + length - 1, width - 1)
        sign = bits >> top & 1 if dtype.kind == "i" and length else 0
        of_field = [bits >> start + i & 1 if i < length and start + i < width else sign for i in range(width)]
        return sum(bit << i for i, bit in enumerate(of_field))

    def insert(a: int, b: int, start: int, length: int) -> int:
        for i in range(length):
            if start + i < width:
                b = b & ~(1 << start + i) | (a >> i & 1) << start + i
        return b

    field = run_elementwise(f"bfe.{type} {{d}}, {{a}}, {{b}}, {{c}};", [a, start, length], dtype)
    same_bits(field, by_elements(extract, dtype, a, start, length))
    unsigned = np.dtype(f"u{dtype.itemsize}")
    operands = [a.view(unsigned), b.view(unsigned), start, length]
    inserted = run_elementwise(f"bfi.b{width} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};", operands, unsigned)
    same_bits(inserted, by_elements(insert, unsigned, *operands))


def test_permutation_and_funnel_shifts() -> None:
    a, b, c = (integers(U32, seed) for seed in (11, 12, 13))

    def permute(a: int, b: int, selector: int) -> int:
        both = (b << 32 | a).to_bytes(8, "little")
        result = 0
        for place in range(4):
            choice = selector >> 4 * place & 15
            byte = both[choice & 7]
            result |= (255 * (byte >> 7) if choice & 8 else byte) << 8 * place
        return result

    same_bits(run_elementwise("prmt.b32 {d}, {a}, {b}, {c};", [a, b, c], U32), by_elements(permute, U32, a, b, c))
    for direction, mode in (("l", "wrap"), ("r", "wrap"), ("l", "clamp"), ("r", "clamp")):

        def funnel(a: int, b: int, n: int, direction: str = direction, mode: str = mode) -> int:
            n = n % 32 if mode == "wrap" else min(n, 32)
            both = b << 32 | a
            return both << n >> 32 if direction == "l" else both >> n

        actual = run_elementwise(f"shf.{direction}.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};", [a, b, c], U32)
        same_bits(actual, by_elements(funnel, U32, a, b, c))


def test_logic() -> None:
    a, b, c = (integers(U32, seed) for seed in (14, 15, 16))
    same_bits(run_elementwise("and.b32 {d}, {a}, {b};", [a, b], U32), a & b)
    same_bits(run_elementwise("or.b32 {d}, {a}, {b};", [a, b], U32), a | b)
    same_bits(run_elementwise("xor.b32 {d}, {a}, {b};", [a, b], U32), a ^ b)
    same_bits(run_elementwise("not.b32 {d}, {a};", [a], U32), ~a)
    table = 0xCA  # a chooses between b and c
    same_bits(run_elementwise(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", [a, b, c], U32), a & b | ~a & c)
    p, q = a % 2 == 0, b % 2 == 0
    same_bits(run_elementwise("and.pred {d}, {a}, {b};", [p, q], PREDICATE), p & q)
    same_bits(run_elementwise("not.pred {d}, {a};", [p], PREDICATE), ~p)
    same_bits(run_elementwise("selp.b32 {d}, {a}, {b}, {c};", [a, b, p], U32), np.where(p, a, b))


def test_sign_changes_of_integers() -> None:
    a = integers(S32, 17)
    same_bits(run_elementwise("neg.s32 {d}, {a};", [a], S32), by_elements(lambda a: -a, S32, a))
    same_bits(run_elementwise("abs.s32 {d}, {a};", [a], S32), by_elements(abs, S32, a))


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize(
    ("opcode", "function"), [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)]
)
def test_float_arithmetic(type: str, opcode: str, function: Callable[..., Array]) -> None:
    a, b = floats(FLOATS[type], 20), floats(FLOATS[type], 21)
    with np.errstate(all="ignore"):
        expected = function(a, b)
    same_bits(run_elementwise(f"{opcode}.rn.{type} {{d}}, {{a}}, {{b}};", [a, b], FLOATS[type]), expected)


@pytest.mark.parametrize("type", FLOATS)
def test_square_root_and_reciprocal(type: str) -> None:
    a = floats(FLOATS[type], 22)
    with np.errstate(all="ignore"):
        same_bits(run_elementwise(f"sqrt.rn.{type} {{d}}, {{a}};", [a], FLOATS[type]), np.sqrt(a))
        same_bits(run_elementwise(f"rcp.rn.{type} {{d}}, {{a}};", [a], FLOATS[type]), (1 / a).astype(FLOATS[type]))


def rounded(value: Fraction, dtype: np.dtype[Any]) -> float:
    """To nearest even, with subnormals and overflow."""
    precision, smallest, overflow = (24, -149, 128) if dtype == F32 else (53, -1074, 1024)
    exponent = abs(value).numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, smallest)
    result = abs(round(value / unit) * unit)
    return math.copysign(math.inf if result >= Fraction(2) ** overflow else float(result), 1 if value > 0 else -1)


def exact_fma(a: float, b: float, c: float, dtype: np.dtype[Any]) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else float(np.float64(a) * np.float64(b) + np.float64(c))
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total:
        return rounded(total, dtype)
    product = math.copysign(1, a) * math.copysign(1, b)
    negative = product < 0 and math.copysign(1, c) < 0 and 0 in (a, b, c)
    return -0.0 if negative else 0.0


@pytest.mark.parametrize("type", FLOATS)
def test_fma_rounds_once(type: str) -> None:
    """Random bits, cancelling terms and addends that decide about a tie."""
    dtype = FLOATS[type]
    a, b, c = floats(dtype, 23), floats(dtype, 24), floats(dtype, 25)
    x, y = np.abs(a[: a.size // 2]), b[: a.size // 2]
    with np.errstate(all="ignore"):
        near = (-(x * y)).astype(dtype)
        tiny = (near * dtype.type(2.0 ** -(24 if dtype == F32 else 53))).astype(dtype)
        a, b, c = np.concatenate([a, x, x]), np.concatenate([b, y, y]), np.concatenate([c, near, tiny])
        expected = np.array([exact_fma(*row, dtype) for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)])
        same_bits(
            run_elementwise(f"fma.rn.{type} {{d}}, {{a}}, {{b}}, {{c}};", [a, b, c], dtype), expected.astype(dtype)
        )


def test_f32_fma_at_ties_of_the_f64_sum() -> None:
    """The sum in f64 lies between two f32; only what f64 could not hold says to which side."""
    a, b = np.full(3, 1 + 2.0**-12, F32), np.full(3, 1 + 2.0**-12, F32)  # a * b = 1 + 2^-11 + 2^-24
    c = np.array([2.0**-80, -(2.0**-80), 0.0], F32)
    expected = np.array([1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-11, 1 + 2.0**-11], F32)
    same_bits(run_elementwise("fma.rn.f32 {d}, {a}, {b}, {c};", [a, b, c], F32), expected)


@pytest.mark.parametrize("type", FLOATS)
def test_extremes(type: str) -> None:
    dtype = FLOATS[type]
    a, b = floats(dtype, 26), floats(dtype, 27)
    zeros = np.array([0.0, -0.0, -0.0, 0.0], dtype)
    a, b = np.concatenate([a, zeros]), np.concatenate([b, zeros[::-1]])
    low = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    high = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    either = np.isnan(a) | np.isnan(b)
    number = np.where(np.isnan(a), b, a)
    same_bits(run_elementwise(f"min.{type} {{d}}, {{a}}, {{b}};", [a, b], dtype), np.where(either, number, low))
    same_bits(run_elementwise(f"max.{type} {{d}}, {{a}}, {{b}};", [a, b], dtype), np.where(either, number, high))
    if type == "f32":
        nan = np.full(1, np.nan, dtype)
        same_bits(run_elementwise("min.NaN.f32 {d}, {a}, {b};", [a, b], dtype), np.where(either, nan, low))
        same_bits(run_elementwise("max.NaN.f32 {d}, {a}, {b};", [a, b], dtype), np.where(either, nan, high))


def test_sign_changes_of_floats_keep_the_other_bits() -> None:
    a, b = floats(F32, 28), floats(F32, 29)
    bits, sign = a.view(U32), np.uint32(1 << 31)
    run = run_elementwise
    assert (run("neg.f32 {d}, {a};", [a], F32).view(U32) == bits ^ sign).all()
    assert (run("abs.f32 {d}, {a};", [a], F32).view(U32) == bits & ~sign).all()
    signed = run("copysign.f32 {d}, {a}, {b};", [a, b], F32).view(U32)
    assert (signed == b.view(U32) & ~sign | bits & sign).all()


def test_flush_to_zero_and_saturation() -> None:
    a = np.array([1e-41, -1e-41, 1.0, 2.0, -3.0, np.nan, 0.25], F32)
    b = np.array([0.0, 0.0, 2.0**-127, 1.0, 1.0, 1.0, 0.25], F32)
    same_bits(
        run_elementwise("add.rn.ftz.f32 {d}, {a}, {b};", [a, b], F32), np.array([0.0, 0.0, 1, 3, -2, np.nan, 0.5], F32)
    )
    same_bits(run_elementwise("add.rn.sat.f32 {d}, {a}, {b};", [a, b], F32), np.array([1e-41, 0, 1, 1, 0, 0, 0.5], F32))
    half = np.array([2.0**-126], F32)
    same_bits(run_elementwise("mul.rn.ftz.f32 {d}, {a}, 0f3F000000;", [half], F32), np.zeros(1, F32))
    same_bits(run_elementwise("mul.rn.f32 {d}, {a}, 0f3F000000;", [half], F32), np.array([2.0**-127], F32))


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_small_floats(dtype: np.dtype[Any]) -> None:
    name = dtype.name.replace("float", "f").replace("bf16", "bf16")
    a, b, c = floats(dtype, 30), floats(dtype, 31), floats(dtype, 32)
    with np.errstate(all="ignore"):
        wide = [x.astype(F64) for x in (a, b, c)]
        same_bits(
            run_elementwise(f"add.rn.{name} {{d}}, {{a}}, {{b}};", [a, b], dtype), _narrow(wide[0] + wide[1], dtype)
        )
        same_bits(
            run_elementwise(f"mul.rn.{name} {{d}}, {{a}}, {{b}};", [a, b], dtype), _narrow(wide[0] * wide[1], dtype)
        )


def _narrow(a: Array, dtype: np.dtype[Any]) -> Array:
    """f64 to nearest even; sums and products of small floats are exact in f64, or lie far from every tie."""
    nearest: Array = a.astype(F32).astype(dtype) if dtype == BF16 else a.astype(dtype)
    return nearest


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    compare = COMPARISONS[name]
    for type, dtype in INTEGERS.items():
        a, b = integers(dtype, 40) % 50, integers(dtype, 41) % 50
        actual = run_elementwise(f"setp.{name}.{type} {{d}}, {{a}}, {{b}};", [a, b], PREDICATE)
        assert (actual == compare(a, b)).all(), type
    for type, dtype in FLOATS.items():
        a, b = floats(dtype, 42), floats(dtype, 43)
        b[: b.size // 2] = a[: b.size // 2]
        ordered = ~(np.isnan(a) | np.isnan(b))
        actual = run_elementwise(f"setp.{name}.{type} {{d}}, {{a}}, {{b}};", [a, b], PREDICATE)
        assert (actual == compare(a, b) & ordered).all(), type
        loose = run_elementwise(f"setp.{name}u.{type} {{d}}, {{a}}, {{b}};", [a, b], PREDICATE)
        assert (loose == compare(a, b) | ~ordered).all(), type


def test_comparisons_joined_with_a_predicate() -> None:
    a, b, p = integers(S32, 44), integers(S32, 45), integers(S32, 46) % 2 == 0
    for join, function in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
        actual = run_elementwise(f"setp.lt.{join}.s32 {{d}}, {{a}}, {{b}}, {{c}};", [a, b, p], PREDICATE)
        assert (actual == function(a < b, p)).all()
    negated = run_elementwise("setp.lt.and.s32 {d}, {a}, {b}, !{c};", [a, b, p], PREDICATE)
    assert (negated == (a < b) & ~p).all()
    x, y = floats(F32, 47), floats(F32, 48)
    ordered = ~(np.isnan(x) | np.isnan(y))
    assert (run_elementwise("setp.num.f32 {d}, {a}, {b};", [x, y], PREDICATE) == ordered).all()
    assert (run_elementwise("setp.nan.f32 {d}, {a}, {b};", [x, y], PREDICATE) == ~ordered).all()
    assert (run_elementwise("testp.finite.f32 {d}, {a};", [x], PREDICATE) == np.isfinite(x)).all()
    subnormal = (x != 0) & (np.abs(x) < np.float32(2.0**-126))
    assert (run_elementwise("testp.subnormal.f32 {d}, {a};", [x], PREDICATE) == subnormal).all()


@pytest.mark.parametrize("source", ["s8", "u8", *INTEGERS])
@pytest.mark.parametrize("to", ["s8", "u8", *INTEGERS])
def test_conversions_between_integers(source: str, to: str) -> None:
    """An 8-bit value lies in a register of 16 bits, extended by its sign."""
    types = {**INTEGERS, "s8": S8, "u8": U8}
    a = integers(types[source], 50)
    held = a.astype(S16 if source == "s8" else U16) if a.itemsize == 1 else a
    register = {S8: S16, U8: U16}.get(types[to], types[to])
    plain = run_elementwise(f"cvt.{to}.{source} {{d}}, {{a}};", [held], register)
    same_bits(plain, a.astype(types[to]).astype(register))
    limits = np.iinfo(types[to])
    if limits.min <= np.iinfo(a.dtype).min and limits.max >= np.iinfo(a.dtype).max:
        with pytest.raises(UnsupportedPtxError):  # PTX has .sat only where it can change a value
            run_elementwise(f"cvt.sat.{to}.{source} {{d}}, {{a}};", [held], register)
        return
    clamped = by_elements(lambda x: min(max(x, int(limits.min)), int(limits.max)), types[to], a)
    saturated = run_elementwise(f"cvt.sat.{to}.{source} {{d}}, {{a}};", [held], register)
    same_bits(saturated, clamped.astype(register))


@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("source", FLOATS)
def test_conversions_to_integers_clamp(source: str, rounding: str) -> None:
    functions: dict[str, Callable[[float], int]]
    functions = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    whole = functions[rounding]
    a = floats(FLOATS[source], 51)
    for to, dtype in INTEGERS.items():
        limits = np.iinfo(dtype)
        wide = 8 in (dtype.itemsize, a.itemsize)
        of_nan = 1 << 8 * dtype.itemsize - 1 if wide else 0

        def convert(x: float, limits: Any = limits, of_nan: int = of_nan) -> int:
            if math.isnan(x):
                return of_nan
            if math.isinf(x):
                return int(limits.max if x > 0 else limits.min)
            return min(max(whole(x), int(limits.min)), int(limits.max))

        actual = run_elementwise(f"cvt.{rounding}.{to}.{source} {{d}}, {{a}};", [a], dtype)
        same_bits(actual, by_elements(convert, dtype, a))
    kept = run_elementwise(f"cvt.{rounding}.{source}.{source} {{d}}, {{a}};", [a], FLOATS[source])
    function = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding]
    with np.errstate(invalid="ignore"):
        same_bits(kept, np.copysign(function(a), a))


@pytest.mark.parametrize("source", INTEGERS)
def test_conversions_from_integers(source: str) -> None:
    a = integers(INTEGERS[source], 52)
    for to, dtype in FLOATS.items():
        expected = np.array([rounded(Fraction(x), dtype) if x else 0.0 for x in a.tolist()]).astype(dtype)
        same_bits(run_elementwise(f"cvt.rn.{to}.{source} {{d}}, {{a}};", [a], dtype), expected)


def directed(value: Fraction, dtype: np.dtype[Any], rounding: str) -> float:
    """A finite number rounded to f32 in a direction, by comparing with its neighbours."""
    nearest = np.array([rounded(value, dtype)]).astype(dtype)[0]
    above = Fraction(float(nearest)) > value if np.isfinite(nearest) else nearest > 0
    exact = np.isfinite(nearest) and Fraction(float(nearest)) == value
    down = rounding == "rm" or (rounding == "rz" and value > 0)
    if exact or above != down:
        return float(nearest)
    return float(np.nextafter(nearest, dtype.type(-np.inf if down else np.inf)))


@pytest.mark.parametrize("rounding", ["rz", "rm", "rp"])
def test_directed_rounding_to_f32(rounding: str) -> None:
    a = floats(F64, 53)
    a = np.concatenate([a, floats(F32, 54).astype(F64) * (1 + 2.0**-40), [1e300, -1e300, 1e-320, -1e-320]])
    with np.errstate(all="ignore"):
        plain = a.astype(F32)
        expected = [
            directed(Fraction(x), F32, rounding) if math.isfinite(x) and x else float(y)
            for x, y in zip(a.tolist(), plain, strict=True)
        ]
        same_bits(run_elementwise(f"cvt.{rounding}.f32.f64 {{d}}, {{a}};", [a], F32), np.array(expected).astype(F32))


def test_conversions_of_small_floats() -> None:
    a, wide = floats(F32, 55), floats(F64, 56)
    with np.errstate(all="ignore"):
        same_bits(run_elementwise("cvt.rn.f16.f32 {d}, {a};", [a], F16), a.astype(F16))
        same_bits(run_elementwise("cvt.rn.bf16.f32 {d}, {a};", [a], BF16), a.astype(BF16))
        same_bits(run_elementwise("cvt.rn.f32.f64 {d}, {a};", [wide], F32), wide.astype(F32))
        same_bits(run_elementwise("cvt.rn.f16.f64 {d}, {a};", [wide], F16), wide.astype(F16))
        b = floats(F32, 57)
        packed = run_elementwise("cvt.rn.bf16x2.f32 {d}, {a}, {b};", [a, b], U32)
        same_bits((packed >> 16).astype(U16).view(BF16), a.astype(BF16))
        same_bits(packed.astype(U16).view(BF16), b.astype(BF16))
    for name, dtype in {"f16": F16, "bf16": BF16}.items():
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
        same_bits(run_elementwise(f"cvt.f32.{name} {{d}}, {{a}};", [every], F32), every.astype(F32))


def test_f64_to_bf16_rounds_once() -> None:
    """Just above a tie of bf16, so near that f32 rounds it to the tie."""
    a = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    expected = np.array([1 + 2.0**-7, 1.0, 1.0]).astype(BF16)
    same_bits(run_elementwise("cvt.rn.bf16.f64 {d}, {a};", [a], BF16), expected)


def test_moves_pack_and_unpack() -> None:
    a, b = integers(U32, 58), integers(U32, 59)
    both = run_elementwise("mov.b64 {d}, {{{a}, {b}}};", [a, b], U64)
    same_bits(both, a.astype(U64) | b.astype(U64) << np.uint64(32))
    high = run_elementwise("mov.b64 {{_, {d}}}, {a};", [both], U32)
    same_bits(high, b)
    half = run_elementwise("mov.b32 {{{d}, %rs5}}, {a};", [a], U16)
    same_bits(half, a.astype(U16))
