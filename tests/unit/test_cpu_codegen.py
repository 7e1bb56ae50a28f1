"""Loops IR compiled to machine code and run: casts over all values, extrema, memory, control flow, rounding state."""

from __future__ import annotations

import ctypes
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_upstream_dialects
from xdsl.parser import Parser

from halfulp.compiler.codegen import cpu
from halfulp.compiler.codegen.llvm import emit_llvm
from halfulp.compiler.dialects import get_all_dialects
from halfulp.compiler.passes.convert_loops_to_llvm import ConvertLoopsToLlvmPass
from halfulp.runtime.loader import NativeLibrary

Array = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
UNSIGNED = {f"i{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """Overflow and NaN are what the references here are for."""
    with np.errstate(all="ignore"):
        yield


def widths() -> list[int]:
    """The vector widths that this machine has."""
    widest = cpu.host_target().vector_bits
    return [bits for bits in (512, 256, 128) if bits <= widest]


def llvm_text(source: str, bits: int | None = None) -> str:
    """The LLVM text of a module in the loops dialects."""
    context = Context()
    for name, load in {**get_upstream_dialects(), **get_all_dialects()}.items():
        context.register_dialect(name, load)
    module = Parser(context, source).parse_module()
    module.verify()
    target = cpu.host_target(bits)
    ConvertLoopsToLlvmPass(arch=target.arch).apply(context, module)
    module.verify()
    return emit_llvm(module, function_attributes=target.function_attributes)


@cache
def load(source: str, bits: int | None = None, name: str = "f") -> Callable[[int, int], None]:
    """Compiles loops IR for one vector width and gives the entry function."""
    code = cpu.compile_to_object(llvm_text(source, bits), cpu.host_target(bits))
    return NativeLibrary(code, [f"{name}.call"]).entry(f"{name}.call")


def call(function: Callable[[int, int], None], arrays: list[Array], dims: list[int]) -> None:
    """Calls an entry function on arrays and sizes."""
    buffers = (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
    sizes = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    function(ctypes.addressof(buffers), ctypes.addressof(sizes))


def elementwise_source(body: str, operands: list[str], result: str, lanes: int) -> str:
    """A loop over arrays of types ``operands``, where ``body`` makes ``%r`` from ``%a0``, ``%a1``, ...

    ``<f32>`` in the body stands for a vector of ``lanes`` f32, or for f32 if ``lanes`` is 0.
    """
    arguments = "".join(f"%x{i} : memref<?x{t}>, " for i, t in enumerate(operands))

    def of(element: str) -> str:
        return f"vector<{lanes}x{element}>" if lanes else element

    def load_op(i: int, t: str) -> str:
        if lanes:
            return f"%a{i} = vector.load %x{i}[%i] : memref<?x{t}>, {of(t)}"
        return f"%a{i} = memref.load %x{i}[%i] : memref<?x{t}>"

    loads = "\n".join(load_op(i, t) for i, t in enumerate(operands))
    store = (
        f"vector.store %r, %y[%i] : memref<?x{result}>, {of(result)}"
        if lanes
        else f"memref.store %r, %y[%i] : memref<?x{result}>"
    )
    for element in (*DTYPES, "index"):
        body = body.replace(f"<{element}>", of(element))
    return f"""
func.func @f({arguments}%y : memref<?x{result}>, %n : index) attributes {{halfulp.entry}} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  scf.for %i = %c0 to %n step %step {{
    {loads}
    {body}
    {store}
  }}
  func.return
}}
"""


def run_elementwise(
    body: str, inputs: Sequence[tuple[str, Array]], result: str, *, lanes: int, bits: int | None = None
) -> Array:
    """``body`` on every element of the inputs; the length is padded to a multiple of the lanes."""
    size = len(inputs[0][1])
    padded = -(-size // max(lanes, 1)) * max(lanes, 1)
    arrays = [np.resize(array, padded).astype(array.dtype) for _, array in inputs]
    output = np.empty(padded, DTYPES[result])
    source = elementwise_source(body, [t for t, _ in inputs], result, lanes)
    call(load(source, bits), [*arrays, output], [padded])
    return output[:size]


def forms() -> list[tuple[int | None, int]]:
    """(vector bits, lanes): every width of this machine, and scalars (lanes 0)."""
    return [*[(bits, bits // 32) for bits in widths()], (None, 0)]


def same(actual: Array, expected: Array) -> None:
    """Equal bits, all NaN counting as equal."""
    assert actual.dtype == expected.dtype
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    bits = np.dtype(f"uint{8 * actual.dtype.itemsize}")
    actual_nan, expected_nan = np.isnan(actual.astype(np.float64)), np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(actual_nan, expected_nan)
    np.testing.assert_array_equal(actual.view(bits)[~actual_nan], expected.view(bits)[~expected_nan])


# References


def all_values(t: str) -> Array:
    """All 65536 values of a 16-bit type."""
    return np.arange(65536, dtype=np.uint16).view(DTYPES[t])


@cache
def _midpoints(t: str) -> tuple[list[Fraction], int]:
    """Points halfway between neighbouring non-negative values of a 16-bit type, and the pattern of infinity."""
    infinity = {"f16": 0x7C00, "bf16": 0x7F80}[t]
    values = np.arange(infinity, dtype=np.uint16).view(DTYPES[t]).astype(np.float64)
    exact = [Fraction(float(v)) for v in values]
    exact.append(2 * exact[-1] - exact[-2])  # where the next value would be, were it finite
    return [(a + b) / 2 for a, b in pairwise(exact)], infinity


def round_to_16_bits(exact: Fraction, t: str, *, negative_zero: bool = False) -> int:
    """The pattern of the nearest value, ties to even, found by search among all values."""
    midpoints, _ = _midpoints(t)
    size = abs(exact)
    pattern = bisect_left(midpoints, size)
    if pattern < len(midpoints) and midpoints[pattern] == size and pattern % 2:
        pattern += 1
    sign = exact < 0 or (exact == 0 and negative_zero)
    return pattern | (0x8000 if sign else 0)


def rounded(values: list[Fraction], t: str) -> Array:
    """Each exact value rounded to a 16-bit type."""
    return np.array([round_to_16_bits(v, t) for v in values], np.uint16).view(DTYPES[t])


SPECIAL_F32 = [0.0, -0.0, 1.0, -1.5, 1e-45, -1e-40, 1.1754944e-38, 3.4028235e38, np.inf, -np.inf, np.nan]


def interesting_f32() -> Array:
    """Random patterns, plus every pattern close to a rounding boundary of bf16 and f16."""
    generator = np.random.default_rng(1)
    random = generator.integers(0, 2**32, 100_000, dtype=np.uint32)
    boundary = generator.integers(0, 2**16, 20_000, dtype=np.uint32) << np.uint32(16)
    near = [boundary + np.uint32(d) for d in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1000, 0x0FFF, 0x1001)]
    special = np.array(SPECIAL_F32, np.float32).view(np.uint32)
    return np.concatenate([random, *near, special]).view(np.float32)


# Casts


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_extend_16_bit_float_is_exact_for_all_values(bits: int | None, lanes: int, t: str, wide: str) -> None:
    values = all_values(t)
    body = f"%r = vector_ext.cast %a0 extf : <{t}> to <{wide}>"
    same(run_elementwise(body, [(t, values)], wide, lanes=lanes, bits=bits), values.astype(DTYPES[wide]))


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_16_bit_float_round_trips_through_f32_and_f64(bits: int | None, lanes: int, t: str) -> None:
    values = all_values(t)
    for wide in ("f32", "f64"):
        body = f"""%w = vector_ext.cast %a0 extf : <{t}> to <{wide}>
        %r = vector_ext.cast %w truncf : <{wide}> to <{t}>"""
        same(run_elementwise(body, [(t, values)], t, lanes=lanes, bits=bits), values)


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_truncate_f32_rounds_to_nearest_even(bits: int | None, lanes: int, t: str) -> None:
    values = interesting_f32()
    body = f"%r = vector_ext.cast %a0 truncf : <f32> to <{t}>"
    expected = values.astype(DTYPES[t])
    same(run_elementwise(body, [("f32", values)], t, lanes=lanes, bits=bits), expected)


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_truncate_f64_rounds_once(bits: int | None, lanes: int, t: str) -> None:
    midpoints, _ = _midpoints(t)
    generator = np.random.default_rng(2)
    chosen = [float(midpoints[i]) for i in generator.integers(0, len(midpoints), 1500)]
    # Just beside a tie: what f32 cannot see, so that rounding to f32 first would give the tie's even neighbour.
    values = [v * (1 + d) for v in (*chosen, float(midpoints[-1]), float(midpoints[0])) for d in (0, 2**-52, -(2**-52))]
    values += [1e300, 1e-300, 5e-324]
    values += [-v for v in values]
    body = f"%r = vector_ext.cast %a0 truncf : <f64> to <{t}>"
    actual = run_elementwise(body, [("f64", np.array(values))], t, lanes=lanes, bits=bits)
    signs = [v < 0 for v in values]
    expected = [round_to_16_bits(Fraction(v), t) | (0x8000 if s else 0) for v, s in zip(values, signs, strict=True)]
    same(actual, np.array(expected, np.uint16).view(DTYPES[t]))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    same(run_elementwise(body, [("f64", special)], t, lanes=lanes, bits=bits), special.astype(DTYPES[t]))


def integer_samples(t: str, *, signed: bool) -> list[int]:
    """Bounds, powers of two and their neighbours, and random values of every size."""
    width = int(t[1:])
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    generator = np.random.default_rng(3)
    samples = {low, high, 0, 1, 65504, 65519, 65520, 65521}
    samples.update(2**k + d for k in range(width) for d in (-1, 0, 1))
    for k in range(1, width + 1):
        for start in generator.integers(0, 2**63, 20):
            value = int(start) >> (63 - min(k, 63))
            shift = max(0, value.bit_length() - 9)  # a 9-bit prefix and a half: a tie of bf16, and its neighbours
            tie = (value >> shift | 1) << shift
            samples.update((value, tie, tie + 1, tie - 1))
    samples.update([-s for s in samples])
    return sorted(s for s in samples if low <= s <= high)


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("t", ["i8", "i16", "i32", "i64"])
def test_integer_to_float_rounds_once(bits: int | None, lanes: int, target: str, signed: bool, t: str) -> None:
    samples = integer_samples(t, signed=signed)
    values = np.array(samples, DTYPES[t] if signed else UNSIGNED[t]).view(DTYPES[t])
    body = f"%r = vector_ext.cast %a0 {'sitofp' if signed else 'uitofp'} : <{t}> to <{target}>"
    if target in ("f16", "bf16"):
        expected = rounded([Fraction(s) for s in samples], target)
    else:
        expected = np.array(samples, DTYPES[t] if signed else UNSIGNED[t]).astype(DTYPES[target])
    same(run_elementwise(body, [(t, values)], target, lanes=lanes, bits=bits), expected)


def saturated(value: float, width: int, *, signed: bool) -> int:
    """Truncation, saturation, NaN to 0, in Python's integers."""
    low = -(1 << (width - 1)) if signed else 0
    high = (1 << (width - 1 if signed else width)) - 1
    if value != value:
        return 0
    if value in (np.inf, -np.inf):
        return high if value > 0 else low
    return min(high, max(low, int(value)))


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("t", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
def test_float_to_integer_saturates(bits: int | None, lanes: int, signed: bool, t: str, source: str) -> None:
    generator = np.random.default_rng(4)
    scales = 2.0 ** generator.integers(-3, 70, 2000)
    edges = [
        s * 2.0**k * (1 + d) for s in (1, -1) for k in range(-2, 66) for d in (0, 2**-7, -(2**-8), 2**-23, -(2**-24))
    ]
    values = np.concatenate(
        [
            generator.uniform(-1, 1, 2000) * scales,
            edges,
            [0.0, -0.0, np.nan, np.inf, -np.inf, 0.99, -0.99, 127.5, -128.5],
        ]
    )
    inputs = values.astype(DTYPES[source])
    kind = "fptosi_sat" if signed else "fptoui_sat"
    body = f"%r = vector_ext.cast %a0 {kind} : <{source}> to <{t}>"
    width = int(t[1:])
    wanted = [saturated(float(v), width, signed=signed) for v in inputs]
    expected = np.array(wanted, DTYPES[t] if signed else UNSIGNED[t]).view(DTYPES[t])
    same(run_elementwise(body, [(source, inputs)], t, lanes=lanes, bits=bits), expected)


@pytest.mark.parametrize(("bits", "lanes"), forms())
def test_integer_resizing(bits: int | None, lanes: int) -> None:
    values = np.array([0, 1, -1, 127, -128, 100, -100], np.int8)
    for kind, expected in (
        ("extsi", values.astype(np.int32)),
        ("extui", values.view(np.uint8).astype(np.int32)),
    ):
        body = f"%r = vector_ext.cast %a0 {kind} : <i8> to <i32>"
        same(run_elementwise(body, [("i8", values)], "i32", lanes=lanes, bits=bits), expected)
    wide = np.array([0x1FF, -1, 0x80, 0x7FFFFFFF], np.int32)
    body = "%r = vector_ext.cast %a0 trunci : <i32> to <i8>"
    same(run_elementwise(body, [("i32", wide)], "i8", lanes=lanes, bits=bits), wide.astype(np.int8))
    body = """%w = vector_ext.cast %a0 index_cast : <i32> to <index>
    %v = arith.addi %w, %w : <index>
    %r = vector_ext.cast %v index_cast : <index> to <i64>"""
    same(run_elementwise(body, [("i32", wide)], "i64", lanes=lanes, bits=bits), 2 * wide.astype(np.int64))


# Extrema and fma


def special_pairs(t: str) -> tuple[Array, Array]:
    """Every pair of special values."""
    tiny = {"f16": 6e-8, "bf16": 1e-40, "f32": 1e-45, "f64": 5e-324}[t]
    values = [0.0, -0.0, 1.0, -1.0, 2.5, tiny, -tiny, np.inf, -np.inf, np.nan, -np.nan]
    pairs = np.array(list(product(values, values)))
    return pairs[:, 0].astype(DTYPES[t]), pairs[:, 1].astype(DTYPES[t])


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_maximum_minimum_order_zeros_and_propagate_nan(bits: int | None, lanes: int, t: str, op: str) -> None:
    a, b = special_pairs(t)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    chosen = np.maximum(wide_a, wide_b) if op == "maximumf" else np.minimum(wide_a, wide_b)
    zeros = (wide_a == 0) & (wide_b == 0)
    negative = np.signbit(wide_a) & np.signbit(wide_b) if op == "maximumf" else np.signbit(wide_a) | np.signbit(wide_b)
    expected = np.where(zeros, np.where(negative, -0.0, 0.0), chosen).astype(DTYPES[t])
    body = f"%r = arith.{op} %a0, %a1 : <{t}>"
    same(run_elementwise(body, [(t, a), (t, b)], t, lanes=lanes, bits=bits), expected)


@pytest.mark.parametrize(("bits", "lanes"), forms())
@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
def test_maxnum_minnum_prefer_numbers_and_take_the_second_of_equals(bits: int | None, lanes: int, t: str) -> None:
    a, b = special_pairs(t)
    x, y = a.astype(np.float64), b.astype(np.float64)
    for op, first in (("maxnumf", x > y), ("minnumf", x < y)):
        expected = np.where(np.isnan(y), x, np.where(first, x, y)).astype(DTYPES[t])
        body = f"%r = arith.{op} %a0, %a1 : <{t}>"
        same(run_elementwise(body, [(t, a), (t, b)], t, lanes=lanes, bits=bits), expected)


def exact_fma(a: Array, b: Array, c: Array, t: str) -> Array:
    """fma rounded once: exact fractions for finite operands, IEEE rules (through f64) for the others."""
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    wide = x * y + z
    result = wide.astype(DTYPES[t])
    for i in np.flatnonzero(np.isfinite(x) & np.isfinite(y) & np.isfinite(z)):
        exact = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
        pattern = round_to_16_bits(exact, t, negative_zero=bool(np.signbit(wide[i])))
        result[i] = np.uint16(pattern).view(DTYPES[t])
    return result


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_16_bit_fma_rounds_once(t: str) -> None:
    generator = np.random.default_rng(5)
    a, b = (generator.integers(0, 65536, 6000, dtype=np.uint16).view(DTYPES[t]) for _ in range(2))
    c = generator.integers(0, 65536, 6000, dtype=np.uint16).view(DTYPES[t])
    # Addends that cancel the product but for its low half, and some that sit on a tie of it.
    near = (-(a.astype(np.float64) * b.astype(np.float64))).astype(DTYPES[t])
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]).astype(DTYPES[t])
    triples = np.array(list(product(special, special, special)))
    a, b = np.concatenate([a, a, triples[:, 0]]), np.concatenate([b, b, triples[:, 1]])
    c = np.concatenate([c, near, triples[:, 2]])
    expected = exact_fma(a, b, c, t)
    for bits, lanes in forms():
        body = f"%r = math.fma %a0, %a1, %a2 : <{t}>"
        same(run_elementwise(body, [(t, a), (t, b), (t, c)], t, lanes=lanes, bits=bits), expected)


