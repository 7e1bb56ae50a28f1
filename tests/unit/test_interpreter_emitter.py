"""The numpy emitter: each method of the protocol, and the elementary functions through it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from halfulp.compiler.codegen.math.emitter import ElementType, Emitter
from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.interpreter.numpy_emitter import NumpyEmitter

Array = np.ndarray[Any, np.dtype[Any]]

e: Emitter[Any] = NumpyEmitter()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def f64(*values: float) -> Array:
    return np.array(values, np.float64)


def i32(*values: int) -> Array:
    return np.array(values, np.int64).astype(np.int32)


RESULTS: dict[str, tuple[Callable[[], Any], Array]] = {
    "constant": (lambda: e.constant(1.5, f32(0, 0)), f32(1.5, 1.5)),
    "add": (lambda: e.add(f32(1, -0.0), f32(2**-24, -0.0)), f32(1, -0.0)),
    "sub": (lambda: e.sub(f64(1), f64(2.0**-53)), f64(1 - 2.0**-53)),
    "mul": (lambda: e.mul(f32(1 + 2**-23), f32(1 + 2**-23)), f32(1 + 2**-22)),
    "div": (lambda: e.div(f32(1, -1), f32(3, 0)), f32(float(np.float32(1) / np.float32(3)), -math.inf)),
    "fma": (lambda: e.fma(f32(1 + 2**-23), f32(1 + 2**-23), f32(-(1 + 2**-22))), f32(2**-46)),
    "sqrt": (lambda: e.sqrt(f64(2, -0.0, -1)), f64(math.sqrt(2), -0.0, math.nan)),
    "neg": (lambda: e.neg(f32(0, -2)), f32(-0.0, 2)),
    "abs": (lambda: e.abs(f64(-0.0, -2)), f64(0, 2)),
    "copysign": (lambda: e.copysign(f32(1, -1), f32(-0.0, 5)), f32(-1, 1)),
    "iadd": (lambda: e.iadd(i32(2**31 - 1), i32(1)), i32(-(2**31))),
    "isub": (lambda: e.isub(i32(-(2**31)), i32(1)), i32(2**31 - 1)),
    "iand": (lambda: e.iand(i32(6), i32(3)), i32(2)),
    "ior": (lambda: e.ior(np.array([True, False]), np.array([False, False])), np.array([True, False])),
    "ixor": (lambda: e.ixor(np.array([True, True]), np.array([True, False])), np.array([False, True])),
    "shl": (lambda: e.shl(i32(3), 31), i32(-(2**31))),
    "lshr": (lambda: e.lshr(i32(-1), 31), i32(1)),
    "ashr": (lambda: e.ashr(i32(-8), 2), i32(-2)),
    "compare": (lambda: e.compare("ult", f32(1, math.nan), f32(0, 0)), np.array([False, True])),
    "select": (lambda: e.select(np.array([True, False]), f32(1, 2), f32(3, 4)), f32(1, 4)),
    "bitcast": (lambda: e.bitcast(f32(-0.0), "i32"), i32(-(2**31))),
    "cast": (lambda: e.cast(f64(1 + 2.0**-24 + 2.0**-40), "f32"), f32(1 + 2**-23)),
}


@pytest.mark.parametrize("method", RESULTS)
def test_method(method: str) -> None:
    compute, expected = RESULTS[method]
    got = np.asarray(compute())
    assert got.dtype == expected.dtype
    assert np.array_equal(got, expected, equal_nan=got.dtype.kind == "f")
    if got.dtype.kind == "f":
        number = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def test_every_method_of_the_protocol_is_tested() -> None:
    methods = {name for name in vars(Emitter) if not name.startswith("_")}
    assert methods - {"scale"} == set(RESULTS)
    assert e.scale(f32(1), f32(3)) is None


def test_constants_of_other_types_wrap() -> None:
    like = f32(0, 0)
    assert e.constant(0xFFFFFFFF, like, "i32").tolist() == [-1, -1]
    assert e.constant(0x8000000000000000, like, "i64").tolist() == [-(2**63)] * 2
    assert e.constant(1, like, "i1").tolist() == [True, True]
    assert e.constant(0.1, like, "f64").dtype == np.float64


def test_unsigned_predicates_of_integers_are_not_those_of_floats() -> None:
    assert e.compare("ult", i32(1), i32(-1)).tolist() == [True]
    assert e.compare("slt", i32(1), i32(-1)).tolist() == [False]


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
UNARY = [(name, element) for name, formats in EXPANSIONS.items() for element, x in formats.items() if x.arity == 1]


@pytest.mark.parametrize(("name", "element"), UNARY)
def test_expansion_of_blocks_and_scalars(name: str, element: ElementType) -> None:
    """Coarse, against libm in f64: a wrong instruction of the emitter shows; the bound in ulp is tested elsewhere."""
    dtype: np.dtype[Any] = np.dtype({"f32": "float32", "f64": "float64"}[element])
    x = np.concatenate([np.linspace(0.05, 0.95, 61), [1.0, 2.5, 30.0]]).astype(dtype)
    expand = EXPANSIONS[name][element].expand
    got = expand(NumpyEmitter(), x)
    assert got.dtype == dtype
    reference = REFERENCES.get(name) or getattr(np, name)
    np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=4 * float(np.finfo(dtype).eps))
    for scalar in (x[3], np.array(x[3])):
        assert expand(NumpyEmitter(), scalar) == got[3]
