"""Graphs evaluated op by op: in float64, and in their own types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    BufferType,
    CompileError,
    DeviceRef,
    DType,
    Graph,
    GraphError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.opdef import OpDef
from halfulp.compiler.registry import (
    KernelDef,
    OperandSpec,
    OutputSpec,
    register_kernel,
    register_op,
    unregister_kernel,
    unregister_op,
)
from halfulp.ops import pallas as pl
from halfulp.ops.contract import CONTRACTS, Contract
from halfulp.ops.logprobs_reference import log_probabilities_reference
from halfulp.runtime.debug.evaluation import evaluate, evaluate_in_float64, operand_scale
from halfulp.runtime.debug.running import run_once
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

Array = np.ndarray[Any, np.dtype[Any]]
F32 = DType.float32


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def test_float64_is_that_of_numpy() -> None:
    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        return ops.div(ops.sum(ops.mul(ops.exp(x), y)), 3.0)

    graph = Graph("g", forward, [TensorType(F32, ["rows", "n"])] * 2)
    x, y = numbers(3, 100), numbers(3, 100)
    (exact,) = evaluate_in_float64(graph, [x, y]).outputs
    wide = np.exp(x.astype(np.float64)) * y
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, wide.sum(axis=1, keepdims=True) / 3, rtol=1e-14)


def test_casts_to_floats_do_not_round_and_casts_to_ints_do() -> None:
    def forward(x: TensorValue) -> list[TensorValue]:
        return [ops.cast(ops.cast(x, DType.bfloat16), F32), ops.cast(ops.cast(x, DType.int32), F32)]

    x = np.array([1.0001, -2.7], np.float32)
    kept, whole = evaluate_in_float64(Graph("g", forward, [TensorType(F32, [2])]), [x]).outputs
    assert kept.tolist() == x.astype(np.float64).tolist()
    assert whole.tolist() == [1, -2]


def test_constants_weights_and_sizes_that_are_expressions() -> None:
    def forward(x: TensorValue) -> TensorValue:
        both = ops.concat([x, ops.mul(x, weight)], axis=0)
        return ops.reshape(ops.add(both, 0.5), [both.shape[0] * 4])

    weight = Weight("w", F32, [4])
    graph = Graph("g", forward, [TensorType(F32, ["n", 4])])
    x, w = numbers(3, 4), numbers(4)
    (exact,) = evaluate_in_float64(graph, [x], {"w": w}).outputs
    wide = x.astype(np.float64)
    assert exact.tolist() == (np.concatenate([wide, wide * w]) + 0.5).ravel().tolist()


def test_op_without_float64_uses_the_reference_of_its_contract() -> None:
    graph = Graph("g", lambda x: ops.gelu(x, approximate="tanh"), [TensorType(F32, ["n"])])
    x = numbers(50)
    (exact,) = evaluate_in_float64(graph, [x]).outputs
    wide = x.astype(np.float64)
    by_hand = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(exact, by_hand, rtol=1e-12)


def test_log_probabilities_have_a_reference() -> None:
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=2)
    offsets = np.array([0, 2, 5], np.uint32)
    logits = numbers(5, 40) * 5
    inputs = [logits, np.arange(5, dtype=np.uint32), np.array([7, 8], np.uint32), *[offsets] * 4]
    trace = evaluate_in_float64(graph, inputs)
    ours = run_once(graph, _options(), inputs, {})
    np.testing.assert_allclose(ours[0], trace.outputs[0], atol=4e-6)
    assert ours[1].tolist() == trace.outputs[1].tolist()
    assert trace.in_own_precision == ()
    assert log_probabilities_reference(*inputs, levels=2)[0].tolist() == trace.outputs[0].tolist()


def _options() -> Any:
    from halfulp.runtime.debug.modes import mode_options

    return mode_options("on")


def test_kernel_without_reference_is_named() -> None:
    def build(entry: Any, call: Any, operands: Any, outputs: Any) -> None:
        def body(k: Any) -> None:
            x, y = k.arguments
            (block,) = k.program_ids
            k.store(k.binary("add", k.load(k.window(x, [block], [64])), 1.0), k.window(y, [block], [64]))

        entry.launch("plus_one", [operands[0], outputs[0]], [(entry.dim(outputs[0], 0) + 63) // 64], body)

    spec = KernelDef("plus_one", (OperandSpec("x", F32, ("n",)),), (OutputSpec("y", F32, ("n",)),), build)
    register_kernel(spec)
    try:
        with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
            (x,) = graph.inputs
            (y,) = ops.custom("plus_one", DeviceRef.CPU(), [ops.mul(x, 0.1)], [TensorType(F32, ["n"])])
            graph.output(y)
        trace = evaluate_in_float64(graph, [np.array([3, 5], np.float32)])
        tenths = (np.array([3.0, 5.0]) * np.float64(np.float32(0.1))).astype(np.float32)
        assert trace.outputs[0].tolist() == (tenths + np.float32(1)).tolist()
        assert trace.in_own_precision == ("plus_one",)
    finally:
        unregister_kernel("plus_one")


def test_pallas_kernels_with_symbolic_sizes() -> None:
    def add_one(x_ref: Any, y_ref: Any) -> None:
        y_ref[...] = x_ref[...] + 1.0

    def one_more(x: TensorValue) -> TensorValue:
        block = pl.BlockSpec((4,), lambda i: i)
        shape = pl.ShapeDtypeStruct(x.shape, x.dtype)
        result: TensorValue = pl.pallas_call(add_one, shape, grid=(2,), in_specs=[block], out_specs=block)(x)
        return result

    def forward(x: TensorValue) -> list[TensorValue]:
        return [one_more(value) for value in (x, ops.concat([x, x]), x[1:])]

    trace = evaluate_in_float64(Graph("g", forward, [TensorType(F32, ["n"])]), [np.array([1, 2, 3], np.float32)])
    assert [output.tolist() for output in trace.outputs] == [[2, 3, 4], [2, 3, 4, 2, 3, 4], [3, 4]]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float64])
def test_own_types_give_the_bits_of_the_whole_graph(dtype: Any) -> None:
    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        return ops.softmax(ops.add(ops.mul(x, y), ops.tanh(x)))

    graph = Graph("g", forward, [TensorType(DType.from_numpy(dtype), ["rows", 33])] * 2)
    inputs = [numbers(2, 33, dtype=dtype), numbers(2, 33, dtype=dtype)]
    (expected,) = run_once(graph, _options(), inputs, {})
    (found,) = evaluate(graph, inputs).outputs
    assert found.tobytes() == expected.tobytes()


def test_replacement_stands_for_an_op() -> None:
    graph = Graph("g", lambda x: ops.add(ops.exp(x), 1.0), [TensorType(F32, ["n"])])
    replace: Callable[..., Any] = lambda trace, op: [np.zeros(2, np.float32)] if op.callee.data == "exp" else None  # noqa: E731
    assert evaluate(graph, [numbers(2)], replace=replace).outputs[0].tolist() == [1, 1]


def only_f32(operands: Any, parameters: Any) -> Any:
    if operands[0].dtype is not F32:
        raise GraphError("it takes float32 only")
    return operands


@pytest.mark.parametrize("stated", [False, True])
def test_op_that_takes_no_float64(stated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = register_op(OpDef("only_f32", "map", ("x",), only_f32))
    try:
        graph = Graph("g", lambda x: Graph.current().apply(definition, [x]), [TensorType(F32, ["n"])])
        if stated:
            contract = Contract("only_f32", ops.negate, 1, (F32,), 0.5, lambda x: x * 3)
            monkeypatch.setitem(CONTRACTS, "only_f32", contract)
            assert evaluate_in_float64(graph, [np.ones(2, np.float32)]).outputs[0].tolist() == [3, 3]
        else:
            with pytest.raises(CompileError) as error:
                evaluate_in_float64(graph, [np.ones(2, np.float32)])
            assert error.value.message == (
                'graph.apply "only_f32" cannot be computed in float64: ops.only_f32 on float64 [2]: '
                "it takes float32 only"
            )
    finally:
        unregister_op("only_f32")


def test_scale_of_a_sum_is_its_larger_operand() -> None:
    def forward(x: TensorValue, y: TensorValue) -> list[TensorValue]:
        total = ops.sub(ops.mul(x, y), y)
        return [total, ops.cast(total, DType.bfloat16), ops.fma(x, y, y), ops.exp(total)]

    graph = Graph("g", forward, [TensorType(F32, ["n"])] * 2)
    x, y = np.array([3, 0.5], np.float32), np.array([-2, 4], np.float32)
    trace = evaluate_in_float64(graph, [x, y])
    scales = [operand_scale(trace, value) for value in trace.graph.outputs]
    assert [None if scale is None else scale.tolist() for scale in scales] == [[6, 4], [6, 4], [6, 4], None]


def test_branches_and_loops() -> None:
    def forward(x: TensorValue) -> TensorValue:
        def more(i: TensorValue, y: TensorValue) -> TensorValue:
            return ops.less(i, 3)

        def double(i: TensorValue, y: TensorValue) -> list[TensorValue]:
            return [ops.add(i, 1), ops.mul(y, 1.5)]

        start = ops.constant(np.array(0, np.int64))
        _, grown = ops.while_loop([start, x], more, double)
        positive = ops.greater(ops.reshape(ops.sum(x), []), 0.0)
        tensor = TensorType(F32, ["n"])
        (result,) = ops.cond(positive, [tensor], lambda: ops.mul(grown, 0.1), lambda: ops.negate(grown))
        return result

    graph = Graph("g", forward, [TensorType(F32, ["n"])])
    for sign in (1, -1):
        x = np.array([1, 2], np.float32) * sign
        grown = x.astype(np.float64) * 1.5**3
        (exact,) = evaluate_in_float64(graph, [x]).outputs
        assert exact.tolist() == (grown * np.float64(np.float32(0.1)) if sign > 0 else -grown).tolist()


def test_buffer_that_the_graph_changes() -> None:
    with Graph("g", input_types=[BufferType(F32, [2]), TensorType(F32, [2])]) as graph:
        cache, x = graph.inputs
        ops.buffer_store(cache, ops.add(ops.buffer_load(cache), x))
        graph.output(ops.mul(ops.buffer_load(cache), x))
    held, x = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    assert evaluate_in_float64(graph, [held, x]).outputs[0].tolist() == [12, 35]
    assert run_once(graph, _options(), [held, x], {})[0].tolist() == [12, 35]
    assert held.tolist() == [1, 2]
