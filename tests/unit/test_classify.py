"""Which rounding explains another program's result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, GraphError, GraphTypeError, TensorType
from halfulp.compiler.interpreter.exact import fma
from halfulp.runtime.debug import classify, classify_graph
from halfulp.runtime.debug.classify import NONE, element_labels
from halfulp.runtime.debug.orders import DOT_ORDERS, SUM_ORDERS
from halfulp.runtime.debug.readings import (
    EXCESS,
    FMA_LEFT,
    FMA_RIGHT,
    ORDER,
    SEPARATE,
    dot_readings,
    multiply_add_readings,
    sum_readings,
)
from halfulp.runtime.debug.tensor_files import read_tensors

F32, BF16 = DType.float32, DType.bfloat16
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")


def numbers(count: int, *shape: int) -> list[Array]:
    return [np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i in range(count)]


def test_readings_of_a_sum_of_two_products() -> None:
    a, b, c, d = numbers(4, 200)
    readings = multiply_add_readings(a, b, c, d)
    assert readings[SEPARATE].tobytes() == (a * b + c * d).tobytes()
    assert readings[FMA_LEFT].tobytes() == fma(a, b, c * d).tobytes()
    assert readings[FMA_RIGHT].tobytes() == fma(c, d, a * b).tobytes()
    wide = [x.astype(np.float64) for x in (a, b, c, d)]
    assert readings[EXCESS].tobytes() == (wide[0] * wide[1] + wide[2] * wide[3]).astype(np.float32).tobytes()
    differences = multiply_add_readings(a, b, c, d, subtract=True)
    assert differences[SEPARATE].tobytes() == (a * b - c * d).tobytes()
    assert differences[FMA_LEFT].tobytes() == fma(a, b, -(c * d)).tobytes()
    assert differences[FMA_RIGHT].tobytes() == fma(-c, d, a * b).tobytes()


@pytest.mark.parametrize("reading", [FMA_LEFT, FMA_RIGHT])
def test_the_side_of_an_fma_is_told_apart(reading: str) -> None:
    readings = multiply_add_readings(*numbers(4, 500))
    found = classify(readings[reading], readings)
    assert found.cause == reading
    assert reading in found.whole
    assert found.explained == found.differing > 50


def test_each_element_may_have_its_own_cause() -> None:
    readings = multiply_add_readings(*numbers(4, 500))
    theirs = readings[FMA_LEFT].copy()
    theirs[300:] = readings[FMA_RIGHT][300:]
    theirs[0] += 1
    found = classify(theirs, readings)
    assert [e.reading for e in found.explanations] == [FMA_LEFT, FMA_RIGHT, NONE]
    assert found.explanations[2].assigned == 1
    assert found.explanations[2].examples[0].index == (0,)
    assert (found.cause, found.whole, found.explained) == (None, (), found.differing - 1)
    labels = element_labels(theirs, readings, readings[SEPARATE])
    names = list(readings)
    assert labels[0] == -1
    assert {names[n] for n in labels[300:] if n >= 0} <= {FMA_LEFT, FMA_RIGHT}
    assert np.array_equal(labels == -2, theirs == readings[SEPARATE])
    assert "no reading: 1" in str(found)


def test_equal_results_have_no_cause() -> None:
    readings = multiply_add_readings(*numbers(3, 5))
    found = classify(readings[SEPARATE], readings)
    assert (found.differing, found.explanations, found.cause) == (0, (), None)
    assert str(found) == "all 5 elements have our bits"


def test_nan_of_any_payload_is_one_value() -> None:
    ours = np.array([np.nan, 1], np.float32)
    theirs = np.array([0x7FC00001, 0x3F800000], np.uint32)
    assert classify(theirs, {SEPARATE: ours}).differing == 0


def test_cross_product_of_equal_products() -> None:
    """Another compiler's result of ``a1 * b2 - a2 * b1`` for equal operands: 1 in one graph, 0 op by op."""
    a, b = np.full(3, 2396747, np.float32), np.full(3, 7, np.float32)
    readings = multiply_add_readings(a, b, a, b, subtract=True)
    assert classify(np.zeros(3, np.float32), readings).differing == 0
    assert classify(np.ones(3, np.float32), readings).cause == FMA_LEFT
    assert classify(-np.ones(3, np.float32), readings).cause == FMA_RIGHT

    graph = Graph("cross", lambda a, b: ops.sub(ops.mul(a, b), ops.mul(a, b)), [TensorType(F32, [3])] * 2)
    assert classify_graph(graph, [np.ones(3, np.float32)], [a, b])["output_0"].cause == FMA_LEFT
    assert classify_graph(graph, [-np.ones(3, np.float32)], [a, b])["output_0"].cause == FMA_RIGHT


def test_graph_in_bf16_under_excess() -> None:
    graph = Graph("g", lambda a, b, c: ops.add(ops.mul(a, b), c), [TensorType(BF16, ["n"])] * 3)
    inputs = [x.astype(ml_dtypes.bfloat16) for x in numbers(3, 300)]
    wide = [x.astype(np.float32) for x in inputs]
    theirs = (wide[0] * wide[1] + wide[2]).astype(ml_dtypes.bfloat16)
    found = classify_graph(graph, [theirs], inputs)["output_0"]
    assert found.cause == EXCESS
    assert FMA_LEFT in found.explanations[0].also


