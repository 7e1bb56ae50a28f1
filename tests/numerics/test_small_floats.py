"""bf16 and f16: every value through every unary op, one rounding after every op, fma rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from differential import assert_same_bits, check_both_ways

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.compiler.interpreter.exact import narrow
from halfulp.runtime import CPU, InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
NAMES = {BF16: "bf16", F16: "f16"}
SIGNIFICAND = {BF16: 8, F16: 11}
SUBNORMAL_EXPONENT = {BF16: -133, F16: -24}
"""The exponent of the smallest subnormal."""
OVERFLOW = {BF16: (2**9 - 1) * 2.0**119, F16: 65520.0}
"""Half an ulp beyond the largest number: from here on the nearest is infinity."""

EVERY_VALUE = np.arange(65536, dtype=np.uint16)
EXACT = ("arith.negf", "math.absf", "math.floor", "math.ceil", "math.trunc", "math.roundeven")
ELEMENTARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}

parametrize_types = pytest.mark.parametrize("dtype", [BF16, F16], ids=lambda dtype: NAMES[dtype])


def map_module(dtype: np.dtype[Any], bodies: dict[str, str], operands: int) -> str:
    """A kernel for each body, which computes %r of type T from %a, %b, ...; results go to one buffer each."""
    block, whole, part = (
        f"tensor<4096x{NAMES[dtype]}>",
        f"!tile.ref<[?], {NAMES[dtype]}, global>",
        f"!tile.ref<[4096], {NAMES[dtype]}, global>",
    )
    letters = "abc"[:operands]
    inputs = ", ".join(f"%{letter}_ref: {whole}" for letter in letters)
    text, launches, outputs = "", "", []
    for name, body in bodies.items():
        window = "".join(
            f"%{x}_part = tile.window %{x}_ref[%i] blocked [4096] squeezed [] : {whole} -> {part}\n"
            for x in (*letters, "r")
        )
        loads = "".join(f"%{x} = tile.load %{x}_part : {part} -> {block}\n" for x in letters)
        text += (
            f"tile.kernel @{name}({inputs}, %r_ref: {whole}) grid(%i of %n) axes [parallel] {{\n{window}{loads}"
            f"{body.replace('T', block)}\ntile.store %r, %r_part : {block}, {part}\ntile.return\n}}\n"
        )
        outputs.append(f"%{name}: {whole}")
        arguments = ", ".join([*(f"%{x}_ref" for x in letters), f"%{name}"])
        launches += f"tile.launch @{name} grid(%count) ({arguments}) : {', '.join([whole] * (operands + 1))}\n"
    return (
        f"{text}func.func @entry({inputs}, {', '.join(outputs)}) {{\n%size = tile.dim %a_ref, 0 : {whole}\n"
        "%step = arith.constant 4096 : index\n%count = tile.int_div floordivs %size, %step : index\n"
        f"{launches}func.return\n}}\n"
    )


def every_value(dtype: np.dtype[Any]) -> Array:
    return EVERY_VALUE.view(dtype)


def run_both_ways(dtype: np.dtype[Any], bodies: dict[str, str], arrays: list[Array], **more: Any) -> dict[str, Array]:
    """The results by name, interpreted and compiled alike."""
    outputs = [np.zeros_like(arrays[0]) for _ in bodies]
    run = check_both_ways(map_module(dtype, bodies, len(arrays)), [*arrays, *outputs], **more)
    return dict(zip(bodies, run.arrays[len(arrays) :], strict=True))


@parametrize_types
def test_every_value_through_exact_ops_and_sqrt(dtype: np.dtype[Any]) -> None:
    bodies = {op.partition(".")[2]: f"%r = {op} %a : T" for op in (*EXACT, "math.sqrt")}
    found = run_both_ways(dtype, bodies, [every_value(dtype)])
    with np.errstate(all="ignore"):
        wide = every_value(dtype).astype(np.float64)
        for name, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("roundeven", np.rint)):
            assert_same_bits(found[name], function(wide).astype(dtype), name)
        # the root in f64 is rounded so finely that rounding it again is harmless
        assert_same_bits(found["sqrt"], narrow(np.sqrt(wide), dtype), "sqrt")
    numbers = ~np.isnan(wide)
    assert np.array_equal(found["negf"].view(np.uint16)[numbers], EVERY_VALUE[numbers] ^ 0x8000)
    assert np.array_equal(found["absf"].view(np.uint16)[numbers], EVERY_VALUE[numbers] & 0x7FFF)


@parametrize_types
def test_every_value_through_elementary_functions(dtype: np.dtype[Any]) -> None:
    found = run_both_ways(dtype, {f: f"%r = math.{f} %a : T" for f in ELEMENTARY}, [every_value(dtype)], widths=(512,))
    with np.errstate(all="ignore"):
        wide = every_value(dtype).astype(np.float64)
        for name, function in ELEMENTARY.items():
            exact = function(wide)
            nearest = narrow(exact, dtype)
            assert np.array_equal(np.isnan(found[name]), np.isnan(nearest)), name
            # one ulp of f32 off, then rounded: half an ulp and 2^-12 more
            finite = np.isfinite(exact) & np.isfinite(found[name])
            error = np.abs(found[name].astype(np.float64) - exact)[finite]
            assert (error <= (0.5 + 2.0**-12) * ulp(exact[finite], dtype)).all(), name
            beyond = ~finite & ~np.isnan(exact)
            assert np.array_equal(found[name][beyond], nearest[beyond]), name


def ulp(value: Array, dtype: np.dtype[Any]) -> Array:
    """The distance of neighbouring numbers of ``dtype`` around ``value``."""
    exponent = np.frexp(value)[1] - SIGNIFICAND[dtype]
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, SUBNORMAL_EXPONENT[dtype])))


@parametrize_types
def test_every_value_through_casts(dtype: np.dtype[Any]) -> None:
    """To f32, f64 and back nothing changes: subnormals are kept, and NaN stays NaN."""
    there_and_back = {
        f"through_{wide}": f"%w = tile.cast %a : T -> tensor<4096x{wide}>\n%r = tile.cast %w : tensor<4096x{wide}> -> T"
        for wide in ("f32", "f64")
    }
    with np.errstate(invalid="ignore"):  # signalling NaN
        for name, result in run_both_ways(dtype, there_and_back, [every_value(dtype)]).items():
            assert_same_bits(result, every_value(dtype), name)


def hard_pairs(dtype: np.dtype[Any]) -> list[Array]:
    """Pairs of all kinds: any bits, near each other, subnormal and special ones."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 65536, 1 << 17, dtype=np.uint16) for _ in range(2))
    b[::4] = a[::4] ^ rng.integers(0, 16, a[::4].size, dtype=np.uint16)
    a[1::4] &= 0x83FF if dtype == F16 else 0x807F
    special = np.array([0, 1, 0x8000, 0x8001, 0x7C00, 0x7F80, 0xFC00, 0xFF80, 0x7E00, 0x3C00, 0x3F80], np.uint16)
    b[2::8] = rng.choice(special, b[2::8].size)
    return [a.view(dtype), b.view(dtype)]