def test_f16_fma_case_that_f32_rounds_twice() -> None:
    # 1 + 2^-11 is a tie of f16; the 2^-33 beyond it is lost in f32, and the tie would go to even.
    a, b, c = (np.array([v], np.float16) for v in (2.0**-11, 1 + 2.0**-10, 1.0))
    expected = exact_fma(a, b, c, "f16")
    assert expected[0] == np.float16(1 + 2.0**-10)
    for bits, lanes in forms():
        body = "%r = math.fma %a0, %a1, %a2 : <f16>"
        same(run_elementwise(body, [("f16", a), ("f16", b), ("f16", c)], "f16", lanes=lanes, bits=bits), expected)


@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "divf"])
def test_16_bit_arithmetic_rounds_once(t: str, op: str) -> None:
    generator = np.random.default_rng(6)
    a, b = (generator.integers(0, 65536, 4000, dtype=np.uint16).view(DTYPES[t]) for _ in range(2))
    # Operands of like size as well: random ones mostly add to the larger and divide to zero or infinity.
    a = np.concatenate([a, a])
    b = np.concatenate([b, (a[:4000].view(np.uint16) ^ generator.integers(0, 1024, 4000, np.uint16)).view(b.dtype)])
    exact = {"addf": operator.add, "subf": operator.sub, "mulf": operator.mul, "divf": operator.truediv}[op]
    numpy_op = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}[op]
    wide = numpy_op(a.astype(np.float64), b.astype(np.float64))
    expected = wide.astype(DTYPES[t])  # right where an operand or the result is special
    for i in np.flatnonzero(np.isfinite(a.astype(np.float64)) & np.isfinite(b.astype(np.float64)) & np.isfinite(wide)):
        value = exact(Fraction(float(a[i])), Fraction(float(b[i])))
        pattern = round_to_16_bits(value, t, negative_zero=bool(np.signbit(wide[i])))
        expected[i] = np.uint16(pattern).view(DTYPES[t])
    for bits, lanes in forms():
        body = f"%r = arith.{op} %a0, %a1 : <{t}>"
        same(run_elementwise(body, [(t, a), (t, b)], t, lanes=lanes, bits=bits), expected)


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_16_bit_unary_ops_on_all_values(t: str) -> None:
    values = all_values(t)
    wide = values.astype(np.float32)
    cases = {
        "arith.negf": np.negative(values),
        "math.absf": np.abs(values),
        "math.floor": np.floor(wide).astype(DTYPES[t]),
        "math.ceil": np.ceil(wide).astype(DTYPES[t]),
        "math.trunc": np.trunc(wide).astype(DTYPES[t]),
        "math.roundeven": np.rint(wide).astype(DTYPES[t]),
        "math.sqrt": np.sqrt(wide).astype(DTYPES[t]),
    }
    for (op, expected), (bits, lanes) in product(cases.items(), forms()):
        same(run_elementwise(f"%r = {op} %a0 : <{t}>", [(t, values)], t, lanes=lanes, bits=bits), expected)


def test_f32_fma_is_fused_and_mul_add_is_not() -> None:
    generator = np.random.default_rng(7)
    a, b, c = (generator.standard_normal(4096).astype(np.float32) for _ in range(3))
    fused = np.array(
        [float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)]
    )
    operands = [("f32", a), ("f32", b), ("f32", c)]
    for bits, lanes in forms():
        actual = run_elementwise("%r = math.fma %a0, %a1, %a2 : <f32>", operands, "f32", lanes=lanes, bits=bits)
        same(actual, fused.astype(np.float32))
        body = "%p = arith.mulf %a0, %a1 : <f32>\n%r = arith.addf %p, %a2 : <f32>"
        actual = run_elementwise(body, operands, "f32", lanes=lanes, bits=bits)
        same(actual, a * b + c)
