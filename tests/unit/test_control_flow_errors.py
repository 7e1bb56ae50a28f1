"""The errors of wrong branches and loops, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    DeviceRef,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    HalfulpError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.regions import MOST_NESTED
from halfulp.runtime import InferenceSession

F32, F64, I32, I64, BOOL = (DType(n) for n in ("float32", "float64", "int32", "int64", "bool"))
VECTOR, FLAG, COUNT = TensorType(F32, ["n"]), TensorType(BOOL, []), TensorType(I64, [])
X = np.array([1.5, -2.0, 3.25], np.float32)

Build = Callable[..., Any]
Case = tuple[str, list[TensorType], Build, type[HalfulpError], str]

CASES: list[Case] = [
    (
        "pred_dtype",
        [VECTOR, COUNT],
        lambda x, n: ops.cond(n, [x.type], lambda: x, lambda: x),
        GraphTypeError,
        "ops.cond: pred must be bool, not int64; compare it, as in value != 0",
    ),
    (
        "pred_shape",
        [VECTOR],
        lambda x: ops.cond(x > 0, [x.type], lambda: x, lambda: x),
        GraphError,
        "ops.cond: pred must be one bool, not bool [n]; reduce it to one, or choose element by element with ops.where",
    ),
    (
        "pred_number",
        [VECTOR],
        lambda x: ops.cond(1, [x.type], lambda: x, lambda: x),
        GraphTypeError,
        "ops.cond: operand 'pred' must be a TensorValue, not 1; make it one with ops.constant",
    ),
    (
        "out_types_single",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, x.type, lambda: x, lambda: x),
        GraphTypeError,
        "ops.cond: out_types must be a list of TensorType, not TensorType(float32, [n], cpu); write [type]",
    ),
    (
        "out_types_item",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [x], lambda: x, lambda: x),
        GraphTypeError,
        "ops.cond: out_types[0] must be a TensorType, not TensorValue(dtype=float32, shape=[n], device=cpu)",
    ),
    (
        "branch_is_a_value",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [x.type], x, lambda: x),
        GraphTypeError,
        "ops.cond: then_fn must be a function that builds the values, not TensorValue(dtype=float32, shape=[n], "
        "device=cpu); write lambda around it",
    ),
    (
        "branch_dtype",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [x.type], lambda: x, lambda: x.cast(F64)),
        GraphTypeError,
        "ops.cond: result 0 of else_fn is float64 [n] on cpu, but out_types[0] is float32 [n] on cpu; "
        "cast it to float32",
    ),
    (
        "branch_shape",
        [VECTOR, TensorType(F32, ["m"]), FLAG],
        lambda x, y, p: ops.cond(p, [x.type], lambda: y, lambda: x),
        GraphError,
        "ops.cond: result 0 of then_fn is float32 [m] on cpu, but out_types[0] is float32 [n] on cpu; "
        "all sizes must be the same: rebind it if they are, else pad or slice it",
    ),
    (
        "branch_rank",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [x.type], lambda: x, lambda: 1.0),
        GraphError,
        "ops.cond: result 0 of else_fn is float32 [] on cpu, but out_types[0] is float32 [n] on cpu; "
        "the number of axes must be the same, so reshape it",
    ),
    (
        "branch_device",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [TensorType(F32, ["n"], DeviceRef.GPU(0))], lambda: x, lambda: x),
        GraphError,
        "ops.cond: result 0 of then_fn is float32 [n] on cpu, but out_types[0] is float32 [n] on gpu:0; "
        "move it with .to()",
    ),
    (
        "branch_number",
        [TensorType(I32, []), FLAG],
        lambda x, p: ops.cond(p, [x.type], lambda: x, lambda: 1.5),
        GraphTypeError,
        "ops.cond: operand 'result 0 of else_fn' is 1.5, but operand 'out_types[0]' is int32; "
        "cast that operand to a float type",
    ),
    (
        "branch_count",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, [x.type, x.type], lambda: x, lambda: [x, x]),
        GraphError,
        "ops.cond: then_fn returns 1 value, but out_types has 2; return one for each, in order",
    ),
    (
        "branch_returns_too_much",
        [VECTOR, FLAG],
        lambda x, p: ops.cond(p, None, lambda: None, lambda: x),
        GraphError,
        "ops.cond: else_fn returns 1 value, but out_types has 0; return one for each, in order",
    ),
    (
        "nothing_carried",
        [VECTOR],
        lambda x: ops.while_loop([], lambda: True, list),
        GraphError,
        "ops.while_loop: initial_values is empty; a loop carries at least what its predicate reads",
    ),
    (
        "initial_number",
        [VECTOR],
        lambda x: ops.while_loop([x, 0], lambda x, i: i < 3, lambda x, i: [x, i + 1]),
        GraphTypeError,
        "ops.while_loop: operand 'initial_values[1]' must be a TensorValue, not 0; make it one with ops.constant",
    ),
    (
        "predicate_dtype",
        [COUNT],
        lambda n: ops.while_loop(n, lambda n: n, lambda n: n - 1),
        GraphTypeError,
        "ops.while_loop: the result of predicate must be bool, not int64; compare it, as in value != 0",
    ),
    (
        "predicate_count",
        [COUNT],
        lambda n: ops.while_loop(n, lambda n: cast(Any, [n > 0, n > 1]), lambda n: n - 1),
        GraphError,
        "ops.while_loop: predicate returns 2 values, but it decides by 1; return one for each, in order",
    ),
    (
        "predicate_is_a_value",
        [COUNT],
        lambda n: ops.while_loop(n, n > 0, lambda n: n - 1),
        GraphTypeError,
        "ops.while_loop: predicate must be a function that builds the values, not TensorValue(dtype=bool, shape=[], "
        "device=cpu); write lambda around it",
    ),
    (
        "body_dtype",
        [COUNT],
        lambda n: ops.while_loop(n, lambda n: n > 0, lambda n: (n - 1).cast(I32)),
        GraphTypeError,
        "ops.while_loop: result 0 of body is int32 [] on cpu, but carried value 0 is int64 [] on cpu; cast it to int64",
    ),
    (
        "body_shape",
        [COUNT, VECTOR],
        lambda n, x: ops.while_loop([n, x], lambda n, x: n > 0, lambda n, x: [n - 1, ops.concat([x, x])]),
        GraphError,
        "ops.while_loop: result 1 of body is float32 [2*n] on cpu, but carried value 1 is float32 [n] on cpu; "
        "all sizes must be the same: rebind it if they are, else pad or slice it",
    ),
    (
        "body_count",
        [COUNT, VECTOR],
        lambda n, x: ops.while_loop([n, x], lambda n, x: n > 0, lambda n, x: n - 1),
        GraphError,
        "ops.while_loop: body returns 1 value, but the loop carries 2; return one for each, in order",
    ),
    (
        "truth",
        [FLAG],
        lambda p: p and p,
        GraphTypeError,
        "TensorValue(dtype=bool, shape=[], device=cpu) has no elements while the graph is built, so it is neither true "
        "nor false; choose between values with ops.where, or between computations with ops.cond",
    ),
]


@pytest.mark.parametrize(("types", "build", "error", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_wrong_calls(types: list[TensorType], build: Build, error: type[HalfulpError], message: str) -> None:
    with Graph("g", input_types=types) as graph, pytest.raises(error) as caught:
        build(*graph.inputs)
    assert type(caught.value) is error
    assert caught.value.message == message
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def line_of(text: str) -> int:
    """The line of this file that holds a text, once."""
    with open(__file__, encoding="utf-8") as file:
        (number,) = (n for n, line in enumerate(file, 1) if text in line and "line_of" not in line)
    return number


def test_a_value_from_inside_is_not_known_outside() -> None:
    kept: list[TensorValue] = []

    def keep(value: TensorValue) -> TensorValue:
        kept.append(value)
        return value

    with Graph("g", input_types=[VECTOR, FLAG]) as graph:
        x, p = graph.inputs
        ops.cond(p, [x.type], lambda: keep(x + 1), lambda: x)  # inside a branch
        place = f"then_fn of ops.cond at {__file__}:{line_of('# inside a branch')}"
        with pytest.raises(GraphError) as caught:
            ops.add(kept[0], x)
        assert caught.value.message == (
            f"ops.add: operand 'lhs' is a value from inside {place}, and exists only there; "
            "return it from that function, and use the result"
        )
        with pytest.raises(GraphError, match=r"result 0 of else_fn is a value from inside then_fn of ops\.cond"):
            ops.cond(p, [x.type], lambda: keep(x * 3), lambda: kept[1])
        with pytest.raises(GraphError, match=r"result 0 of body is a value from inside predicate of ops\.while_loop"):
            ops.while_loop(p, lambda p: keep(ops.logical_not(p)), lambda p: kept[-1])
        with pytest.raises(GraphError, match=r"graph 'g': output 0 is a value from inside then_fn"):
            graph.output(kept[0])
        graph.output(x)


def test_the_graph_is_as_before_where_a_branch_raises() -> None:
    with Graph("g", input_types=[VECTOR, FLAG]) as graph:
        x, p = graph.inputs
        with pytest.raises(ZeroDivisionError):
            ops.cond(p, [x.type], lambda: x + 1, lambda: x / (1 // 0))
        graph.output(x + 2)
    assert "cond" not in str(graph)
    assert np.array_equal(InferenceSession().load(graph).execute(X, np.array(True))[0].to_numpy(), X + 2)


def test_output_and_sizes_that_the_data_decides_are_refused_inside() -> None:
    with Graph("g", input_types=[VECTOR, FLAG]) as graph:
        x, p = graph.inputs
        with pytest.raises(GraphError) as caught:
            ops.cond(p, None, lambda: graph.output(x), lambda: None)  # ends inside
        place = f"then_fn of ops.cond at {__file__}:{line_of('# ends inside')}"
        assert caught.value.message == (
            f"graph 'g': output() is called inside {place}; return the values from it instead"
        )
        with pytest.raises(GraphError) as caught:
            ops.cond(p, [], list, lambda: ops.nonzero(x, "count"))  # sizes inside
        place = f"else_fn of ops.cond at {__file__}:{line_of('# sizes inside')}"
        assert caught.value.message == (
            f"ops.nonzero: defines the size 'count', which is not possible inside {place}, since "
            "memory is laid out before that runs; define it before, and use the result inside"
        )


def test_a_weight_of_a_branch_that_raised_is_not_asked_for() -> None:
    def fails(x: TensorValue) -> TensorValue:
        raise ZeroDivisionError(str(Weight("lost", F32, [3]) * Weight("kept", F32, [3]) + ops.rebind(x, [3])))

    with Graph("g", input_types=[VECTOR, FLAG]) as graph:
        x, p = graph.inputs
        with pytest.raises(ZeroDivisionError):
            ops.cond(p, [x.type], lambda: fails(x), lambda: x)
        with pytest.raises(GraphError, match=r"must be one bool"):
            ops.cond(Weight("flags", DType.bool, [3]), [x.type], lambda: x, lambda: x)
        graph.output(ops.rebind(x, [3]) + Weight("kept", F32, [3]))
    assert list(graph.weights) == ["kept"]
    (result,) = InferenceSession().load(graph, weights_registry={"kept": X}).execute(X, np.array(True))
    assert np.array_equal(result.to_numpy(), X + X)


def nested(depth: int) -> Graph:
    def inner(x: TensorValue, p: TensorValue, left: int) -> TensorValue:
        if not left:
            return x + 1
        return ops.cond(p, [x.type], lambda: inner(x, p, left - 1), lambda: x * 2)[0]  # nests

    return Graph("g", lambda x, p: inner(x, p, depth), [VECTOR, FLAG])


def test_regions_are_nested_up_to_a_limit() -> None:
    (result,) = InferenceSession().load(nested(MOST_NESTED)).execute(X, np.array(True))
    assert np.array_equal(result.to_numpy(), X + 1)
    with pytest.raises(GraphError) as caught:
        nested(MOST_NESTED + 1)
    place = f"{__file__}:{line_of('# nests')}"
    assert caught.value.message == (
        f"then_fn of ops.cond at {place} would be inside 64 other branches and loops, and no more may be nested; "
        "carry the values through one loop"
    )
    assert str(caught.value.location) == place
