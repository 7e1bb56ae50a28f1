"""Element types and shapes of results: promotion, literals, broadcasting, symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import Dim, DType, Graph, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import parse_dim
from halfulp.ops.promotion import promoted_dtype

F16, BF16, F32, F64, I64 = DType.float16, DType.bfloat16, DType.float32, DType.float64, DType.int64

PROMOTED = {
    ("int8", "int32"): "int32",
    ("uint8", "int16"): "int16",
    ("uint8", "uint64"): "uint64",
    ("bool", "uint8"): "uint8",
    ("bool", "float16"): "float16",
    ("int8", "float16"): "float16",
    ("int32", "float32"): "float32",
    ("int64", "float64"): "float64",
    ("uint8", "bfloat16"): "bfloat16",
    ("float16", "float32"): "float32",
    ("bfloat16", "float64"): "float64",
    ("int8", "uint8"): None,
    ("int64", "uint64"): None,
    ("int32", "float16"): None,
    ("int64", "float32"): None,
    ("float16", "bfloat16"): None,
}


@pytest.mark.parametrize(("pair", "result"), PROMOTED.items())
def test_promotion(pair: tuple[str, str], result: str | None) -> None:
    first, second = map(DType, pair)
    assert promoted_dtype(first, second) is promoted_dtype(second, first)
    assert promoted_dtype(first, second) is (None if result is None else DType(result))


def test_promotion_gives_one_of_the_two() -> None:
    for first, second in product(DType, DType):
        assert promoted_dtype(first, second) in (first, second, None)
        assert promoted_dtype(first, first) is first


def built(build: Callable[..., Any], *specs: tuple[DType, list[Any]]) -> TensorValue:
    """What ``build`` makes of inputs of these types."""
    with Graph("g", input_types=[TensorType(dtype, shape) for dtype, shape in specs]) as graph:
        result: TensorValue = build(*graph.inputs)
        graph.output(result)
    return result


@pytest.mark.parametrize(
    "other",
    [2, 2.5, True, np.float64(2.5), np.int8(3), np.array([[1.0], [2.0]]), ml_dtypes.bfloat16(1.5), Dim(3)],
    ids=lambda value: type(value).__name__,
)
def test_literals_take_the_type_of_the_tensor(other: Any) -> None:
    for result in (built(lambda x: x * other, (F16, [3])), built(lambda x: other * x, (F16, [3]))):
        assert result.dtype is F16


def test_symbol_as_operand() -> None:
    result = built(lambda x: x / x.shape[0], (F32, ["n"]))
    assert (result.dtype, result.shape) == (F32, (Dim("n"),))


def test_division_of_integers() -> None:
    assert built(lambda x, y: x / y, (I64, [2]), (I64, [2])).dtype is F64
    assert built(lambda x: x / 2, (I64, [2])).dtype is F64


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        ([["n", 1], ["m"]], ["n", "m"]),
        ([[2, 1, 3], [4, 1]], [2, 4, 3]),
        ([[], ["n"]], ["n"]),
        ([["n", "m"], ["n", "m"]], ["n", "m"]),
        ([[1], [0]], [0]),
        ([["n", 3], [1, 3]], ["n", 3]),
    ],
)
def test_broadcasting(shapes: list[list[Any]], result: list[Any]) -> None:
    value = built(lambda x, y: x + y, *[(F32, shape) for shape in shapes])
    assert value.shape == tuple(map(Dim, result))


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda x: x[1:], ["n - 1", 4, "m"]),
        (lambda x: x[:, -1], ["n", "m"]),
        (lambda x: x[..., None], ["n", 4, "m", 1]),
        (lambda x: x[::2], ["(n + 1)//2", 4, "m"]),
        (lambda x: x[:, ::-3], ["n", 2, "m"]),
        (lambda x: x.T, ["n", "m", 4]),
        (lambda x: x.flatten(1), ["n", "4*m"]),
        (lambda x: x.reshape((-1, 2)), ["2*m*n", 2]),
        (lambda x: ops.concat([x, x], 2), ["n", 4, "2*m"]),
        (lambda x: ops.pad(x, [1, 2, 0, 0, 0, Dim("m")]), ["n + 3", 4, "2*m"]),
        (lambda x: ops.tile(x, [2, 1, 3]), ["2*n", 4, "3*m"]),
        (lambda x: x.sum(1), ["n", 1, "m"]),
        (lambda x: x.argmax(0), [1, 4, "m"]),
        (lambda x: ops.gather(x, ops.constant([[0, 1]], I64), 1), ["n", 1, 2, "m"]),
        (lambda x: ops.top_k(x, 2, axis=1)[0], ["n", 2, "m"]),
        (lambda x: ops.split(x, [1, 3], 1)[1], ["n", 3, "m"]),
    ],
)
def test_symbolic_shape(build: Callable[[TensorValue], TensorValue], shape: list[Any]) -> None:
    value = built(build, (F32, ["n", 4, "m"]))
    assert value.shape == tuple(parse_dim(size) if isinstance(size, str) else Dim(size) for size in shape)


def test_operators_build_the_ops_of_their_names() -> None:
    with Graph("g", input_types=[TensorType(F32, [2, 2]), TensorType(F32, [2, 2])]) as graph:
        x, y = graph.inputs
        graph.output(
            x + y, x - y, x * y, x / y, x // y, x % y, x**y, x @ y, x < y, x <= y, x > y, x >= y, x == y, x != y
        )
    names = [line.split('"')[1] for line in str(graph).splitlines() if "graph.apply" in line]
    expected = "add sub mul div floor_div mod pow matmul less less_equal greater greater_equal equal not_equal"
    assert names == expected.split()


def test_value_is_hashable_and_itself() -> None:
    with Graph("g", input_types=[TensorType(F32, [2])]) as graph:
        (x,) = graph.inputs
        assert {x: 1}[x] == 1
        assert x not in (None, "x")
        graph.output(x)


def test_an_array_alone_has_its_own_type() -> None:
    """Where no tensor says which type is meant; beside one, of a row of layer_norm too, that one does."""

    def forward(x: TensorValue) -> list[TensorValue]:
        return [
            ops.exp(np.zeros((2, 1), np.float64)),
            ops.exp(np.float32(0)),
            ops.gather(x, np.array([[1, 0]]), 1),
            ops.layer_norm(x, np.ones(2), np.zeros(2), 1e-5),
            ops.concat([x, np.ones((1, 2), np.float32)]),
        ]

    with Graph("g", input_types=[TensorType(F32, ["n", 2])]) as graph:
        values = forward(graph.inputs[0])
        graph.output(*values)
    assert [(value.dtype, value.shape) for value in values] == [
        (F64, (Dim(2), Dim(1))),
        (F32, ()),
        (F32, (Dim("n"), Dim(1), Dim(2))),
        (F32, (Dim("n"), Dim(2))),
        (F32, (Dim("n") + 1, Dim(2))),
    ]


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        ([1, 0], "ops.gather: operand 'indices' must be a TensorValue, not [1, 0]; write np.array(...) around it"),
        (
            np.array([1j]),
            "ops.gather: operand 'indices': numpy dtype complex128 has no halfulp element type; known: bool, int8, "
            "int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64",
        ),
    ],
)
def test_what_is_no_array_of_ours_is_refused(operand: Any, message: str) -> None:
    with Graph("g", input_types=[TensorType(F32, ["n", 2])]) as graph:
        with pytest.raises(GraphTypeError) as caught:
            ops.gather(graph.inputs[0], operand, 1)
        graph.output(graph.inputs[0])
    assert caught.value.message == message
