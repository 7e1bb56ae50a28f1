"""Numerics of single ops: compiled as interpreted, and each op as it would be in a graph of that mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.passes.set_op_numerics import SetOpNumericsPass
from halfulp.compiler.pipeline import lower
from halfulp.runtime import InferenceSession

F32, BF16 = DType.float32, DType.bfloat16
ON = CompileOptions(fp_contract="on", fastmath="none")
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")


def with_numerics(graph: Graph, *passes: SetOpNumericsPass) -> Graph:
    def change(module: ModuleOp) -> None:
        for each in passes:
            each.apply(Context(), module)

    return graph.rewritten(change)


def run(graph: Graph, options: CompileOptions, arrays: list[Array]) -> list[Array]:
    """The outputs, which the interpreter gives too."""
    outputs = [buffer.to_numpy() for buffer in InferenceSession().load(graph, options).execute(*arrays)]
    module = graph.module
    lower(module, "tile", options, host_target(None))
    (entry,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    buffers = [*(array.copy() for array in arrays), *(np.zeros_like(output) for output in outputs)]
    interpret(module, entry.sym_name.data, buffers)
    for number, output in enumerate(outputs):
        assert_same_bits(output, buffers[len(arrays) + number], f"output {number}")
    return outputs


def numbers(dtype: DType, *shape: int) -> list[Array]:
    return [np.random.default_rng(i).standard_normal(shape).astype(dtype.to_numpy()) for i in range(2)]


def test_two_matrix_products_of_one_graph_under_two_modes() -> None:
    types = [TensorType(F32, [8, 8])] * 2
    graph = Graph("g", lambda a, b: [ops.matmul(a, b), ops.matmul(b, a)], types)
    arrays = numbers(F32, 8, 8)
    first, second = run(with_numerics(graph, SetOpNumericsPass(ops=(1,), fp_contract="off")), ON, arrays)
    fused, separate = run(graph, ON, arrays), run(graph, ON.replace(fp_contract="off"), arrays)
    assert_same_bits(first, fused[0], "the product left alone")
    assert_same_bits(second, separate[1], "the product that is off")
    assert fused[1].tobytes() != separate[1].tobytes()


def test_one_kernel_with_two_modes() -> None:
    """Ops that fuse into one kernel keep numerics of their own."""

    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(a, b), b), ops.sub(ops.mul(b, b), a)]

    graph = Graph("g", forward, [TensorType(F32, [300])] * 2)
    arrays = numbers(F32, 300)
    mixed = run(with_numerics(graph, SetOpNumericsPass(ops=(3,), fp_contract="fast")), ON, arrays)
    on, fast = run(graph, ON, arrays), run(graph, ON.replace(fp_contract="fast"), arrays)
    assert_same_bits(mixed[0], on[0], "the sum left alone")
    assert_same_bits(mixed[1], fast[1], "the difference that fuses")
    assert on[1].tobytes() != fast[1].tobytes()


@pytest.mark.parametrize(("general", "own"), [("round-each", "excess"), ("excess", "round-each")])
def test_roundings_of_bf16_are_those_of_each_op(general: Any, own: str) -> None:
    graph = Graph("g", lambda a, b: ops.sub(ops.mul(ops.add(a, b), b), a), [TensorType(BF16, [300])] * 2)
    arrays = numbers(BF16, 300)
    mixed = with_numerics(graph, SetOpNumericsPass(ops=(1,), bf16=own))
    (found,) = run(mixed, ON.replace(bf16=general), arrays)

    def rounded(x: Array) -> Array:
        return x.astype(BF16.to_numpy()).astype(np.float32)

    a, b = (array.astype(np.float32) for array in arrays)
    total = rounded(a + b) if general == "round-each" else a + b
    product = total * b if own == "excess" else rounded(total * b)
    assert_same_bits(found, (product - a).astype(BF16.to_numpy()), general)


def test_user_flags_win_over_the_numerics_of_an_op() -> None:
    types = [TensorType(F32, [300])] * 2
    graph = Graph("g", lambda a, b: ops.add(ops.mul(a, b), b, fastmath="none"), types)
    arrays = numbers(F32, 300)
    own = with_numerics(graph, SetOpNumericsPass(ops=(0, 1), fp_contract="fast"))
    assert_same_bits(run(own, ON, arrays)[0], run(graph, ON, arrays)[0], "no fma")
