"""The interpreter's float arithmetic against exact rationals, rounded here by a second, scalar implementation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from halfulp.compiler.interpreter import exact
from halfulp.compiler.interpreter.exact_integers import fma_through_integers, round_integer

Array = np.ndarray[Any, np.dtype[Any]]

# bits of precision, exponent of the smallest unit, exponent of the first power of two that overflows
FORMATS = {
    np.dtype(np.float16): (11, -24, 16),
    np.dtype(bfloat16): (8, -133, 128),
    np.dtype(np.float32): (24, -149, 128),
    np.dtype(np.float64): (53, -1074, 1024),
}
ALL = pytest.mark.parametrize("dtype", FORMATS, ids=str)
NARROW = pytest.mark.parametrize("dtype", list(FORMATS)[:2], ids=str)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def rounded(value: Fraction, dtype: np.dtype[Any]) -> float:
    """``value`` to nearest even in the format of ``dtype``."""
    precision, smallest, overflow = FORMATS[dtype]
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, smallest)
    result = round(magnitude / unit) * unit  # Fraction rounds halves to even
    number = math.inf if result >= Fraction(2) ** overflow else float(result)
    return -number if value < 0 else number


def same(actual: Any, expected: float) -> bool:
    """Equal as floats, signs of zeros included, all NaNs equal."""
    number = float(actual)
    if math.isnan(expected):
        return math.isnan(number)
    return number == expected and math.copysign(1, number) == math.copysign(1, expected)


def fma_reference(a: float, b: float, c: float, dtype: np.dtype[Any]) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    if not math.isfinite(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        product_sign = math.copysign(1, a) * math.copysign(1, b)
        return -0.0 if (a == 0 or b == 0) and c == 0 and product_sign < 0 and math.copysign(1, c) < 0 else 0.0
    return rounded(total, dtype)


def of_bits(bits: list[int], dtype: np.dtype[Any]) -> Array:
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)


def bit_patterns(dtype: np.dtype[Any]) -> st.SearchStrategy[int]:
    """Any pattern; and patterns of few bits set or clear next to the borders, which rounding is about."""
    width = 8 * dtype.itemsize
    top = (1 << width) - 1
    near_powers = st.builds(
        lambda shift, step, sign: ((1 << shift) + step & top >> 1) | sign << width - 1,
        st.integers(0, width - 1),
        st.integers(-3, 3),
        st.integers(0, 1),
    )
    return st.integers(0, top) | near_powers


@ALL
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_fma_rounds_once(dtype: np.dtype[Any], data: st.DataObject) -> None:
    patterns = data.draw(st.lists(bit_patterns(dtype), min_size=3, max_size=3))
    a, b, c = of_bits(patterns, dtype)
    expected = fma_reference(float(a), float(b), float(c), dtype)
    assert same(exact.fma(np.array([a]), np.array([b]), np.array([c]))[0], expected)
    assert same(exact.fma(a, b, c), expected), "a scalar"


@ALL
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_fma_of_cancelling_terms(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """The addend lies within a few units of the product, or many binades below it, next to a tie."""
    precision, smallest, overflow = FORMATS[dtype]
    mantissas = st.integers(2 ** (precision - 1), 2**precision - 1)
    scale = data.draw(st.integers((smallest + overflow) // 4, overflow // 4))
    a = math.ldexp(data.draw(mantissas), scale - precision)
    b = math.ldexp(data.draw(mantissas), data.draw(st.integers(-8, 8)) - precision)
    nearby = rounded(-Fraction(a) * Fraction(b), dtype)
    units = data.draw(st.integers(-3, 3))
    c = data.draw(
        st.sampled_from(
            [nearby * (1 + units * 2.0**-precision), math.ldexp(nearby, -precision), math.ldexp(nearby, precision)]
        )
    )
    a_, b_, c_ = (np.array(x, np.float64).astype(dtype) for x in (a, b, c))
    assert same(exact.fma(a_, b_, c_), fma_reference(float(a_), float(b_), float(c_), dtype))


@settings(max_examples=300, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-2200, 2200),
)
@example(1.0 + 2.0**-52, 1.0 - 2.0**-53, -1074)
def test_fma_f64_at_the_ends_of_the_range(a: float, b: float, exponent: int) -> None:
    c = math.ldexp(1.5, max(min(exponent, 1023), -1074))
    for addend in (c, -c):
        got = exact.fma(np.array([a, 0.5]), np.array([b, 2.0]), np.array([addend, 1.0]))
        assert same(got[0], fma_reference(a, b, addend, np.dtype(np.float64)))
        assert got[1] == 2.0


@ALL
def test_fma_special_values(dtype: np.dtype[Any]) -> None:
    largest = float(np.nextafter(of_bits([0], dtype).dtype.type(np.inf), dtype.type(0)))
    smallest = math.ldexp(1.0, FORMATS[dtype][1])
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, largest, -largest, smallest, -smallest, 0.5]
    a, b, c = (x.ravel().astype(dtype) for x in np.meshgrid(values, values, values))
    got = exact.fma(a, b, c)
    assert got.dtype == dtype
    wrong = [
        (x, y, z, g)
        for x, y, z, g in zip(a, b, c, got, strict=True)
        if not same(g, fma_reference(float(x), float(y), float(z), dtype))
    ]
    assert not wrong


def test_fma_f32_differs_from_two_roundings_and_from_f64() -> None:
    # 1 + 2^-23 squared is 1 + 2^-22 + 2^-46; the last term is lost by a rounded product
    a, c = np.array(1 + 2**-23, np.float32), np.array(-(1 + 2**-22), np.float32)
    assert exact.fma(a, a, c) == np.float32(2**-46)
    assert exact.add(exact.multiply(a, a), c) == 0
    # one rounding to f64 first gives a tie that goes the wrong way
    b, d = np.array(1 + 2**-12, np.float32), np.array(2**-60, np.float32)
    through_f64 = np.float32(np.float64(b) * np.float64(b) + np.float64(d))
    assert exact.fma(b, b, d) == np.float32(1 + 2**-11 + 2**-23) != through_f64


def test_fma_f16_differs_from_the_way_through_f32() -> None:
    generator = np.random.default_rng(1)
    a, b, c = generator.integers(0, 2**16, (3, 200_000)).astype(np.uint16).view(np.float16)
    got = exact.fma(a, b, c)
    through_f32 = (a.astype(np.float32) * b.astype(np.float32) + c.astype(np.float32)).astype(np.float16)
    differ = np.nonzero((got != through_f32) & ~np.isnan(got))[0]
    assert len(differ) > 0
    for i in differ:
        assert same(got[i], fma_reference(float(a[i]), float(b[i]), float(c[i]), np.dtype(np.float16)))


BASIC: dict[str, tuple[Callable[[Array, Array], Array], Callable[[Fraction, Fraction], Fraction]]] = {
    "add": (exact.add, lambda a, b: a + b),
    "subtract": (exact.subtract, lambda a, b: a - b),
    "multiply": (exact.multiply, lambda a, b: a * b),
    "divide": (exact.divide, lambda a, b: a / b),
}


@ALL
@pytest.mark.parametrize("name", BASIC)
def test_basic_operations_are_correctly_rounded(name: str, dtype: np.dtype[Any]) -> None:
    operation, rational = BASIC[name]
    generator = np.random.default_rng(2)
    bits = generator.integers(0, 2 ** (8 * dtype.itemsize) - 1, (2, 3000), np.uint64, endpoint=True)
    # pairs of any size, and pairs of exponents so near that sums cancel and quotients lie around 1
    near = bits[0] ^ (bits[1] & np.uint64(2 ** (FORMATS[dtype][0] + 1) - 1))
    a, b = (np.concatenate(x).astype(f"u{dtype.itemsize}").view(dtype) for x in ((bits[0], bits[0]), (bits[1], near)))
    got = operation(a, b)
    assert got.dtype == dtype
    checked = 0
    for x, y, g in zip(a.astype(float), b.astype(float), got, strict=True):
        if math.isfinite(x) and math.isfinite(y) and y != 0:
            value = rational(Fraction(x), Fraction(y))
            if value != 0:
                checked += 1
                assert same(g, rounded(value, dtype)), (x, y)
    assert checked > 4000


@NARROW
@pytest.mark.parametrize("name", BASIC)
def test_narrow_operations_equal_one_rounding_of_f64(name: str, dtype: np.dtype[Any]) -> None:
    """Millions of pairs, subnormals and special values among them; f64 has far more than twice the bits."""
    operation = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}[name]
    a, b = np.random.default_rng(3).integers(0, 2**16, (2, 500_000)).astype(np.uint16).view(dtype)
    expected = exact.narrow(operation(a.astype(np.float64), b.astype(np.float64)), dtype)
    got = BASIC[name][0](a, b)
    nan = np.isnan(expected)
    assert (np.isnan(got) == nan).all()
    assert (exact.as_bits(got)[~nan] == exact.as_bits(expected)[~nan]).all()


@NARROW
def test_narrow_square_root_of_every_value(dtype: np.dtype[Any]) -> None:
    a = np.arange(2**16).astype(np.uint16).view(dtype)
    expected = exact.narrow(np.sqrt(a.astype(np.float64)), dtype)
    got = exact.square_root(a)
    assert (np.isnan(got) == ~(a >= 0)).all()
    number = ~np.isnan(got)
    assert (exact.as_bits(got)[number] == exact.as_bits(expected)[number]).all()


@NARROW
def test_narrowing_rounds_once_around_every_tie(dtype: np.dtype[Any]) -> None:
    finite = np.arange(int(of_bits([0], dtype).dtype.type(np.inf).view(np.uint16))).astype(np.uint16)
    values = finite.view(dtype).astype(np.float64)
    ties = (values[:-1] + values[1:]) / 2
    even = np.where(finite[:-1] % 2 == 0, values[:-1], values[1:])
    for sign in (1.0, -1.0):
        assert (exact.narrow(sign * ties, dtype).astype(np.float64) == sign * even).all()
        assert (exact.narrow(sign * np.nextafter(ties, np.inf), dtype).astype(np.float64) == sign * values[1:]).all()
        assert (exact.narrow(sign * np.nextafter(ties, 0), dtype).astype(np.float64) == sign * values[:-1]).all()


def test_f32_to_bf16_is_the_integer_rounding() -> None:
    bits = np.random.default_rng(4).integers(0, 2**32, 1_000_000, np.uint32)
    values = bits.view(np.float32)
    expected = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    got = exact.narrow(values, np.dtype(bfloat16))
    nan = np.isnan(values)
    assert (got.view(np.uint16)[~nan] == expected[~nan]).all()
    assert np.isnan(got[nan]).all()


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_narrow_to_odd_takes_the_odd_neighbour(offset: float, near: float) -> None:
    for x in (np.float64(offset), np.float64(near) * (1 + 2.0**-40), np.float64(near)):
        odd = exact.narrow_to_odd(np.array(x))
        down = np.nextafter(np.float32(x), np.float32(-np.inf))
        up = np.nextafter(np.float32(x), np.float32(np.inf))
        if np.float64(odd) == x:
            continue
        assert int(exact.as_bits(odd)) & 1 == 1
        assert np.float64(down) <= np.float64(odd) <= np.float64(up)


@ALL
def test_maximum_and_minimum_order_zeros_and_propagate_nan(dtype: np.dtype[Any]) -> None:
    def of(operation: Callable[[Array, Array], Array], a: float, b: float) -> float:
        return float(operation(np.array(a).astype(dtype), np.array(b).astype(dtype)))

    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        assert math.copysign(1, of(exact.maximum, a, b)) == 1
        assert math.copysign(1, of(exact.minimum, a, b)) == -1
        for operation in (exact.maximum_number, exact.minimum_number):
            assert math.copysign(1, of(operation, a, b)) == math.copysign(1, b)
    assert math.copysign(1, of(exact.maximum, -0.0, -0.0)) == -1
    assert math.copysign(1, of(exact.minimum, 0.0, 0.0)) == 1
    assert (of(exact.maximum, 1, -2), of(exact.minimum, 1, -2), of(exact.maximum, -2, 1)) == (1, -2, 1)
    assert of(exact.maximum, -math.inf, 5) == of(exact.minimum, 5, math.inf) == 5
    for operation in (exact.maximum, exact.minimum):
        assert math.isnan(of(operation, math.nan, 1))
        assert math.isnan(of(operation, 1, math.nan))
    for operation in (exact.maximum_number, exact.minimum_number):
        assert of(operation, math.nan, 1) == of(operation, 1, math.nan) == 1
        assert math.isnan(of(operation, math.nan, math.nan))


@ALL
def test_sign_operations_change_the_sign_bit_only(dtype: np.dtype[Any]) -> None:
    top = 1 << 8 * dtype.itemsize - 1
    patterns = [0, top, 1, top + 1, int(np.array(np.nan, dtype).view(f"u{dtype.itemsize}")), 12345]
    a = of_bits(patterns, dtype)

    def bits(x: Array) -> list[int]:
        return [int(n) for n in x.view(f"u{dtype.itemsize}")]

    assert bits(exact.negate(a)) == [n ^ top for n in patterns]
    assert bits(exact.absolute(a)) == [n & ~top for n in patterns]
    assert bits(exact.copy_sign(a, np.full(a.shape, -1.0).astype(dtype))) == [n | top for n in patterns]
    assert bits(exact.copy_sign(a, np.full(a.shape, 0.0).astype(dtype))) == [n & ~top for n in patterns]


@ALL
def test_rounding_to_integers(dtype: np.dtype[Any]) -> None:
    below_half = float(np.nextafter(dtype.type(0.5), dtype.type(0)))
    values = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        below_half,
        -below_half,
        -0.25,
        100.0,
        math.inf,
        -math.inf,
        math.nan,
    ]
    expected = {
        exact.round_half_away: [0.0, -0.0, 1, -1, 2, 3, -3, 0.0, -0.0, -0.0, 100],
        exact.rounded_by(np.rint): [0.0, -0.0, 0.0, -0.0, 2, 2, -2, 0.0, -0.0, -0.0, 100],
        exact.rounded_by(np.floor): [0.0, -0.0, 0.0, -1, 1, 2, -3, 0.0, -1, -1, 100],
        exact.rounded_by(np.ceil): [0.0, -0.0, 1, -0.0, 2, 3, -2, 1, -0.0, -0.0, 100],
        exact.rounded_by(np.trunc): [0.0, -0.0, 0.0, -0.0, 1, 2, -2, 0.0, -0.0, -0.0, 100],
    }
    a = np.array(values).astype(dtype)
    for operation, numbers in expected.items():
        got = operation(a)
        assert got.dtype == dtype
        assert all(same(g, w) for g, w in zip(got, [*numbers, math.inf, -math.inf, math.nan], strict=True)), got


@given(st.integers(-(2**140), 2**140), st.integers(-1200, 1000))
def test_round_integer_is_the_nearest_double(n: int, exponent: int) -> None:
    expected = rounded(Fraction(n) * Fraction(2) ** exponent, np.dtype(np.float64))
    assert same(round_integer(n, exponent), expected)


@given(*[st.floats(allow_nan=False, allow_infinity=False).filter(bool)] * 3)
def test_fma_through_integers(a: float, b: float, c: float) -> None:
    assert same(fma_through_integers(a, b, c), fma_reference(a, b, c, np.dtype(np.float64)))
