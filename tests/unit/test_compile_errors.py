"""Whoever compiles a graph gets one class of error, whatever a pass reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from halfulp.compiler import CompileError, DType, Graph, TensorType
from halfulp.compiler.opdef import OpDef
from halfulp.compiler.pipeline import compile_graph
from halfulp.compiler.registry import register_op, unregister_op


@pytest.fixture
def unfinished() -> Iterator[OpDef]:
    """An op that can be built but not compiled."""
    yield register_op(OpDef("unfinished", "opaque", ("x",), lambda operands, parameters: [operands[0]]))
    unregister_op("unfinished")


def test_an_op_without_a_recipe(unfinished: OpDef) -> None:
    with Graph("g", input_types=[TensorType(DType.float32, ["n"])]) as graph:
        graph.output(*graph.apply(unfinished, graph.inputs))
    with pytest.raises(CompileError) as error:
        compile_graph(graph)
    assert str(error.value) == 'graph.apply "unfinished": the op has no recipe, so it cannot be compiled'
