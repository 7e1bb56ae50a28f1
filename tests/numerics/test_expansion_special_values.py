"""Special values of the elementary functions: IEEE 754-2019 section 9.2 and C23 annex F."""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from halfulp.compiler.codegen.math.emitter import ElementType
from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.interpreter.numpy_emitter import NumpyEmitter

Floats = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[ElementType, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
BITS: dict[ElementType, np.dtype[Any]] = {"f32": np.dtype(np.uint32), "f64": np.dtype(np.uint64)}
TYPES: list[ElementType] = ["f32", "f64"]
UNARY = [(name, type) for name, formats in EXPANSIONS.items() for type, x in formats.items() if x.arity == 1]

VALUES: dict[str, list[tuple[float, float]]] = {
    "exp": [(inf, inf), (-inf, 0.0), (0.0, 1.0), (-0.0, 1.0), (1e30, inf), (-1e30, 0.0)],
    "exp2": [
        (inf, inf),
        (-inf, 0.0),
        (0.0, 1.0),
        (-0.0, 1.0),
        (1e30, inf),
        (-1e30, 0.0),
        (10.0, 1024.0),
        (-3.0, 0.125),
    ],
    "expm1": [(inf, inf), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e30, inf), (-1e30, -1.0), (-50.0, -1.0)],
    "log": [(inf, inf), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (-1.0, nan), (-inf, nan), (-1e-30, nan)],
    "log2": [
        (inf, inf),
        (0.0, -inf),
        (-0.0, -inf),
        (1.0, 0.0),
        (-1.0, nan),
        (-inf, nan),
        (-1e-30, nan),
        (1024.0, 10.0),
    ],
    "log1p": [(inf, inf), (0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (-1.5, nan), (-inf, nan), (-1e30, nan)],
    "sin": [(inf, nan), (-inf, nan), (0.0, 0.0), (-0.0, -0.0)],
    "cos": [(inf, nan), (-inf, nan), (0.0, 1.0), (-0.0, 1.0)],
    "tanh": [(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (30.0, 1.0), (-30.0, -1.0)],
    "erf": [(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (30.0, 1.0), (-30.0, -1.0)],
    "rsqrt": [
        (inf, 0.0),
        (0.0, inf),
        (-0.0, -inf),
        (1.0, 1.0),
        (0.25, 2.0),
        (-1.0, nan),
        (-inf, nan),
        (-1e30, nan),
        (-1e-30, nan),
    ],
}
"""Argument and result. (No dict: 0.0 and -0.0 are the same key.)"""

POW: list[tuple[float, float, float]] = [
    # y = 0 and x = 1
    (nan, 0.0, 1.0), (nan, -0.0, 1.0), (inf, 0.0, 1.0), (0.0, -0.0, 1.0), (-2.0, 0.0, 1.0),
    (1.0, nan, 1.0), (1.0, inf, 1.0), (1.0, -inf, 1.0), (1.0, -7.5, 1.0),
    # other NaN
    (nan, 1.0, nan), (2.0, nan, nan), (-1.0, nan, nan), (0.0, nan, nan), (inf, nan, nan), (nan, nan, nan),
    # x = 0
    (0.0, -3.0, inf), (-0.0, -3.0, -inf), (0.0, -2.0, inf), (-0.0, -2.0, inf), (-0.0, -2.5, inf),
    (0.0, -inf, inf), (-0.0, -inf, inf), (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 2.5, 0.0),
    (0.0, inf, 0.0), (-0.0, inf, 0.0),
    # infinite y
    (-1.0, inf, 1.0), (-1.0, -inf, 1.0), (0.5, -inf, inf), (-0.5, -inf, inf), (2.0, -inf, 0.0), (-2.0, -inf, 0.0),
    (0.5, inf, 0.0), (-0.5, inf, 0.0), (2.0, inf, inf), (-2.0, inf, inf),
    # infinite x
    (-inf, -3.0, -0.0), (-inf, -2.0, 0.0), (-inf, -2.5, 0.0), (-inf, 3.0, -inf), (-inf, 2.0, inf), (-inf, 2.5, inf),
    (inf, -0.5, 0.0), (inf, 0.5, inf), (inf, inf, inf), (-inf, inf, inf), (inf, -inf, 0.0), (-inf, -inf, 0.0),
    # negative x
    (-2.0, 0.5, nan), (-2.0, -1.5, nan), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, -1.0, -0.5),
    (-1.0, 16777215.0, -1.0), (-1.0, 16777216.0, 1.0), (-1.0, 1e30, 1.0), (-3.0, 1e30, inf), (-3.0, -1e30, 0.0),
    # exact, and out of range
    (2.0, 10.0, 1024.0), (3.0, 2.0, 9.0), (4.0, 0.5, 2.0), (2.0, 2000.0, inf), (2.0, -2000.0, 0.0),
    (-2.0, 2001.0, -inf), (-2.0, -2001.0, -0.0),
]  # fmt: skip
"""x, y and x^y."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def assert_same(got: Floats, expected: Floats, arguments: list[Any]) -> None:
    """The same values and signs of zero; any NaN for a NaN."""
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), [(x, g, w) for x, g, w, ok in zip(arguments, got, expected, same, strict=True) if not ok]


def test_every_function_is_covered() -> None:
    assert set(VALUES) | {"pow"} == set(EXPANSIONS)


@pytest.mark.parametrize(("name", "type"), UNARY)
def test_special_values(name: str, type: ElementType) -> None:
    x, expected = np.array([*VALUES[name], (nan, nan)], DTYPES[type]).T
    got = EXPANSIONS[name][type].expand(NumpyEmitter(), np.ascontiguousarray(x))
    assert_same(got, expected, x.tolist())


@pytest.mark.parametrize("type", TYPES)
def test_special_values_of_pow(type: ElementType) -> None:
    x, y, expected = (np.ascontiguousarray(column) for column in np.array(POW, DTYPES[type]).T)
    got = EXPANSIONS["pow"][type].expand(NumpyEmitter(), x, y)
    assert_same(got, expected, list(zip(x.tolist(), y.tolist(), strict=True)))


@pytest.mark.parametrize("exponent", [51, 52, 53])
def test_the_sign_of_pow_with_large_odd_exponents(exponent: int) -> None:
    """The last doubles that may have a fraction, the last that may be odd, and the first that are all even."""
    y = np.array([2.0**exponent + step for step in (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)])
    expected = [nan if v % 1 else -1.0 if v % 2 else 1.0 for v in y.tolist()]
    got = EXPANSIONS["pow"]["f64"].expand(NumpyEmitter(), np.full(len(y), -1.0), y)
    assert_same(got, np.array(expected), y.tolist())


@pytest.mark.parametrize(("name", "type"), UNARY)
def test_every_nan_gives_nan(name: str, type: ElementType) -> None:
    """Payloads must not leak into the exponent by integer arithmetic; signalling and negative ones included."""
    width = 8 * DTYPES[type].itemsize
    quiet = int(np.array(nan, DTYPES[type]).view(BITS[type])) & ((1 << (width - 1)) - 1)
    infinity = int(np.array(inf, DTYPES[type]).view(BITS[type]))
    payloads = [quiet, quiet + 1, 2 * quiet - infinity - 1, infinity + 1, infinity + 0x1FF, infinity + 0x155]
    bits = np.array([p | sign << (width - 1) for p in payloads for sign in (0, 1)], BITS[type])
    x = bits.view(DTYPES[type])
    assert np.isnan(x).all()
    assert np.isnan(EXPANSIONS[name][type].expand(NumpyEmitter(), x)).all()


@pytest.mark.parametrize("name", ["expm1", "log1p", "sin", "tanh"])
@pytest.mark.parametrize("type", TYPES)
def test_subnormals_are_their_own_value(name: str, type: ElementType) -> None:
    smallest = float(np.finfo(DTYPES[type]).smallest_subnormal)
    x = np.array([s * n * smallest for n in (1, 2, 3, 5, 1000001) for s in (1, -1)], DTYPES[type])
    assert np.array_equal(EXPANSIONS[name][type].expand(NumpyEmitter(), x), x)


@pytest.mark.parametrize("type", TYPES)
def test_exp_underflows_gradually(type: ElementType) -> None:
    info = np.finfo(DTYPES[type])
    x = np.arange(info.minexp - info.nmant - 2, info.minexp + 2).astype(DTYPES[type])
    expected = [math.ldexp(1.0, int(v)) if v >= info.minexp - info.nmant else 0.0 for v in x]
    got = EXPANSIONS["exp2"][type].expand(NumpyEmitter(), x)
    assert got.tolist() == expected