@parametrize_types
def test_arithmetic_rounds_once(dtype: np.dtype[Any]) -> None:
    kinds = ("add", "sub", "mul", "div")
    a, b = hard_pairs(dtype)
    found = run_both_ways(dtype, {f"k_{kind}": f"%r = arith.{kind}f %a, %b : T" for kind in kinds}, [a, b])
    with np.errstate(all="ignore"):
        x, y = a.astype(np.longdouble), b.astype(np.longdouble)
        # 64 bits are exact for products, and more than 2p + 2 for the others
        for kind, exact in zip(kinds, (x + y, x - y, x * y, x / y), strict=True):
            assert_same_bits(found[f"k_{kind}"], rounded(exact, dtype), kind)


def rounded(exact: Array, dtype: np.dtype[Any]) -> Array:
    """A long double in ``dtype``, by one rounding to nearest even."""
    finite = np.where(np.isfinite(exact), exact, 0)
    exponent = np.maximum(np.frexp(finite)[1] - SIGNIFICAND[dtype], SUBNORMAL_EXPONENT[dtype])
    nearest = np.ldexp(np.rint(np.ldexp(finite, -exponent)), exponent)
    nearest = np.where(np.abs(finite) >= OVERFLOW[dtype], np.copysign(np.inf, finite), nearest)
    nearest = np.where(np.isfinite(exact), np.copysign(nearest, exact), exact)
    return nearest.astype(np.float32).astype(dtype)


def fma_of_integers(a: float, b: float, c: float, dtype: np.dtype[Any]) -> float:
    """``a * b + c`` of finite numbers, rounded once, in integer arithmetic."""
    unit = SUBNORMAL_EXPONENT[dtype]
    x, y, z = (int(np.ldexp(np.longdouble(v), -unit)) for v in (a, b, c))
    total = x * y + (z << -unit)  # in units of 2^(2 unit)
    size = abs(total)
    shift = max(size.bit_length() - SIGNIFICAND[dtype], -unit)
    kept, lost = divmod(size, 1 << shift)
    half = 1 << (shift - 1)
    kept += lost > half or (lost == half and kept & 1)
    value = float(np.ldexp(np.longdouble(kept), shift + 2 * unit))
    return float(np.copysign(np.inf if value >= OVERFLOW[dtype] else value, total))