@pytest.mark.parametrize("name", [n for n in SUM_ORDERS if n not in ("in sequence in float32",)])
def test_order_of_a_sum_is_recognised(name: str) -> None:
    (x,) = numbers(1, 50, 1000)
    graph = Graph("g", lambda x: ops.sum(x), [TensorType(F32, ["rows", "n"])])
    found = classify_graph(graph, [SUM_ORDERS[name](x)[:, None]], [x])["output_0"]
    assert ORDER + name in found.whole
    assert (found.differing > 0) == (name != "64 lanes")  # which is ours, up to 4096 elements


@pytest.mark.parametrize("name", [n for n in DOT_ORDERS if n != "fma in sequence in float32"])
def test_order_of_a_matrix_product_is_recognised(name: str) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 12, 12)).astype(np.float32)
    a, b = np.tile(a, (1, 45)), np.tile(b, (45, 1))
    readings = dot_readings(a, b)
    found = classify(DOT_ORDERS[name](a, b), readings)
    assert ORDER + name in found.whole


def test_matrix_product_of_a_graph() -> None:
    a, b = numbers(2, 16, 16)
    graph = Graph("g", lambda a, b: ops.exp(ops.matmul(a, b)), [TensorType(F32, [16, 16])] * 2)
    off = CompileOptions(fp_contract="off")
    from halfulp.runtime.debug.running import run_once

    (theirs,) = run_once(graph, off, [a, b], {})
    assert classify_graph(graph, [theirs], [a, b])["output_0"].cause == SEPARATE


def test_sums_by_hand() -> None:
    x = np.array([[1e8, 1, -1e8, 1]], np.float32)
    readings = sum_readings(x)
    assert readings[ORDER + "in sequence"].tolist() == [1]
    assert readings[ORDER + "backwards"].tolist() == [0]
    assert readings[ORDER + "pairwise"].tolist() == [0]
    assert readings[ORDER + "in sequence in float64"].tolist() == [2]
    assert sum_readings(np.zeros((2, 0), np.float32))[ORDER + "pairwise"].tolist() == [0, 0]


def test_results_that_cannot_be_compared() -> None:
    ours = np.zeros(3, np.float32)
    with pytest.raises(GraphError, match=r"^the other result has shape \[4\], but ours is \[3\]$"):
        classify(np.zeros(4, np.float32), {SEPARATE: ours})
    with pytest.raises(
        GraphTypeError, match=r"^the other result is float64, but ours is float32; compare results of one"
    ):
        classify(np.zeros(3), {SEPARATE: ours})
    with pytest.raises(GraphError, match=r"^classify\(\) needs at least one reading; "):
        classify(ours, {})
    graph = Graph("g", lambda x: [x, ops.negate(x)], [TensorType(F32, [3])])
    with pytest.raises(GraphError) as error:
        classify_graph(graph, [ours, ours, ours], [ours])
    assert str(error.value) == ("graph 'g' has 2 outputs, but 3 are given; name them output_0, output_1 to give some")


def test_outputs_may_be_left_out_by_name() -> None:
    graph = Graph("g", lambda x: [x, ops.negate(x)], [TensorType(F32, [3])])
    x = np.ones(3, np.float32)
    assert list(classify_graph(graph, {"output_1": -x}, [x])) == ["output_1"]


def test_json_holds_everything() -> None:
    readings = multiply_add_readings(*numbers(3, 100))
    found = classify(readings[FMA_LEFT], readings)
    assert json.loads(found.to_json())["explanations"][0]["reading"] == FMA_LEFT


# -- files


def test_files_of_numpy(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.arange(3))
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.zeros(1))
    assert read_tensors(tmp_path / "one.npy")[""].tolist() == [0, 1, 2]
    assert list(read_tensors(tmp_path / "two.npz")) == ["a", "b"]
    graph = Graph("g", lambda x: ops.mul(x, 2.0), [TensorType(F32, [2])])
    np.save(tmp_path / "out.npy", np.array([2, 4], np.float32))
    assert classify_graph(graph, tmp_path / "out.npy", [np.array([1, 2], np.float32)])["output_0"].differing == 0


def test_bits_of_a_scalar_are_a_scalar() -> None:
    ours = np.array(1.5, np.float32)
    assert classify(ours.view(np.uint32), {"ours": ours}).differing == 0


def test_integers_beside_integers_of_another_type_are_not_taken_for_bits() -> None:
    with pytest.raises(GraphTypeError) as caught:
        classify(np.array([-1], np.int8), {"ours": np.array([255], np.uint8)})
    assert str(caught.value) == "the other result is int8, but ours is uint8; compare results of one type"


def test_bf16_in_a_file_of_numpy_is_found_by_its_bits(tmp_path: Path) -> None:
    graph = Graph("g", lambda x: ops.mul(x, 2.0), [TensorType(BF16, [2])])
    x = np.array([1, 2], ml_dtypes.bfloat16)
    np.save(tmp_path / "out.npy", (x * 2).astype(ml_dtypes.bfloat16))
    assert np.load(tmp_path / "out.npy").dtype.kind == "V"
    assert classify_graph(graph, str(tmp_path / "out.npy"), [x])["output_0"].differing == 0
