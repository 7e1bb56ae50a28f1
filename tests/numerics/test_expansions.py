"""The elementary functions against mpmath, through the numpy emitter: its operations are exact or rounded once."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

from halfulp.compiler.codegen.math.emitter import ElementType
from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.codegen.math.two_over_pi import two_over_pi
from halfulp.compiler.interpreter.numpy_emitter import NumpyEmitter

Floats = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[ElementType, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
FRACTION_BITS: dict[ElementType, int] = {"f32": 23, "f64": 52}
CASES = [(name, type) for name, formats in EXPANSIONS.items() for type in formats]
MP: dict[str, Callable[..., Any]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "erf": mpmath.erf,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "pow": mpmath.power,
}
"""Where the result is finite and not zero."""

INTERVALS: dict[str, tuple[float, float]] = {
    "exp": (-740.0, 709.0),
    "exp2": (-1074.0, 1023.0),
    "expm1": (-40.0, 709.0),
    "log": (0.4, 3.0),
    "log2": (0.4, 3.0),
    "log1p": (-0.99, 3.0),
    "sin": (-100.0, 100.0),
    "cos": (-100.0, 100.0),
    "tanh": (-21.0, 21.0),
    "erf": (-6.0, 6.0),
    "rsqrt": (0.2, 5.0),
}
"""Where f64 varies; f32 where it is not further scaled by ``EXPONENTIAL_F32``."""
EXPONENTIAL_F32 = {"exp": 0.125, "exp2": 0.125, "expm1": 0.125, "tanh": 0.5, "erf": 0.7}
POSITIVE = ("log", "log2", "rsqrt")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), mpmath.workprec(200):
        yield


def expand(name: str, type: ElementType, *arguments: Floats) -> Floats:
    return np.asarray(EXPANSIONS[name][type].expand(NumpyEmitter(), *arguments))


def ulp_error(computed: float, exact: Any, type: ElementType) -> float:
    """|computed - exact| / ulp(exact), with the spacing of subnormals below the smallest normal number."""
    smallest = {"f32": -126, "f64": -1022}[type]
    exponent = max(mpmath.frexp(exact)[1] - 1, smallest) - FRACTION_BITS[type]
    return float(abs(mpmath.mpf(computed) - exact) / mpmath.ldexp(1, exponent))


def worst(name: str, type: ElementType, *arguments: Floats) -> tuple[float, tuple[float, ...]]:
    """The largest error in ulp over the elements, and where; results that are exactly 0 or infinite must be so."""
    dtype = DTYPES[type]
    arguments = tuple(np.asarray(a, dtype) for a in arguments)
    computed = expand(name, type, *arguments)
    largest: tuple[float, tuple[float, ...]] = (0.0, ())
    for y, *xs in zip(computed.tolist(), *(a.tolist() for a in arguments), strict=True):
        exact = MP[name](*(mpmath.mpf(x) for x in xs))
        if not math.isfinite(y):
            overflow = mpmath.mpf(float(np.finfo(dtype).max)) * (1 + mpmath.ldexp(1, -FRACTION_BITS[type] - 2))
            error = 0.0 if abs(exact) > overflow else math.inf
        else:
            error = ulp_error(y, exact, type)
        largest = max(largest, (error, tuple(xs)))
    return largest


def random_inputs(name: str, type: ElementType, count: int) -> tuple[Floats, ...]:
    generator = np.random.default_rng(zlib.crc32(f"{name} {type}".encode()))
    if name == "pow":
        exponents = 149.0 if type == "f32" else 1074.0
        x = np.exp2(generator.uniform(-0.9 * exponents, 0.8 * exponents, count))
        x[::2] = 1 + generator.uniform(-0.5, 1.0, len(x[::2])) * np.exp2(-generator.exponential(4.0, len(x[::2])))
        x = x.astype(DTYPES[type])
        y = generator.uniform(-exponents, 0.85 * exponents, count) / np.log2(x.astype(np.float64))
        return x, y.astype(DTYPES[type])
    scale = EXPONENTIAL_F32.get(name, 1.0) if type == "f32" else 1.0
    low, high = (scale * end for end in INTERVALS[name])
    x = generator.uniform(low, high, count)
    x[::3] *= np.exp2(-generator.exponential(6.0, len(x[::3])))
    return (x.astype(DTYPES[type]),)


def closest_to_multiples_of_half_pi(type: ElementType) -> Floats:
    """For exponents all over the range, the number with that exponent that comes closest to a multiple of pi/2.

    They are m * 2^e with m the largest denominator below 2^p of a convergent of 2^e * 2/pi.
    """
    bits, last = FRACTION_BITS[type] + 1, {"f32": 104, "f64": 971}[type]
    found = []
    with mpmath.workprec(1300):
        for exponent in range(-bits + 1, last + 1, max(1, last // 60)):
            rest = mpmath.ldexp(2 / mpmath.pi, exponent)
            previous, denominator = 0, 1
            rest -= mpmath.floor(rest)
            while True:
                rest = 1 / rest
                quotient = int(mpmath.floor(rest))
                if quotient * denominator + previous >= 1 << bits:
                    break
                previous, denominator = denominator, quotient * denominator + previous
                rest -= quotient
            found.append(math.ldexp(denominator, exponent))
    return np.array(found, DTYPES[type])


def around(points: list[float], type: ElementType, neighbours: int = 3) -> Floats:
    """The points rounded to the format, with the nearest numbers on both sides."""
    values = [np.array(points, DTYPES[type])]
    for direction in (-np.inf, np.inf):
        for _ in range(neighbours):
            values.append(np.nextafter(values[-1], np.array(direction, DTYPES[type])))
        values.append(values[0])
    return np.unique(np.concatenate(values))


def hard_points(name: str, type: ElementType) -> Floats:
    """Where an expansion changes its way, and where the result leaves the normal or the finite numbers."""
    limits = np.finfo(DTYPES[type])
    small, tiny, huge = float(limits.tiny), float(limits.smallest_subnormal), float(limits.max)
    ln2 = math.log(2)
    if name in ("exp", "exp2", "expm1"):
        unit = 1.0 if name == "exp2" else ln2
        overflow, underflow = unit * (limits.maxexp), unit * (limits.minexp - limits.nmant)
        steps = [unit * (k + 0.5) for k in range(-30, 30)]
        return around([overflow, underflow, unit * limits.minexp, *steps, tiny, small, 2.0**-30, -(2.0**-60)], type)
    if name in POSITIVE:
        ends = [tiny, 3 * tiny, small, huge]
        x = around([*ends, 2 / 3, 0.5, math.sqrt(0.5), 0.75, 1.0, 4 / 3, math.sqrt(2), 2.0], type)
        return x[x > 0]
    if name == "log1p":
        ends = [tiny, -tiny, small, 2.0**-30, -(2.0**-60), -0.9999, 2.0**30, huge / 2]
        return around([*ends, -0.5, -0.25, 0.5, 1.0], type)
    if name in ("sin", "cos"):
        windows = [2.0**k for k in range(-40, 126 if type == "f32" else 1022, 7)]
        return np.concatenate([closest_to_multiples_of_half_pi(type), around([*windows, small, 0.1], type)])
    return around([tiny, small, 2.0**-30, 0.25, 0.96875, 1.0, 3.9, 5.9, 9.0, 19.0], type)


@pytest.mark.parametrize(("name", "type"), CASES)
def test_random_inputs_stay_within_the_bound(name: str, type: ElementType) -> None:
    error, at = worst(name, type, *random_inputs(name, type, 1200))
    assert error <= EXPANSIONS[name][type].ulp_bound, f"{error} ulp at {[x.hex() for x in at]}"


@pytest.mark.parametrize(("name", "type"), [case for case in CASES if case[0] != "pow"])
def test_hard_points_stay_within_the_bound(name: str, type: ElementType) -> None:
    x = hard_points(name, type)
    with mpmath.workprec(1400 if name in ("sin", "cos") else 200):
        error, at = worst(name, type, x[x != 0])
    assert error <= EXPANSIONS[name][type].ulp_bound, f"{error} ulp at {[x.hex() for x in at]}"


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_pow_near_one_and_at_the_ends_of_the_range(type: ElementType) -> None:
    """A base next to 1 with an exponent so large that the result over- or underflows: the logarithm must be exact."""
    epsilon = float(np.finfo(DTYPES[type]).eps)
    limit = {"f32": 88.0, "f64": 709.0}[type]
    x = np.repeat([1 + epsilon, 1 - epsilon / 2, 1 + 7 * epsilon, 1 - 5 * epsilon, 2.0, 0.5, 1.5], 9).astype(
        DTYPES[type]
    )
    targets = np.tile([limit, -limit, -1.04 * limit, limit / 3, 1.0, -1.0, 1e-3, 0.7, -limit / 2], 7)
    y = (targets / np.log(x.astype(np.float64))).astype(DTYPES[type])
    error, at = worst("pow", type, x, y)
    assert error <= EXPANSIONS["pow"][type].ulp_bound, f"{error} ulp at {[x.hex() for x in at]}"


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_logarithms_of_powers_of_two_are_exact(type: ElementType) -> None:
    exponents = np.arange(-149, 128) if type == "f32" else np.arange(-1074, 1024)
    x = np.ldexp(np.ones(len(exponents), DTYPES[type]), exponents)
    assert np.array_equal(expand("log2", type, x), exponents)
    assert np.array_equal(expand("exp2", type, exponents.astype(DTYPES[type])), x)


@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_the_promise_of_an_upper_bound_changes_no_bit(name: str, type: ElementType) -> None:
    x = np.concatenate([np.linspace(-1200, 64, 4001), [-np.inf, np.nan, -0.0, 64.0]]).astype(DTYPES[type])
    expansion = EXPANSIONS[name][type].expand
    promised = expansion(NumpyEmitter(), x, upper_bounded=True)
    assert np.array_equal(promised, expansion(NumpyEmitter(), x), equal_nan=True)


class ScalingEmitter(NumpyEmitter):
    """A target with an instruction that scales by a power of two."""

    def scale(self, value: Floats, power: Floats) -> Floats:
        return np.ldexp(value, np.nan_to_num(power).astype(np.int32))


@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_a_native_scaling_instruction_changes_no_bit(name: str, type: ElementType) -> None:
    x = np.concatenate([np.linspace(-1100, 1100, 4001), [-np.inf, np.inf, np.nan, -0.0]]).astype(DTYPES[type])
    expansion = EXPANSIONS[name][type].expand
    assert np.array_equal(expansion(ScalingEmitter(), x), expansion(NumpyEmitter(), x), equal_nan=True)


class CountingEmitter:
    """Counts the operations that the numpy emitter is asked for."""

    def __init__(self) -> None:
        self.emitter = NumpyEmitter()
        self.count = 0

    def __getattr__(self, method: str) -> Callable[..., Any]:
        self.count += method not in ("constant", "bitcast", "scale")
        found: Callable[..., Any] = getattr(self.emitter, method)
        return found


@pytest.mark.parametrize(("name", "type"), CASES)
def test_the_table_states_the_number_of_operations(name: str, type: ElementType) -> None:
    expansion = EXPANSIONS[name][type]
    counter = CountingEmitter()
    expansion.expand(counter, *[np.ones(1, DTYPES[type])] * expansion.arity)
    assert counter.count == expansion.operations


def test_exp_with_a_bounded_argument_takes_fifteen_operations() -> None:
    counter = CountingEmitter()
    EXPANSIONS["exp"]["f32"].expand(counter, np.zeros(1, np.float32), upper_bounded=True)
    assert counter.count == 15


def test_the_stored_bits_are_those_of_two_over_pi() -> None:
    with mpmath.workprec(1500):
        expected = mpmath.floor(mpmath.ldexp(2 / mpmath.pi, 1344))
        pieces = sum(mpmath.ldexp(mpmath.mpf(two_over_pi(i, 48, 600)), 1344 - 600) for i in range(0, 1344, 48))
    assert pieces == expected
