"""When a product and a sum are rounded once: read off the IR, the LLVM text and the machine code."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_graphs import calls_of, graph_of_calls, graph_of_variants
from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.dialects import tile
from halfulp.compiler.interpreter.exact import fma as exact_fma
from halfulp.compiler.passes.expand_math import EXPANSION_MARK, ExpandMathPass
from halfulp.compiler.pipeline import compile_graph, emit, lower
from halfulp.compiler.tile_builder import TileBuilder, Value
from halfulp.ops.contract import CONTRACTS
from halfulp.runtime import CPU, InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
CPU_0 = DeviceRef.CPU()
F32 = DType.float32
FMA = {"x86_64": r"^vfn?m(add|sub)", "aarch64": r"^f(n?m(add|sub)|ml[as])\b"}
PRODUCT = {"x86_64": r"^vmul[ps][sd]\b", "aarch64": r"^fmul\b"}
SUM = {"x86_64": r"^v(add|sub)[ps][sd]\b", "aarch64": r"^f(add|sub)\b"}

on_known_machine = pytest.mark.skipif(
    platform.machine() not in FMA, reason=f"no fma mnemonics are known for {platform.machine()}"
)


def graph_of(build: Callable[..., Any], count: int, dtype: DType = F32) -> Graph:
    """A graph of ``count`` inputs of shape [n]; ``build`` makes its output, or a list of them."""
    with Graph("g", input_types=[TensorType(dtype, ["n"], CPU_0)] * count) as graph:
        built = build(*graph.inputs)
        graph.output(*built if isinstance(built, list) else [built])
    return graph


def instructions(graph: Graph, options: CompileOptions) -> list[str]:
    lines = emit(graph.module, "asm", options).splitlines()
    found = [line.strip() for line in lines if re.match(r"\t[a-z]", line)]
    assert any(line.startswith("ret") for line in found)
    return found


def has(kind: dict[str, str], code: list[str]) -> bool:
    return any(re.search(kind[platform.machine()], line) for line in code)


def run(graph: Graph, options: CompileOptions, *arrays: Array) -> list[Array]:
    return [y.to_numpy() for y in InferenceSession(devices=[CPU()]).load(graph, options).execute(*arrays)]


def inputs(count: int, n: int = 1000) -> list[Array]:
    return list(np.random.default_rng(n).standard_normal((count, n)).astype(np.float32))


def axpy(a: TensorValue, b: TensorValue, c: TensorValue) -> TensorValue:
    return ops.add(ops.mul(a, b), c)


def matmul_graph() -> Graph:
    with Graph("g", input_types=[TensorType(F32, ["n", 40], CPU_0), TensorType(F32, [40, 24], CPU_0)]) as graph:
        graph.output(ops.matmul(*graph.inputs))
    return graph


@on_known_machine
def test_off_has_no_fma_instruction() -> None:
    def everything(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        total = ops.sub(axpy(a, b, c), ops.mul(a, c))
        return [total, ops.div(total, b), ops.sqrt(ops.abs(total)), ops.maximum(ops.negate(total), c)]

    options = CompileOptions(fp_contract="off")
    assert not has(FMA, instructions(graph_of(everything, 3), options))
    assert not has(FMA, instructions(matmul_graph(), options))


def test_off_keeps_the_fma_of_expansions_and_no_other() -> None:
    graph = graph_of(lambda a, b, c: ops.exp(ops.add(ops.mul(ops.sin(a), b), ops.log(c))), 3)
    module = graph.module
    lower(module, "tile", CompileOptions(fp_contract="off"), host_target(None))
    ExpandMathPass().apply(Context(), module)
    found = [op for op in module.walk() if isinstance(op, math.FmaOp)]
    assert {str(op.attributes[EXPANSION_MARK].data) for op in found} == {"exp", "sin", "log"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [n for n, c in CONTRACTS.items() if F32 in c.dtypes and n != "fma"])
def test_off_holds_for_every_op_of_the_library(name: str) -> None:
    contract = CONTRACTS[name]
    if contract.layout == "examples":
        graph = graph_of_calls(contract, calls_of(contract, [F32]))
    else:
        graph = graph_of_variants(contract, [F32], [["n", "n"]] * contract.operands)
    module = graph.module
    lower(module, "tile", CompileOptions(fp_contract="off"), host_target(None))
    ExpandMathPass().apply(Context(), module)
    for op in module.walk():
        assert not isinstance(op, math.FmaOp) or EXPANSION_MARK in op.attributes
        assert not isinstance(op, tile.DotOp) or not op.fused.value.data


@pytest.mark.parametrize(("mode", "names"), [("off", ["arith.mulf", "arith.addf"]), ("on", ["math.fma"])])
def test_multiply_add_of_a_recipe_follows_the_mode(mode: str, names: list[str]) -> None:
    block = Block(arg_types=[f32] * 3)
    builder = TileBuilder(block)
    builder.fp_contract = mode
    builder.multiply_add(*(Value(builder, argument) for argument in block.args))
    assert [op.name for op in block.ops] == names


@on_known_machine
def test_on_fuses_inside_a_recipe_only() -> None:
    options = CompileOptions(fp_contract="on")
    assert not has(FMA, instructions(graph_of(axpy, 3), options))
    assert has(FMA, instructions(matmul_graph(), options))


@on_known_machine
def test_fast_makes_one_fma_of_a_product_and_a_sum() -> None:
    options = CompileOptions(fp_contract="fast")
    graph = graph_of(axpy, 3)
    assert emit(graph.module, "tile", options).count("math.fma") == 1
    code = instructions(graph, options)
    assert has(FMA, code)
    assert not has(PRODUCT, code)
    assert not has(SUM, code)


@on_known_machine
def test_fast_fuses_the_left_of_two_products() -> None:
    options = CompileOptions(fp_contract="fast")
    graph = graph_of(lambda a, b, c, d: ops.add(ops.mul(a, b), ops.mul(c, d)), 4)
    code = instructions(graph, options)
    assert has(FMA, code)
    assert has(PRODUCT, code)
    assert not has(SUM, code)
    a, b, c, d = inputs(4)
    (result,) = run(graph, options, a, b, c, d)
    assert result.tobytes() == exact_fma(a, b, c * d).tobytes()
    assert result.tobytes() != exact_fma(c, d, a * b).tobytes()


@pytest.mark.parametrize(
    ("build", "reference"),
    [
        (lambda a, b, c: ops.sub(ops.mul(a, b), c), lambda a, b, c: exact_fma(a, b, -c)),
        (lambda a, b, c: ops.sub(c, ops.mul(a, b)), lambda a, b, c: exact_fma(-a, b, c)),
        (lambda a, b, c: ops.add(c, ops.mul(a, b)), exact_fma),
        (
            lambda a, b, c: ops.fma(a, b, c, negate_product=True, negate_addend=True),
            lambda a, b, c: exact_fma(-a, b, -c),
        ),
    ],
)
def test_signs_of_product_and_addend(build: Callable[..., Any], reference: Callable[..., Array]) -> None:
    arrays = inputs(3)
    (result,) = run(graph_of(build, 3), CompileOptions(fp_contract="fast"), *arrays)
    assert result.tobytes() == reference(*arrays).tobytes()


def test_fast_rounds_a_product_by_itself_for_its_other_users() -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        product = ops.mul(a, b)
        return [ops.add(product, c), product, ops.negate(product)]

    a, b, c = inputs(3)
    total, product, negated = run(graph_of(build, 3), CompileOptions(fp_contract="fast"), a, b, c)
    assert total.tobytes() == exact_fma(a, b, c).tobytes()
    assert product.tobytes() == (a * b).tobytes()
    assert negated.tobytes() == (-(a * b)).tobytes()


@on_known_machine
@pytest.mark.parametrize("flags", ["none", "nsz"])
def test_fast_leaves_ops_alone_whose_own_flags_lack_contract(flags: str) -> None:
    """The function attribute ``fp-contract="fast"`` alone does not make LLVM fuse either."""

    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> TensorValue:
        return ops.add(ops.mul(a, b, fastmath=flags), c)

    options = CompileOptions(fp_contract="fast")
    graph = graph_of(build, 3)
    assert '"fp-contract"="fast"' in emit(graph.module, "ll", options)
    assert not has(FMA, instructions(graph, options))


@on_known_machine
def test_fast_leaves_products_under_reductions_and_views_alone() -> None:
    with Graph("g", input_types=[TensorType(F32, ["m", 64], CPU_0)] * 2) as graph:
        a, b = graph.inputs
        row = ops.mul(a, b)
        graph.output(ops.sum(row, axis=-1), ops.add(ops.broadcast_to(ops.sum(row, axis=-1), row.shape), a))
    options = CompileOptions(fp_contract="fast")
    assert "math.fma" not in emit(graph.module, "tile", options)
    assert not has(FMA, instructions(graph, options))


def test_on_contracts_ops_that_ask_for_it_themselves() -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        outside = axpy(a, b, c)
        with Graph.current().fastmath("contract"):
            return [outside, axpy(a, b, c)]

    a, b, c = inputs(3)
    outside, inside = run(graph_of(build, 3), CompileOptions(fp_contract="on"), a, b, c)
    assert outside.tobytes() == (a * b + c).tobytes()
    assert inside.tobytes() == exact_fma(a, b, c).tobytes()


def test_no_contract_flag_is_left_where_fma_are_explicit() -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> TensorValue:
        with Graph.current().fastmath("contract", "nsz"):
            return ops.div(axpy(a, b, c), a)

    for mode in ("on", "fast"):
        text = emit(graph_of(build, 3).module, "ll", CompileOptions(fp_contract=mode))
        assert "fdiv nsz <" in text
        assert not re.search(r"\bcontract\b", text.replace('"fp-contract"', ""))


@on_known_machine
def test_llvm_strategy_puts_the_flags_into_the_text_and_leaves_the_rest_to_llvm() -> None:
    graph = graph_of(axpy, 3)
    options = CompileOptions(fp_contract="fast", strategy="llvm", fastmath={"nsz"})
    text = emit(graph.module, "ll", options)
    assert re.search(r"fmul nsz contract <\d+ x float>", text)
    assert re.search(r"fadd nsz contract <\d+ x float>", text)
    assert "llvm.fma" not in text
    assert '"fp-contract"="fast"' in text
    assert has(FMA, instructions(graph, options))
    assert compile_graph(graph, options).contractions == ()


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_functions_carry_the_mode_down_to_llvm(mode: Any) -> None:
    text = emit(graph_of(axpy, 3).module, "ll", CompileOptions(fp_contract=mode))
    kernels = [line for line in text.splitlines() if re.match(r"define .*@(g\.0|\w*(mul|fma)\w*)\(", line)]
    assert len(kernels) == 2
    assert all(f'"fp-contract"="{mode}"' in line for line in kernels)


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_matmul_is_a_chain_of_fma_or_of_products_and_sums(mode: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((5, 40)).astype(np.float32), rng.standard_normal((40, 24)).astype(np.float32)
    (result,) = run(matmul_graph(), CompileOptions(fp_contract=mode), a, b)
    expected = np.zeros((5, 24), np.float32)
    for k in range(40):
        left, right = np.broadcast_arrays(a[:, k : k + 1], b[k : k + 1])
        expected = left * right + expected if mode == "off" else exact_fma(left, right, expected)
    assert result.tobytes() == expected.tobytes()