def hard_triples(dtype: np.dtype[Any], n: int) -> list[Array]:
    """Any bits; products right in the middle of two numbers, with an addend far too small for f32 to see; sums that
    cancel."""
    rng = np.random.default_rng(7)
    a, b, c = (rng.integers(0, 65536, n, dtype=np.uint16).view(dtype) for _ in range(3))
    bits = (SIGNIFICAND[dtype] + 1) // 2
    for factor in (a, b):
        factor[::2] = np.ldexp(2.0 * rng.integers(2 ** (bits - 2), 2 ** (bits - 1), n // 2) + 1, -4)
    with np.errstate(all="ignore"):
        c[::4] = np.ldexp(rng.choice([-1.0, 1.0], n // 4), SUBNORMAL_EXPONENT[dtype])
        c[1::4] = -(a[1::4].astype(np.float64) * b[1::4].astype(np.float64))
        c[2::4] = -(a[2::4].astype(np.float64) * b[2::4].astype(np.float64))
    return [a, b, c]


@parametrize_types
def test_fma_rounds_once(dtype: np.dtype[Any]) -> None:
    """The way through f32 would round twice: some of these triples tell the difference."""
    a, b, c = hard_triples(dtype, 1 << 15)
    found = run_both_ways(dtype, {"k_fma": "%r = math.fma %a, %b, %c : T"}, [a, b, c])["k_fma"]
    with np.errstate(all="ignore"):  # signalling NaN
        wide = [x.astype(np.float64) for x in (a, b, c)]
    finite = np.isfinite(wide).all(axis=0)
    exact = [fma_of_integers(x, y, z, dtype) for x, y, z in zip(*(v[finite] for v in wide), strict=True)]
    same = found[finite].astype(np.float64) == np.array(exact)
    assert same.all(), (a[finite][~same][0], b[finite][~same][0], c[finite][~same][0])
    with np.errstate(all="ignore"):
        twice = (wide[0] * wide[1] + wide[2]).astype(np.float32).astype(dtype)[finite]
    assert (twice != found[finite]).any()


SMALL = {DType.bfloat16: BF16, DType.float16: F16}


def computed(dtype: DType, mode: Any, fp_contract: Any, build: Callable[..., Any], *arrays: Array) -> list[Array]:
    tensor = TensorType(dtype, ["n"], DeviceRef.CPU())
    with Graph("g", input_types=[tensor] * len(arrays)) as graph:
        graph.output(*build(*graph.inputs))
    options = CompileOptions(bf16=mode, fp_contract=fp_contract)
    return [y.to_numpy() for y in InferenceSession(devices=[CPU()]).load(graph, options).execute(*arrays)]


@pytest.mark.parametrize("dtype", SMALL)
def test_excess_keeps_f32_between_ops_and_rounds_what_is_seen(dtype: DType) -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        total = ops.add(ops.div(a, b), c)
        return [ops.mul(total, total), total, ops.add(ops.cast(ops.cast(total, DType.float32), dtype), a)]

    rng = np.random.default_rng(11)
    a, b, c = (rng.standard_normal(3000).astype(SMALL[dtype]) for _ in range(3))
    squared, total, recast = computed(dtype, "excess", "on", build, a, b, c)
    rounded_each, *_ = computed(dtype, "round-each", "on", build, a, b, c)
    x, y, z = (v.astype(np.float32) for v in (a, b, c))
    with np.errstate(over="ignore"):  # of f16
        wide = x / y + z
        small, total_32 = SMALL[dtype], wide.astype(SMALL[dtype]).astype(np.float32)
        assert_same_bits(squared, (wide * wide).astype(small), "square")
        assert_same_bits(total, wide.astype(small), "sum, also an output")
        assert_same_bits(recast, (total_32 + x).astype(small), "after a cast")
        each = ((x / y).astype(small).astype(np.float32) + z).astype(small).astype(np.float32)
        assert_same_bits(rounded_each, (each * each).astype(small), "round-each")
    assert (rounded_each != squared).any()


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("mode", ["round-each", "excess"])
def test_contraction_needs_excess(dtype: DType, mode: str) -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(ops.mul(ops.mul(a, b), b), b), c)]

    rng = np.random.default_rng(13)
    a, b = (rng.standard_normal(3000).astype(SMALL[dtype]) for _ in range(2))
    c = -(a * b * b * b)  # what is left of the sum shows how the last product was rounded
    plain, contracted = (computed(dtype, mode, contract, build, a, b, c)[0] for contract in ("on", "fast"))
    assert (plain != contracted).any() == (mode == "excess")
