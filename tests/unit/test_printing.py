"""What graphs print: the texts, the options of a session, and when it is written."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    DeviceRef,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    NotFoundError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.runtime import ExecutionError, InferenceSession, PrintStyle
from halfulp.runtime.loading import forget_loaded
from halfulp.runtime.tensor_text import compact_text, full_text

F32, I64 = DType.float32, DType.int64
VECTOR = TensorType(F32, ["n"])
X = np.array([1.0, 2.5, -3.0], np.float32)


def array(elements: Any, dtype: DType = F32) -> np.ndarray[Any, Any]:
    return np.array(elements, dtype.to_numpy())


def graph_of(*types: TensorType) -> Callable[[Callable[..., Any]], Graph]:
    return lambda forward: Graph("g", forward, types)


def graph_that_prints(label: str, value: Callable[[TensorValue], TensorValue] = lambda x: x) -> Graph:
    with Graph("g", input_types=[VECTOR]) as graph:
        value(graph.inputs[0]).print(label)
        graph.output(graph.inputs[0])
    return graph


@graph_of(VECTOR)
def two_prints(x: TensorValue) -> TensorValue:
    x.print("x")
    y = x + 1.0
    ops.print(y, label="y")
    return y * y


TWO_LINES = (
    "x = tensor([[1.0000, 2.5000, -3.0000]], dtype=f32, shape=[3])\n"
    "y = tensor([[2.0000, 3.5000, -2.0000]], dtype=f32, shape=[3])\n"
)


# --- texts ---


@pytest.mark.parametrize(
    ("elements", "dtype", "text"),
    [
        ([1.0, 2.5, -0.0], F32, "tensor([[1.0000, 2.5000, -0.0000]], dtype=f32, shape=[3])"),
        ([[1, -2], [3, 4]], F32, "tensor([[1.0000, -2.0000],\n[3.0000, 4.0000]], dtype=f32, shape=[2, 2])"),
        ([0.5] * 6, F32, "tensor([[0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000]], dtype=f32, shape=[6])"),
        (np.arange(7), I64, "tensor([[0, 1, 2, ..., 4, 5, 6]], dtype=i64, shape=[7])"),
        (np.arange(1000), F32, "tensor([[0.0000, 1.0000, 2.0000, ..., 997.0000, 998.0000, 999.0000]], dtype=f32, "
         "shape=[1000])"),
        ([1.1e-4, 9.9e-5, 5e-5, 1e-45], F32, "tensor([[0.0001, 9.9000e-05, 5.0000e-05, 1.4013e-45]], dtype=f32, "
         "shape=[4])"),
        ([99999992, 1e8, -3.4028235e38], F32, "tensor([[99999992.0000, 1.0000e+08, -3.4028e+38]], dtype=f32, "
         "shape=[3])"),
        ([np.nan, np.inf, -np.inf], F32, "tensor([[nan, inf, -inf]], dtype=f32, shape=[3])"),
        ([1.5, 65504], DType.float16, "tensor([[1.5000, 65504.0000]], dtype=f16, shape=[2])"),
        ([1.0078125, 3e38], DType.bfloat16, "tensor([[1.0078, 3.0041e+38]], dtype=bf16, shape=[2])"),
        ([5e-324, 1e300], DType.float64, "tensor([[4.9407e-324, 1.0000e+300]], dtype=f64, shape=[2])"),
        ([2**64 - 1], DType.uint64, "tensor([[18446744073709551615]], dtype=ui64, shape=[1])"),
        ([-128, 127], DType.int8, "tensor([[-128, 127]], dtype=i8, shape=[2])"),
        ([True, False], DType.bool, "tensor([[True, False]], dtype=bool, shape=[2])"),
        (1.5, DType.bfloat16, "tensor(1.5000, dtype=bf16, shape=[])"),
        (True, DType.bool, "tensor(True, dtype=bool, shape=[])"),
        ([], F32, "tensor([[]], dtype=f32, shape=[0])"),
        (np.zeros((0, 3)), F32, "tensor([], dtype=f32, shape=[0, 3])"),
        (np.zeros((2, 0)), F32, "tensor([[],\n[]], dtype=f32, shape=[2, 0])"),
        (np.arange(8).reshape(1, 2, 1, 2, 2), I64, "tensor([[[[[0, 1],\n[2, 3]]],\n[[[4, 5],\n[6, 7]]]]], dtype=i64, "
         "shape=[1, 2, 1, 2, 2])"),
        (np.arange(8).reshape(8, 1), I64, "tensor([[0],\n[1],\n[2],\n...,\n[5],\n[6],\n[7]], dtype=i64, "
         "shape=[8, 1])"),
    ],
)  # fmt: skip
def test_compact(elements: Any, dtype: DType, text: str) -> None:
    assert compact_text(array(elements, dtype), dtype) == text


@pytest.mark.parametrize(
    ("elements", "dtype", "precision", "text"),
    [
        ([[1.5, 2], [3, -0.0]], F32, 6, "tensor<2x2xf32> [1.500000e+00, 2.000000e+00, 3.000000e+00, -0.000000e+00]"),
        ([1 / 3], F32, 0, "tensor<1xf32> [3e-01]"),
        ([1 / 3], F32, 12, "tensor<1xf32> [3.333333432674e-01]"),
        ([5e-324], DType.float64, 3, "tensor<1xf64> [4.941e-324]"),
        ([np.nan, -np.inf], DType.float16, 6, "tensor<2xf16> [nan, -inf]"),
        ([1.0078125], DType.bfloat16, 7, "tensor<1xbf16> [1.0078125e+00]"),
        ([2**63 - 1, -(2**63)], I64, 6, "tensor<2xi64> [9223372036854775807, -9223372036854775808]"),
        ([[[[[True]], [[False]]]]], DType.bool, 6, "tensor<1x1x2x1x1xbool> [True, False]"),
        (2.0, F32, 6, "tensor<f32> [2.000000e+00]"),
        (np.zeros((3, 0)), DType.uint8, 6, "tensor<3x0xui8> []"),
    ],
)
def test_full(elements: Any, dtype: DType, precision: int, text: str) -> None:
    assert full_text(array(elements, dtype), dtype, precision) == text


def test_full_shows_every_element_and_keeps_its_value() -> None:
    values = np.random.default_rng(0).standard_normal((7, 11)).astype(np.float32)
    text = full_text(values, F32, 8)
    assert np.array_equal(np.array([float(t) for t in text.partition(" [")[2][:-1].split(", ")], np.float32),
                          values.ravel())  # fmt: skip


def test_the_largest_precision_shows_all_digits_of_the_smallest_number() -> None:
    largest_subnormal = np.nextafter(np.finfo(np.float64).tiny, 0)
    (shown,) = re.findall(r"\[(\S+)\]", full_text(array([largest_subnormal], DType.float64), DType.float64, 766))
    digits = shown.partition("e")[0].replace(".", "")
    exact = str(int(largest_subnormal * 2**537 * 2**537) * 5**1074)  # times 10**1074
    assert digits.rstrip("0") == exact.rstrip("0")
    assert len(exact.rstrip("0")) == 767


# --- sessions ---


def test_prints_come_in_the_order_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    InferenceSession().load(two_prints).execute(X)
    assert capsys.readouterr().out == TWO_LINES


def test_options_belong_to_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    session, other = InferenceSession(), InferenceSession()
    model, other_model = session.load(two_prints), other.load(two_prints)
    session.set_debug_print_options(style=PrintStyle.FULL, precision=2)
    model.execute(X)
    assert capsys.readouterr().out == (
        "x = tensor<3xf32> [1.00e+00, 2.50e+00, -3.00e+00]\ny = tensor<3xf32> [2.00e+00, 3.50e+00, -2.00e+00]\n"
    )
    other_model.execute(X)
    assert capsys.readouterr().out == TWO_LINES
    session.set_debug_print_options("NONE")
    model.execute(X)
    assert capsys.readouterr().out == ""
    session.set_debug_print_options()
    model.execute(X)
    assert capsys.readouterr().out == TWO_LINES


@pytest.mark.parametrize("style", ["BINARY_MAX", "compact", 3, None])
def test_unknown_style(style: Any) -> None:
    with pytest.raises(TypeError) as caught:
        InferenceSession().set_debug_print_options(style)
    assert str(caught.value) == (
        "set_debug_print_options: style must be a PrintStyle or its name, COMPACT, FULL, BINARY, "
        f"BINARY_MAX_CHECKPOINT or NONE, not {style!r}"
    )


@pytest.mark.parametrize("precision", [2.0, True, "6", None])
def test_precision_of_another_type(precision: Any) -> None:
    with pytest.raises(TypeError) as caught:
        InferenceSession().set_debug_print_options("FULL", precision)
    assert str(caught.value) == f"set_debug_print_options: precision must be an int, not {precision!r}"


@pytest.mark.parametrize("precision", [-1, 767])
def test_precision_out_of_range(precision: int) -> None:
    with pytest.raises(GraphError) as caught:
        InferenceSession().set_debug_print_options("FULL", precision)
    assert str(caught.value) == f"set_debug_print_options: precision must be between 0 and 766, not {precision}"


class Recorder(io.TextIOBase):
    """A stream that keeps each write."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)


