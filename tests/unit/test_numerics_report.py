"""`model.options` and `model.numerics_report()`: what was asked for, and what was fused where."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halfulp import ops
from halfulp.compiler import CompileError, CompileOptions, DeviceRef, DType, Graph, GraphError, TensorType, TensorValue
from halfulp.compiler.errors import SourceLocation
from halfulp.compiler.numerics import Contraction
from halfulp.runtime import CPU, InferenceSession, Model
from halfulp.runtime.cache import FOLDER_VARIABLE, SWITCH_VARIABLE

X = TensorType(DType.float32, ["n"], DeviceRef.CPU())


def line() -> int:
    """The line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def load(build: Callable[..., Any], options: CompileOptions) -> Model:
    with Graph("g", input_types=[X, X, X]) as graph:
        graph.output(*build(*graph.inputs))
    return InferenceSession(devices=[CPU()]).load(graph, options)


def test_report_lists_op_line_product_and_flags() -> None:
    lines = []

    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        product = ops.mul(a, b)
        lines.append(line() - 1)
        total = ops.sub(c, product)
        lines.append(line() - 1)
        return [total, product]

    model = load(build, CompileOptions(fp_contract="fast", fastmath={"nsz"}))
    places = [SourceLocation(__file__, number) for number in lines]
    (entry,) = model.numerics_report()
    assert entry == Contraction("sub", places[1], 1, "mul", places[0], True, DType.float32, frozenset({"nsz"}))
    assert str(entry) == (
        f"{places[1]}: sub fused with its operand 1, the mul of {places[0]}, which other users still get rounded by "
        "itself; float32, flags: nsz"
    )
    assert model.options == CompileOptions(fp_contract="fast", fastmath={"nsz"})


def test_report_is_in_the_order_of_the_graph_and_empty_where_nothing_is_fused() -> None:
    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(ops.sub(ops.mul(a, b), c), b), c)]

    fused = load(build, CompileOptions(fp_contract="fast")).numerics_report()
    assert [(entry.op, entry.product_kept) for entry in fused] == [("sub", False), ("add", False)]
    for mode in ("off", "on"):
        assert load(build, CompileOptions(fp_contract=mode)).numerics_report() == []
    assert load(build, CompileOptions(fp_contract="fast", strategy="llvm")).numerics_report() == []


def test_report_of_an_equal_graph_from_other_lines_names_those(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Though what was compiled for the first one lies in the cache."""
    monkeypatch.setenv(SWITCH_VARIABLE, "1")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    options = CompileOptions(fp_contract="fast")

    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(a, b), c)]

    def same(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        return [ops.add(ops.mul(a, b), c)]

    first, second = (load(each, options).numerics_report()[0].location for each in (build, same))
    assert first is not None
    assert second == SourceLocation(first.filename, first.line + 3)
    assert load(build, options).numerics_report()[0].location == first
    assert list(tmp_path.iterdir()), "the cache was in use"


def test_contraction_without_places_has_text_and_attribute() -> None:
    entry = Contraction("add", None, 0, "mul", None, False, DType.float64, frozenset())
    assert str(entry) == "add fused with its operand 0, the mul; float64, flags: none"
    assert Contraction.from_attribute(entry.to_attribute()) == entry


@pytest.mark.parametrize("by_region", [True, False])
def test_off_refuses_the_flag_contract_of_a_region_or_an_op(by_region: bool) -> None:
    lines = []

    def build(a: TensorValue, b: TensorValue, c: TensorValue) -> list[TensorValue]:
        if by_region:
            with Graph.current().fastmath("contract"):
                lines.append(line() + 1)
                return [ops.add(a, b)]
        lines.append(line() + 1)
        return [ops.add(a, b, fastmath={"contract", "nsz"})]

    with pytest.raises(CompileError) as error:
        load(build, CompileOptions(fp_contract="off"))
    assert error.value.message == (
        "graph.apply \"add\": it has the fastmath flag 'contract', but fp_contract='off' forbids every contraction; "
        "leave the flag out of the op or of its region, or compile with fp_contract='on'"
    )
    assert error.value.location == SourceLocation(__file__, lines[0])


def test_contradictory_region() -> None:
    with Graph("g", input_types=[X]) as graph:
        with pytest.raises(GraphError) as error:
            graph.fastmath("none", "nsz", {"arcp"})
        assert error.value.message == (
            "graph 'g': fastmath() is given 'none' and the flags nsz, arcp; leave out one or the other"
        )
        graph.output(graph.inputs[0])


def test_flags_on_an_integer_op() -> None:
    integers = TensorType(DType.int32, ["n"], DeviceRef.CPU())
    with Graph("g", input_types=[integers]) as graph:
        (x,) = graph.inputs
        with pytest.raises(GraphError) as error:
            ops.add(x, x, fastmath="nsz")
        assert error.value.message == (
            "ops.add: fastmath flags (nsz) stand on floats only, and it computes none; leave fastmath out"
        )
        with graph.fastmath("fast"):
            graph.output(ops.add(x, x))  # a region speaks to the floats in it
    InferenceSession(devices=[CPU()]).load(graph)
