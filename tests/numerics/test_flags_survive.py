"""A fastmath flag set on any op, at any level, stands in the LLVM text, unless the contract says where it must not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from xdsl.dialects import math
from xdsl.dialects.builtin import bf16, f16, f64

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.compiler.options import FASTMATH_FLAGS, FASTMATH_VARIABLE
from halfulp.compiler.pipeline import emit
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, register_kernel, unregister_kernel
from halfulp.compiler.tile_builder import KernelBuilder, Value

CPU_0 = DeviceRef.CPU()
SHAPE = TensorType(DType.float32, [16, 16], CPU_0)
UNSAFE = ("nnan", "ninf")


def _binary(kind: str) -> Callable[[KernelBuilder, Value], Value]:
    return lambda k, x: k.binary(kind, x, k.splat(k.extract(x, 0, 0), [16, 16]))


def _unary(kind: str) -> Callable[[KernelBuilder, Value], Value]:
    return lambda k, x: k.unary(kind, x)


def _copysign(k: KernelBuilder, x: Value) -> Value:
    return Value(k, k.insert(math.CopySignOp(x.ssa, x.ssa, k.fastmath)).results[0])


def _compare(k: KernelBuilder, x: Value) -> Value:
    return k.cast(k.compare("lt", x, 1.0), x.element_type)


def _select(k: KernelBuilder, x: Value) -> Value:
    row = k.iota([16, 16], k.index(0).type, 1)
    return k.select(k.compare("lt", row, 3), x, 0.0)


def _reduce(kind: str, axis: int) -> Callable[[KernelBuilder, Value], Value]:
    return lambda k, x: k.broadcast(k.reshape(k.reduce(kind, x, axis), [16, 1]), [16, 16])


def _dot(fused: bool) -> Callable[[KernelBuilder, Value], Value]:
    return lambda k, x: k.dot(x, x, x, fused=fused)


def _through(element: Any) -> Callable[[KernelBuilder, Value], Value]:
    return lambda k, x: k.cast(k.cast(x, element), x.element_type)


V = r"<\d+ x float>"
OPS: dict[str, tuple[Callable[[KernelBuilder, Value], Value], tuple[str, ...], tuple[str, ...]]] = {
    # op: how to build it, the lines that carry its flags, the lines that carry them but for nnan and ninf
    "add": (_binary("add"), (rf"fadd FLAG {V}",), ()),
    "sub": (_binary("sub"), (rf"fsub FLAG {V}",), ()),
    "mul": (_binary("mul"), (rf"fmul FLAG {V}",), ()),
    "div": (_binary("div"), (rf"fdiv FLAG {V}",), ()),
    "negate": (lambda k, x: k.negate(x), (rf"fneg FLAG {V}",), ()),
    "maximum": (_binary("maximum"), (), (rf"fcmp FLAG \w+ {V}", r"select FLAG <")),
    "minimum": (_binary("minimum"), (), (rf"fcmp FLAG \w+ {V}", r"select FLAG <")),
    "maxnum": (_binary("maxnum"), (), (rf"fcmp FLAG \w+ {V}", r"select FLAG <")),
    "minnum": (_binary("minnum"), (), (rf"fcmp FLAG \w+ {V}", r"select FLAG <")),
    "fma": (lambda k, x: k.fma(x, x, x), (r"call FLAG .*@llvm\.fma\.",), ()),
    "sqrt": (_unary("sqrt"), (r"call FLAG .*@llvm\.sqrt\.",), ()),
    "absf": (_unary("absf"), (r"call FLAG .*@llvm\.fabs\.",), ()),
    "floor": (_unary("floor"), (r"call FLAG .*@llvm\.floor\.",), ()),
    "ceil": (_unary("ceil"), (r"call FLAG .*@llvm\.ceil\.",), ()),
    "trunc": (_unary("trunc"), (r"call FLAG .*@llvm\.trunc\.",), ()),
    "roundeven": (_unary("roundeven"), (r"call FLAG .*@llvm\.roundeven\.",), ()),
    "copysign": (_copysign, (r"call FLAG .*@llvm\.copysign\.",), ()),
    "compare": (_compare, (), (rf"fcmp FLAG olt {V}",)),
    "select": (_select, (), (r"select FLAG <\d+ x i1> [^,]*, <\d+ x float>",)),
    "reduce_add": (_reduce("add", 1), (), (rf"fadd FLAG {V}",)),
    "reduce_mul": (_reduce("mul", 0), (), (rf"fmul FLAG {V}",)),
    "reduce_maximum": (_reduce("maximum", 1), (), (rf"fcmp FLAG ogt {V}", r"select FLAG <")),
    "reduce_minimum": (_reduce("minimum", 0), (), (rf"fcmp FLAG olt {V}", r"select FLAG <")),
    "dot_fused": (_dot(True), (r"call FLAG .*@llvm\.fma\.",), ()),
    "dot_separate": (_dot(False), (rf"fmul FLAG {V}", rf"fadd FLAG {V}"), ()),
    "cast_f16": (_through(f16), (rf"fptrunc FLAG {V} .* to <\d+ x half>", r"fpext FLAG <\d+ x half>"), ()),
    "cast_f64": (_through(f64), (rf"fpext FLAG {V}", r"fptrunc FLAG <\d+ x double>"), ()),
    "bf16_add": (lambda k, x: k.cast(k.cast(x, bf16) + k.cast(x, bf16), x.element_type), (rf"fadd FLAG {V}",), ()),
    "bf16_sqrt": (
        lambda k, x: k.cast(k.unary("sqrt", k.cast(x, bf16)), x.element_type),
        (r"call FLAG .*@llvm\.sqrt",),
        (),
    ),
}


@pytest.fixture(autouse=True, scope="module")
def _kernels() -> Iterator[None]:
    """Every op as a custom kernel of its own."""
    for name, (build, _, _) in OPS.items():

        def launch(entry: Any, call: Any, operands: Any, results: Any, name: str = name, build: Any = build) -> None:
            def body(k: KernelBuilder) -> None:
                x, y = k.arguments
                k.store(build(k, k.load(k.window(x, [0, 0], [16, 16]))), k.window(y, [0, 0], [16, 16]))

            entry.launch(f"kernel_{name}", [*operands, *results], [entry.index(1)], body)

        spec = (16, 16)
        register_kernel(
            KernelDef(
                f"test_{name}",
                (OperandSpec("x", DType.float32, spec),),
                (OutputSpec("y", DType.float32, spec),),
                launch,
            )
        )
    yield
    for name in OPS:
        unregister_kernel(f"test_{name}")


def kernels_text(options: CompileOptions, region: str | None = None, own: str | None = None) -> dict[str, str]:
    """The LLVM text of each kernel, one graph for all of them."""
    with Graph("g", input_types=[SHAPE]) as graph, nullcontext() if region is None else graph.fastmath(region):
        (x,) = graph.inputs
        graph.output(*(ops.custom(f"test_{name}", CPU_0, [x], [SHAPE], fastmath=own)[0] for name in OPS))
    text = emit(graph.module, "ll", options)
    return {match[1]: match[0] for match in re.finditer(r"define [^\n]*@kernel_(\w+)\(.*?\n}", text, re.DOTALL)}


def assert_stands(texts: dict[str, str], flag: str) -> None:
    """``flag`` stands alone on every line that should carry it, and nnan and ninf on no other line."""
    for name, (_, plain, guarded) in OPS.items():
        patterns = [pattern.replace("FLAG", flag) for pattern in plain]
        patterns += [pattern.replace("FLAG ", "" if flag in UNSAFE else f"{flag} ") for pattern in guarded]
        for pattern in patterns:
            assert re.search(pattern, texts[name]), f"{name}: {pattern}\n{texts[name]}"
        if flag in UNSAFE:
            assert not re.search(rf"(fcmp|select)[^%\n]* {flag} ", texts[name]), f"{name}: {flag}\n{texts[name]}"


@pytest.mark.parametrize("flag", FASTMATH_FLAGS)
def test_flag_of_the_op_itself(flag: str) -> None:
    strategy: Any = "llvm" if flag == "contract" else "explicit"  # else every fma is explicit, and the flag is gone
    assert_stands(kernels_text(CompileOptions(strategy=strategy), own=flag), flag)


def test_flags_of_region_options_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm = CompileOptions(strategy="llvm", fp_contract="fast", fastmath={"arcp"})
    assert_stands(kernels_text(llvm), "arcp contract")
    assert_stands(kernels_text(llvm, region="nsz"), "nsz")
    assert_stands(kernels_text(llvm, region="nsz", own="afn"), "afn")
    monkeypatch.setenv(FASTMATH_VARIABLE, "reassoc,nsz")
    assert_stands(kernels_text(CompileOptions()), "reassoc nsz")
    assert_stands(kernels_text(CompileOptions(fastmath="nsz")), "nsz")


def test_inner_none_wins_over_all() -> None:
    for text in kernels_text(CompileOptions(fastmath="fast"), region="none").values():
        assert not re.search(rf"= (f\w+|select|call) ({'|'.join(FASTMATH_FLAGS)}|fast)\b", text)


LIBRARY: dict[str, str] = {
    # ops of the library that are one instruction of LLVM's for each vector
    "add": r"fadd FLAG <",
    "sub": r"fsub FLAG <",
    "mul": r"fmul FLAG <",
    "div": r"fdiv FLAG <",
    "negate": r"fneg FLAG <",
    "fma": r"call FLAG .*@llvm\.fma",
    "sqrt": r"call FLAG .*@llvm\.sqrt",
    "abs": r"call FLAG .*@llvm\.fabs",
    "floor": r"call FLAG .*@llvm\.floor",
    "ceil": r"call FLAG .*@llvm\.ceil",
    "trunc": r"call FLAG .*@llvm\.trunc",
    "maximum": r"fcmp FLAG ogt",
    "minimum": r"fcmp FLAG olt",
}


@pytest.mark.parametrize("name", LIBRARY)
def test_flags_of_ops_of_the_library(name: str) -> None:
    function = getattr(ops, name)
    with Graph("g", input_types=[TensorType(DType.float32, ["n"], CPU_0)]) as graph, graph.fastmath("nsz", "arcp"):
        (x,) = graph.inputs
        count = {"fma": 3, "negate": 1, "sqrt": 1, "abs": 1, "floor": 1, "ceil": 1, "trunc": 1}.get(name, 2)
        graph.output(function(*[x] * count))
    assert re.search(LIBRARY[name].replace("FLAG", "nsz arcp"), emit(graph.module, "ll", CompileOptions()))


def test_fused_neighbours_keep_their_own_flags() -> None:
    """One kernel holds all three, and no flag wanders from one op to the next."""
    with Graph("g", input_types=[TensorType(DType.float32, ["n"], CPU_0)]) as graph:
        (x,) = graph.inputs
        product = ops.mul(x, x, fastmath="nsz")
        graph.output(ops.div(ops.sub(product, x, fastmath="none"), x, fastmath="arcp"))
    text = emit(graph.module, "ll", CompileOptions(fastmath="afn"))
    for pattern in (r"fmul nsz <", r"fsub <", r"fdiv arcp <"):
        assert re.search(pattern, text)
        assert len(re.findall(pattern, text)) == len(re.findall(rf"{pattern[:4]}[a-z ]* <", text))
