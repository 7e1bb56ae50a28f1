"""All numeric modes of a graph side by side."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    CompileError,
    CompileOptions,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    NotFoundError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.interpreter.exact import fma
from halfulp.runtime.debug import FastmathMatrix, bisect_flags, fastmath_matrix
from halfulp.runtime.debug.comparison import verdict_of
from halfulp.runtime.debug.contractions import contracted_ops
from halfulp.runtime.debug.fastmath_html import page
from halfulp.runtime.debug.graph_picture import MOST_NODES, graph_picture
from halfulp.runtime.debug.modes import MODES, mode_options
from halfulp.runtime.debug.torch_reference import torch_reference
from halfulp.runtime.debug.ulps import ulp_distance

F32 = DType.float32
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")


def axpy(dtype: DType = F32) -> Graph:
    return Graph("axpy", lambda a, b, c: ops.add(ops.mul(a, b), c), [TensorType(dtype, ["n"])] * 3)


def triple(n: int = 1000) -> list[Array]:
    return [np.random.default_rng(i).standard_normal(n).astype(np.float32) for i in range(3)]


def test_figures_are_those_of_numpy() -> None:
    a, b, c = triple()
    result = fastmath_matrix(axpy(), [a, b, c], modes=["fast"], timed=False).mode("fast").outputs[0]
    separate, fused = a * b + c, fma(a, b, c)
    exact = a.astype(np.float64) * b + c
    distance = ulp_distance(fused, separate)
    assert result.differing == np.count_nonzero(separate != fused) > 100
    assert result.max_ulp == distance.max()
    assert result.error == pytest.approx(float(np.sqrt(np.mean((fused - exact) ** 2))))
    assert result.max_error == np.abs(fused - exact).max()
    assert result.verdict == "closer"
    assert list(result.histogram[:2]) == [int((distance == number).sum()) for number in (0, 1)]
    assert result.max_ulp is not None
    assert result.max_ulp_of_operand is not None
    assert result.max_ulp_of_operand <= 2 < result.max_ulp


def test_every_mode_runs_and_groups_share_their_bits() -> None:
    matrix = fastmath_matrix(axpy())
    assert [result.mode for result in matrix.modes] == list(MODES)
    assert all(result.seconds > 0 and result.time_ratio > 0 for result in matrix.modes)
    same = {result.mode: result.same_as for result in matrix.modes}
    assert (same["off"], same["on"], same["round-each"], same["contract"]) == (None, "off", "off", "fast")
    assert matrix.mode("fast").contractions[0].endswith("float32, flags: none")
    assert matrix.mode("fast").options == CompileOptions(fp_contract="fast", fastmath="none").key()


def test_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "fast")
    monkeypatch.setenv("HALFULP_FASTMATH", "nsz")
    matrix = fastmath_matrix(axpy(), modes=["off", "on"], timed=False)
    assert [result.outputs[0].differing for result in matrix.modes] == [0, 0]
    assert " fastmath=none " in matrix.mode("on").options


def test_modes_do_not_inherit_the_users_options_but_for_the_target() -> None:
    options = CompileOptions(fp_contract="fast", vector_bits=128, opt_level=1)
    matrix = fastmath_matrix(axpy(), modes=["on"], options=options, timed=False)
    assert matrix.mode("on").options.endswith("bf16=round-each vector_bits=128 opt_level=1")
    assert matrix.mode("on").options.startswith("fp_contract=on")


def test_worse_where_two_products_cancel() -> None:
    graph = Graph("g", lambda a, b: ops.sub(ops.mul(a, b), ops.mul(a, b)), [TensorType(F32, [1])] * 2)
    inputs = [np.array([2396747], np.float32), np.array([7], np.float32)]
    (output,) = fastmath_matrix(graph, inputs, modes=["fast"], timed=False).modes[0].outputs
    assert (output.verdict, output.max_error, output.max_ulp) == ("worse", 1.0, 0x3F800000)


def test_bf16_differs_under_excess_only() -> None:
    matrix = fastmath_matrix(axpy(DType.bfloat16), modes=["fast", "excess"], timed=False)
    assert matrix.mode("fast").outputs[0].verdict == "equal"
    assert matrix.mode("excess").outputs[0].verdict == "closer"


def test_float64_has_no_better_reference() -> None:
    (output,) = fastmath_matrix(axpy(DType.float64), modes=["fast"], timed=False).modes[0].outputs
    assert output.differing > 0
    assert (output.error, output.verdict) == (None, "unknown")


def test_integers_are_compared_by_their_bits() -> None:
    graph = Graph("g", lambda x: ops.cast(ops.mul(ops.div(x, 3.0), 9.0), DType.int32), [TensorType(F32, ["n"])])
    (output,) = (
        fastmath_matrix(graph, [np.arange(1000, dtype=np.float32)], modes=["arcp"], timed=False).modes[0].outputs
    )
    assert output.max_ulp is None
    assert (output.verdict == "equal") == (output.differing == 0)


def test_weights_are_given_or_seeded() -> None:
    weight = Weight("w", F32, [4])
    graph = Graph("g", lambda x: ops.mul(x, weight), [TensorType(F32, ["n", 4])])
    x, w = np.ones((2, 4), np.float32), np.full(4, 0.1, np.float32)
    given = fastmath_matrix(graph, [x], weights={"w": w}, modes=["on"], reference=[w * x], timed=False)
    assert given.modes[0].outputs[0].error == 0
    assert fastmath_matrix(graph, modes=["on"], timed=False) == fastmath_matrix(graph, modes=["on"], timed=False)
    with pytest.raises(GraphError, match=r"^graph 'g' has no weight 'scales'; its weights are 'w'$"):
        fastmath_matrix(graph, [x], weights={"scales": w})


def test_reference_may_be_a_function_of_float64() -> None:
    def in_double(a: Array, b: Array, c: Array) -> list[Array]:
        assert {array.dtype for array in (a, b, c)} == {np.dtype(np.float64)}
        return [a * b + c]

    given = fastmath_matrix(axpy(), triple(), modes=["fast"], reference=in_double, timed=False)
    assert given.reference == "in_double"
    own = fastmath_matrix(axpy(), triple(), modes=["fast"], timed=False)
    assert given.modes[0].outputs[0].error == pytest.approx(own.modes[0].outputs[0].error)


def test_mode_that_cannot_be_compiled_is_told_apart() -> None:
    graph = Graph("g", lambda a, b: ops.add(ops.mul(a, b), a, fastmath="contract"), [TensorType(F32, ["n"])] * 2)
    matrix = fastmath_matrix(graph, modes=["off", "on"], timed=False)
    off = matrix.mode("off")
    assert off.problem is not None
    assert off.problem.startswith("graph.apply \"add\": it has the fastmath flag 'contract', but fp_contract='off'")
    assert f"off: not possible: {off.problem}" in str(matrix)
    with pytest.raises(CompileError):
        fastmath_matrix(graph, baseline="off", timed=False)


def test_verdicts() -> None:
    inf, one, two = np.array([np.inf, 0.0]), np.array([1.0, 0.0]), np.array([2.0, 0.0])
    assert [verdict_of(one, two), verdict_of(two, one), verdict_of(one, one)] == ["closer", "worse", "equal"]
    assert [verdict_of(one, inf), verdict_of(inf, one), verdict_of(inf, inf)] == ["closer", "worse", "equal"]


def test_json_holds_everything() -> None:
    matrix = fastmath_matrix(axpy(), triple(), modes=["fast"], timed=False)
    read = json.loads(matrix.to_json())
    assert read["modes"][0]["outputs"][0]["differing"] == matrix.modes[0].outputs[0].differing
    assert read["inputs"] == "given: a [1000], b [1000], c [1000]"


def test_print_is_not_repeated_for_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        ops.print(x)
        return ops.negate(x)

    graph = Graph("g", forward, [TensorType(F32, [2])])
    fastmath_matrix(graph)
    bisect_flags(graph)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ([np.zeros(3, np.float32)], GraphError, "graph 'axpy' takes 3 inputs (a, b, c), not 1"),
        (
            {"a": np.zeros(3, np.float32), "bb": np.zeros(3, np.float32)},
            GraphError,
            "graph 'axpy' has no input 'bb'; did you mean 'b'?",
        ),
        (
            {"logits": np.zeros(3, np.float32)},
            GraphError,
            "graph 'axpy' has no input 'logits'; its inputs are 'a', 'b', 'c'",
        ),
        (
            {"a": np.zeros(3, np.float32)},
            GraphError,
            "graph 'axpy': there is no array for 'b', 'c'; add it by that name",
        ),
        (
            [np.zeros(3, np.float32), np.zeros(4, np.float32), np.zeros(3, np.float32)],
            GraphError,
            "graph 'axpy': input 'b' has shape [4], but 'n' is 3 in another input; its type is float32 [n]",
        ),
        (
            [np.zeros((3, 1), np.float32)] * 3,
            GraphError,
            "graph 'axpy': input 'a' must have shape [n], not [3, 1]; give an array of that shape",
        ),
        (
            [np.zeros(3)] * 3,
            GraphTypeError,
            "graph 'axpy': input 'a' must be float32, not float64; convert it with .astype('float32')",
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Array] | Mapping[str, Array], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        fastmath_matrix(axpy(), inputs)
    assert str(error.value) == message


def test_mode_that_does_not_exist() -> None:
    with pytest.raises(NotFoundError, match=r"^there is no mode 'reasoc'; did you mean 'reassoc' or 'reassoc-nsz'\?$"):
        fastmath_matrix(axpy(), modes=["reasoc"])
    with pytest.raises(NotFoundError, match=r"^there is no mode 'x'; modes are off, on, fast, llvm, reassoc, "):
        fastmath_matrix(axpy(), baseline="x")


def test_reference_that_does_not_fit() -> None:
    with pytest.raises(GraphError, match=r"^the reference has 2 outputs, but graph 'axpy' has 1$"):
        fastmath_matrix(axpy(), triple(), reference=triple()[:2])
    with pytest.raises(
        GraphError, match=r"^output 0 of the reference has shape \[3\], but that of graph 'axpy' has \[4\]$"
    ):
        fastmath_matrix(axpy(), triple(4), reference=[np.zeros(3)])


class FakeTensor:
    """As much of torch.Tensor as a reference needs."""

    dtype = "float64"

    def __init__(self, array: Array) -> None:
        self.array = array

    def __add__(self, other: FakeTensor) -> FakeTensor:
        return FakeTensor(self.array + other.array)

    def __mul__(self, other: FakeTensor) -> FakeTensor:
        return FakeTensor(self.array * other.array)

    def detach(self) -> FakeTensor:
        return self

    cpu = contiguous = detach

    def numpy(self) -> Array:
        return self.array


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch")
    vars(module).update(Tensor=FakeTensor, bfloat16="bfloat16", from_numpy=FakeTensor)
    monkeypatch.setitem(sys.modules, "torch", module)


@pytest.mark.usefixtures("fake_torch")
def test_function_of_torch_tensors_is_a_reference() -> None:
    def in_torch(a: FakeTensor, b: FakeTensor, c: FakeTensor) -> FakeTensor:
        assert a.array.dtype == np.float64
        return a * b + c

    matrix = fastmath_matrix(axpy(), triple(), modes=["fast"], reference=torch_reference(in_torch), timed=False)
    own = fastmath_matrix(axpy(), triple(), modes=["fast"], timed=False)
    assert matrix.reference == "torch's in_torch in float64"
    assert matrix.modes[0].outputs[0].error == pytest.approx(own.modes[0].outputs[0].error)


@pytest.mark.usefixtures("fake_torch")
def test_function_of_torch_tensors_that_fails() -> None:
    with pytest.raises(
        GraphError, match=r"^<lambda> fails on the inputs in float64: ZeroDivisionError: division by zero$"
    ):
        fastmath_matrix(axpy(), triple(), reference=torch_reference(lambda a, b, c: 1 / 0), timed=False)
    with pytest.raises(GraphTypeError, match=r"^<lambda> must return a tensor, or a list or tuple of them, not 7$"):
        fastmath_matrix(axpy(), triple(), reference=torch_reference(lambda a, b, c: 7), timed=False)


def test_contracted_ops_by_number() -> None:
    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        product = ops.mul(a, b)  # 0
        return [
            ops.add(product, a),  # 1
            ops.negate(ops.sub(b, product)),  # 2, 3
            ops.add(ops.mul(a, a), ops.mul(b, b)),  # 4, 5, 6
            ops.add(a, b),
        ]

    graph = Graph("g", forward, [TensorType(F32, ["n"])] * 2)
    assert contracted_ops(graph, mode_options("fast")) == {1: 0, 2: 0, 6: 4}
    assert contracted_ops(graph, mode_options("on")) == {}
    small = Graph("g", forward, [TensorType(DType.bfloat16, ["n"])] * 2)
    assert contracted_ops(small, mode_options("fast")) == {}
    assert contracted_ops(small, mode_options("excess-fast")) == {1: 0, 2: 0, 6: 4}


class Checker(HTMLParser):
    """Tags that are not closed, ids and what would be loaded."""

    VOID = ("meta", "rect", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.classes: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        assert tag not in ("script", "link", "img", "iframe")
        for name, value in attributes:
            assert not name.startswith("on")
            if name in ("src", "href"):
                self.loads.append(value or "")
            if name == "class":
                self.classes += (value or "").split()

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    assert checker.loads == []
    assert "url(" not in text
    assert "@import" not in text
    return checker


def cancelling() -> tuple[Graph, FastmathMatrix]:
    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(a, b), a), ops.sub(ops.mul(a, b), ops.mul(a, b)), ops.cast(a, DType.int32)]

    graph = Graph("a<b&c", forward, [TensorType(F32, ["n"])] * 2)
    return graph, fastmath_matrix(graph, modes=["on", "fast", "contract"], timed=False)


def test_page_is_well_formed_and_loads_nothing() -> None:
    graph, matrix = cancelling()
    text = page(graph, matrix, [bisect_flags(graph)])
    assert text.isprintable() or "\n" in text
    found = checked(text)
    assert "Numeric modes of graph a&lt;b&amp;c" in text
    assert found.classes.count("contracted") == found.classes.count("product") == found.classes.count("cause") == 2
    assert text.count("<figure>") == 2  # one histogram for each output that differs: fast and contract are alike
    assert "ops.add(ops.mul(a, b), a)" in text


def test_histogram_has_the_counts_of_the_matrix() -> None:
    graph, matrix = cancelling()
    output = matrix.mode("fast").outputs[0]
    text = page(graph, matrix)
    for place, name in ((0, "0"), (1, "1"), (2, "2–3")):
        assert f"<title>{name}: {output.histogram[place]} elements</title>" in text


def test_graph_that_is_too_large_for_a_picture() -> None:
    def forward(x: TensorValue) -> TensorValue:
        for _ in range(MOST_NODES):
            x = ops.negate(x)
        return x

    graph = Graph("g", forward, [TensorType(F32, [1])])
    assert graph_picture(graph, {}) is None
    assert "too large for a picture" in page(graph, fastmath_matrix(axpy(), modes=["on"], timed=False))
