"""The graph dialect below the builder: text that keeps every bit, parameters, and dominance that no text can break."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, ModuleOp, UnitAttr
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from halfulp.compiler import Dim, DType, GraphError, GraphTypeError, TensorType
from halfulp.compiler.dialects.graph import (
    ApplyOp,
    ConstantOp,
    Graph,
    GraphOp,
    OutputOp,
    parameter_attribute,
    parameter_value,
)
from halfulp.compiler.passes.verify_graph import verify_dominance


def parser(text: str) -> Parser:
    context = Context()
    for dialect in (Builtin, Graph):
        context.load_dialect(dialect)
    return Parser(context, text)


@st.composite
def constants(draw: st.DrawFn) -> ConstantOp:
    dtype = draw(st.sampled_from(list(DType)))
    shape = draw(st.lists(st.integers(0, 5), max_size=3))
    count = math.prod(shape)
    size = dtype.size_in_bytes
    if dtype is DType.bool:
        data = bytes(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    elif draw(st.booleans()):  # any bits: subnormals, infinities, NaN with payloads
        data = draw(st.binary(min_size=count * size, max_size=count * size))
    else:
        numbers = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
        data = (np.array(numbers) / (8 if dtype.is_float else 1)).astype(dtype.to_numpy()).tobytes()
    return ConstantOp(data, TensorType(dtype, shape))


@given(constants())
def test_constant_text_keeps_every_bit(op: ConstantOp) -> None:
    op.verify()
    again = parser(str(op)).parse_op()
    assert isinstance(again, ConstantOp)
    assert again.value == op.value
    assert str(again) == str(op)


_LEAVES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="ascii", exclude_characters="\x00"))
    | st.sampled_from(list(DType))
    | st.sampled_from([Dim(3), Dim("n"), Dim("n") * 2 + 1])
)


@given(st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6))
def test_parameters_come_back_from_text(value: Any) -> None:
    attribute = parameter_attribute(value)
    assert parameter_value(attribute) == value
    again = parameter_value(parser(str(attribute)).parse_attribute())
    assert again == value
    assert type(again) is type(value)
    if isinstance(value, float):
        assert math.copysign(1, again) == math.copysign(1, value)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_parameters() -> None:
    values = (np.int8(-3), np.bool_(True), np.float32(0.5), [np.uint64(7)])
    assert [parameter_value(parameter_attribute(v)) for v in values] == [-3, True, 0.5, (7,)]


def test_other_values_are_no_parameters() -> None:
    with pytest.raises(GraphTypeError, match=r"^a parameter must be a bool, int, .* or a list of them, not 1j$"):
        parameter_attribute(1j)
    with pytest.raises(GraphError, match=r"^an integer parameter must fit in 64 bits, not -9223372036854775809$"):
        parameter_attribute(-(2**63) - 1)
    with pytest.raises(GraphTypeError, match=r"^unit is no parameter of an op$"):
        parameter_value(UnitAttr())


# The parser refuses these two, so they are built by hand, as a faulty pass would.


def test_value_of_a_region_outside_of_it() -> None:
    tensor = TensorType(DType.float32, ["n"])
    graph = GraphOp("g", {"x": tensor})
    inner = ApplyOp("exp", [graph.body.block.args[0]], [tensor])
    graph.body.block.add_ops([test.TestOp(regions=[Region(Block([inner]))]), OutputOp(inner.results)])
    with pytest.raises(VerifyException) as error:
        verify_dominance(ModuleOp([graph]))
    assert error.value.args[0] == (
        'graph.output: operand 0 (result 0 of graph.apply "exp") is defined in a region that this op is not in; '
        "return it from that region"
    )


def test_value_of_one_graph_in_another() -> None:
    tensor = TensorType(DType.float32, ["n"])
    first, second = (GraphOp(name, {"x": tensor}) for name in ("first", "second"))
    x = first.body.block.args[0]
    x.name_hint = None
    for graph in (first, second):
        graph.body.block.add_op(OutputOp([x]))
    with pytest.raises(VerifyException) as error:
        verify_dominance(ModuleOp([first, second]))
    assert error.value.args[0] == (
        "graph.output: operand 0 (argument 0 of a block of graph.graph) is defined outside of graph.graph, whose body "
        "sees no value from outside; pass it in"
    )