def test_an_execution_is_one_write_whatever_other_threads_do(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [InferenceSession().load(two_prints) for _ in range(2)]
    recorder = Recorder()
    monkeypatch.setattr(sys, "stdout", recorder)

    def run(number: int) -> None:
        for _ in range(50):
            models[number % 2].execute(X)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.writes == [TWO_LINES] * 200


def test_a_stream_for_ascii_only_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    InferenceSession().load(graph_that_prints("größe")).execute(X)
    assert raw.getvalue() == b"gr\\xf6\\xdfe = tensor([[1.0000, 2.5000, -3.0000]], dtype=f32, shape=[3])\n"


def test_without_a_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    (y,) = InferenceSession().load(two_prints).execute(X)
    assert y.to_numpy().tolist() == [4.0, 12.25, 4.0]


# --- what can be printed, and where ---


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("layer 0", "layer 0"),
        ("", ""),
        ("say \"x\" 'y' {} %s \\", "say \"x\" 'y' {} %s \\"),
        ("größe 大きさ 🙂", "größe 大きさ 🙂"),
        ("a\nb\t\r\x00\x1b[1m\u2028", "a\\nb\\t\\r\\x00\\x1b[1m\\u2028"),
    ],
)
def test_labels(label: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any text; a label is one line, so what a terminal would act on is escaped."""
    wanted = f"{shown} = tensor([[1.0000, 2.5000, -3.0000]], dtype=f32, shape=[3])\n"
    model = InferenceSession().load(graph_that_prints(label))
    model.execute(X)
    assert capsys.readouterr().out == wanted
    model.save(tmp_path / "model")
    InferenceSession().load_compiled(tmp_path / "model").execute(X)
    assert capsys.readouterr().out == wanted


@graph_of(VECTOR)
def texts_and_values(x: TensorValue) -> TensorValue:
    ops.print("before {} ünd\nafter")
    y = x * 2.0
    y.print("y")
    ops.print("the end", "layer 0")
    ops.print("")
    return y


TEXTS = "before {} ünd\nafter\ny = tensor([[2.0000, 5.0000, -6.0000]], dtype=f32, shape=[3])\n[layer 0] the end\n\n"


def test_texts_stand_at_their_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = InferenceSession()
    model = session.load(texts_and_values)
    model.execute(X)
    assert capsys.readouterr().out == TEXTS
    model.save(tmp_path / "model")
    InferenceSession().load_compiled(tmp_path / "model").execute(X)
    assert capsys.readouterr().out == TEXTS
    session.set_debug_print_options("NONE")
    model.execute(X)
    assert capsys.readouterr().out == ""


def test_texts_of_a_called_graph(capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph("outer", lambda x: ops.call(texts_and_values, x)[0], [VECTOR])
    InferenceSession().load(graph).execute(X)
    assert capsys.readouterr().out == TEXTS


def test_a_graph_of_texts_only(capsys: pytest.CaptureFixture[str]) -> None:
    with Graph("g") as graph:
        ops.print("hello")
        graph.output()
    InferenceSession().load(graph).execute()
    assert capsys.readouterr().out == "hello\n"


def test_a_large_text_is_written_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    session = InferenceSession()
    session.set_debug_print_options("FULL", 6)
    model = session.load(two_prints)
    large = np.arange(100_000, dtype=np.float32)
    monkeypatch.setattr(sys, "stdout", recorder)
    model.execute(large)
    wanted = [f"{name} = {full_text(large + add, F32, 6)}\n" for name, add in (("x", 0), ("y", 1))]
    assert "".join(recorder.writes) == "".join(wanted)
    assert 1 < len(recorder.writes) < 5
    assert max(map(len, recorder.writes)) < 1_500_000


def test_default_label(capsys: pytest.CaptureFixture[str]) -> None:
    with Graph("g", input_types=[TensorType(I64, [])]) as graph:
        graph.inputs[0].print()
        ops.print(graph.inputs[0] + 1)
        graph.output()
    InferenceSession().load(graph).execute(array(3, I64))
    assert capsys.readouterr().out == (
        "debug_tensor = tensor(3, dtype=i64, shape=[])\ndebug_tensor = tensor(4, dtype=i64, shape=[])\n"
    )


def test_inputs_weights_constants_views_and_the_same_value_again(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        weight = Weight("w", F32, [2])
        weight.print("weight")
        ops.constant([7, 8], I64, DeviceRef.CPU()).print("constant")
        x.T.print("view")
        ops.reshape(x, (4,)).print("alias")
        y = x + weight
        y.print("first")
        y.print("again")
        ops.sum(y).print("never used")
        return y

    graph = Graph("g", forward, [TensorType(F32, [2, 2])])
    session = InferenceSession()
    model = session.load(graph, weights_registry={"w": array([10, 20])})
    (y,) = model.execute(array([[1, 2], [3, 4]]))
    assert y.to_numpy().tolist() == [[11, 22], [13, 24]]
    assert capsys.readouterr().out.replace(".0000", "").splitlines() == [
        "weight = tensor([[10, 20]], dtype=f32, shape=[2])",
        "constant = tensor([[7, 8]], dtype=i64, shape=[2])",
        "view = tensor([[1, 3],",
        "[2, 4]], dtype=f32, shape=[2, 2])",
        "alias = tensor([[1, 2, 3, 4]], dtype=f32, shape=[4])",
        "first = tensor([[11, 22],",
        "[13, 24]], dtype=f32, shape=[2, 2])",
        "again = tensor([[11, 22],",
        "[13, 24]], dtype=f32, shape=[2, 2])",
        "never used = tensor([[33],",
        "[37]], dtype=f32, shape=[2, 1])",
    ]


def test_sizes_that_the_data_decides(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        found = ops.nonzero(x, "count")
        found.print("found")
        x.print("x")
        return found

    model = InferenceSession().load(Graph("g", forward, [VECTOR]))
    for x, text in (
        ([0, 5, 6], "found = tensor([[1],\n[2]], dtype=i64, shape=[2, 1])\n"),
        ([0, 0, 0], "found = tensor([], dtype=i64, shape=[0, 1])\n"),
    ):
        model.execute(array(x))
        assert capsys.readouterr().out.startswith(text)


def test_prints_of_a_called_graph(capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph("outer", lambda x: ops.call(two_prints, ops.call(two_prints, x)[0])[0], [VECTOR])
    InferenceSession().load(graph).execute(array([1.0]))
    assert re.findall(r"^(\w) = tensor\(\[\[(.*)\]\]", capsys.readouterr().out, re.MULTILINE) == [
        ("x", "1.0000"), ("y", "2.0000"), ("x", "4.0000"), ("y", "5.0000"),
    ]  # fmt: skip


def test_a_graph_that_only_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with Graph("g", input_types=[VECTOR]) as graph:
        (graph.inputs[0] * 2.0).print("twice")
        graph.output()
    assert InferenceSession().load(graph).execute(X) == []
    assert capsys.readouterr().out == "twice = tensor([[2.0000, 5.0000, -6.0000]], dtype=f32, shape=[3])\n"


def test_nothing_is_printed_when_a_check_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        x.print("before")
        return x + ops.rebind(y, ["n"])

    model = InferenceSession().load(Graph("g", forward, [VECTOR, TensorType(F32, ["m"])]))
    with pytest.raises(ExecutionError):
        model.execute(X, X[:2])
    assert capsys.readouterr().out == ""
    model.execute(X, X)
    assert capsys.readouterr().out == "before = tensor([[1.0000, 2.5000, -3.0000]], dtype=f32, shape=[3])\n"


def test_labels_are_kept_by_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Graphs that differ in a label alone share their code, not the label."""
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HALFULP_CACHE", "1")
    for _ in range(2):
        for label in ("one", "two"):
            InferenceSession().load(graph_that_prints(label, lambda x: x + 1)).execute(X)
            assert capsys.readouterr().out == (f"{label} = tensor([[2.0000, 3.5000, -2.0000]], dtype=f32, shape=[3])\n")
        assert list(tmp_path.glob("*.bin"))
        forget_loaded()  # the second round reads the disk


# --- messages ---


@pytest.mark.parametrize(
    ("value", "label", "error", "text"),
    [
        ("a\ud800", None, GraphError, "ops.print: the text 'a\\ud800' holds half of a surrogate pair, which is no "
         "character"),
        ("text", 0, GraphTypeError, "ops.print: label must be a str, not 0"),
        (1.5, "x", GraphTypeError, "ops.print: what is printed must be a TensorValue or a Weight, not 1.5"),
        (None, 3, GraphTypeError, "ops.print: label must be a str, not 3"),
        (None, "a\ud800", GraphError, "ops.print: label 'a\\ud800' holds half of a surrogate pair, which is no "
         "character"),
    ],
)  # fmt: skip
def test_arguments(value: Any, label: Any, error: type[Exception], text: str) -> None:
    with Graph("g", input_types=[VECTOR]) as graph, pytest.raises(error) as caught:
        ops.print(graph.inputs[0] if value is None else value, label)
    assert str(caught.value).splitlines()[0] == text
    assert "test_printing.py" in str(caught.value)


def test_a_value_of_another_graph() -> None:
    other = Graph("other", lambda x: x, [VECTOR])
    with Graph("g", input_types=[VECTOR]), pytest.raises(GraphError) as caught:
        other.inputs[0].print("x")
    assert str(caught.value).splitlines()[0] == (
        "ops.print: what is printed is a value of graph 'other', not of graph 'g'; make it an input of this graph"
    )


def test_outside_of_a_graph() -> None:
    with pytest.raises(NotFoundError, match=r"^No graph found for ops\.print: "):
        two_prints.inputs[0].print()


def test_after_the_outputs() -> None:
    with Graph("g", input_types=[VECTOR]) as graph:
        graph.output(graph.inputs[0])
        with pytest.raises(GraphError, match="ended with output"):
            graph.inputs[0].print()


def test_memory_that_the_system_refuses() -> None:
    """2**60 bytes are more than a process can address."""
    graph = graph_that_prints("big", lambda x: ops.broadcast_to(ops.sum(x), [2**58]))
    model = InferenceSession().load(graph)
    with pytest.raises(MemoryError) as caught:
        model.execute(X)
    assert str(caught.value) == (
        "model 'g': the intermediate results need 1152921504606847040 bytes, and the system refuses them"
    )


def test_bf16_values_are_exact() -> None:
    patterns = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    finite = patterns[np.isfinite(patterns.astype(np.float32))]
    text = full_text(finite, DType.bfloat16, 50)
    values = np.array([float(t) for t in text.partition(" [")[2][:-1].split(", ")])
    assert np.array_equal(values, finite.astype(np.float64))
