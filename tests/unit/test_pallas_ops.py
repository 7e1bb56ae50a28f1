"""Ops of several kernels, with sizes that only the data decides, in plain kernel language."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

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
)
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.pipeline import emit
from halfulp.compiler.registry import find_kernel, unregister_kernel
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import ExecutionError, InferenceSession

F32 = DType.float32
CPU = DeviceRef.CPU()
NAME = "above"
VECTOR = TensorType(F32, ["n"])


def count(x_ref: Any, total_ref: Any, *, limit: float) -> None:
    total_ref[...] = pl.fori_loop(0, x_ref.shape[0], lambda i, n: n + (x_ref[i] > limit).astype(jnp.int32), 0)


def pick(x_ref: Any, y_ref: Any, place_ref: Any, *, limit: float) -> None:
    def one(i: Any, place: Any) -> Any:
        @pl.when(x_ref[i] > limit)
        def _() -> None:
            y_ref[place] = x_ref[i]
            place_ref[place] = i

        return place + (x_ref[i] > limit).astype(jnp.int32)

    pl.fori_loop(0, x_ref.shape[0], one, 0)


def bound(kernel: Callable[..., None], limit: float) -> Callable[..., None]:
    return functools.partial(kernel, limit=limit)


def number_above(x: Any, *, limit: float) -> Any:
    return pl.pallas_call(bound(count, limit), pl.ShapeDtypeStruct((), "int32"))(x)[()]


def above(x: Any, *, limit: float, found: Any) -> Any:
    shapes = [pl.ShapeDtypeStruct((found,), x.dtype), pl.ShapeDtypeStruct((found,), "int32")]
    return pl.pallas_call(bound(pick, limit), shapes)(x)


def declare(function: Callable[..., Any], **changes: Any) -> None:
    declaration: dict[str, Any] = {
        "operands": [pl.OperandSpec("x", F32, ("n",))],
        "outputs": [pl.OutputSpec("y", F32, ("found",)), pl.OutputSpec("places", DType.int32, ("found",))],
        "parameters": [pl.ParameterSpec("limit", float, 0.0)],
        "computed": {"found": number_above},
    }
    pl.register_kernel(NAME, **declaration | changes)(function)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    unregister_kernel(NAME)


def graph_that_calls(*out_types: TensorType, **parameters: Any) -> Graph:
    with Graph("g", input_types=[VECTOR]) as graph:
        graph.output(*ops.custom(NAME, CPU, [graph.inputs[0]], list(out_types), parameters))
    return graph


FOUND = (TensorType(F32, ["found"]), TensorType(DType.int32, ["found"]))
VALUES = np.array([3, -1, 0, 2.5, np.nan, -4, 7], np.float32)


@pytest.mark.parametrize("limit", [0.0, -2.0, 100.0])
def test_sizes_from_the_data(limit: float) -> None:
    declare(above)
    model = InferenceSession().load(graph_that_calls(*FOUND, limit=limit))
    for x in (VALUES, VALUES[:2], VALUES[:0]):
        y, places = (output.to_numpy() for output in model.execute(x))
        (wanted,) = np.nonzero(x > limit)
        np.testing.assert_array_equal(y, x[wanted])
        np.testing.assert_array_equal(places, wanted.astype(np.int32))


def test_outputs_may_have_two_names_for_a_computed_size_or_state_it() -> None:
    declare(above)
    two_names = (TensorType(F32, ["a"]), TensorType(DType.int32, ["b"]))
    stated = (TensorType(F32, ["a"]), TensorType(DType.int32, [3]))
    for types in (two_names, stated):
        model = InferenceSession().load(graph_that_calls(*types))
        y, places = (output.to_numpy() for output in model.execute(VALUES))
        assert (y.tolist(), places.tolist()) == ([3, 2.5, 7], [0, 3, 6])
    with pytest.raises(ExecutionError, match="it computes the size 'found' as 1, but the graph states '3', which is 3"):
        model.execute(VALUES[:2])


def test_results_take_the_memory_of_the_outputs_and_kernels_the_name_of_the_op() -> None:
    declare(above)
    text = emit(graph_that_calls(*FOUND).module.clone(), "tile", CompileOptions())
    assert "tile.kernel @above_count(" in text
    assert "tile.kernel @above_pick(" in text
    assert text.count("tile.buffer") == 1  # of the count
    assert "copy" not in text


def test_grid_of_a_size_that_was_read() -> None:
    def fill(limits_ref: Any, y_ref: Any) -> None:
        y_ref[0] = limits_ref[1] + pl.program_id(0)

    def counted(limits: Any) -> Any:
        block = pl.BlockSpec((1,), lambda i: i)
        shape = pl.ShapeDtypeStruct((10,), "int32")
        return pl.pallas_call(fill, shape, grid=pl.cdiv(limits[0], 2) * 2 - 1 + limits[-3] % 5 // 9, out_specs=block)(
            limits
        )

    types = [pl.OperandSpec("limits", DType.int32, (3,))]
    declare(counted, operands=types, outputs=[pl.OutputSpec("y", DType.int32, (10,))], computed=None, parameters=())
    with Graph("g", input_types=[TensorType(DType.int32, [3])]) as graph:
        graph.output(*ops.custom(NAME, CPU, [graph.inputs[0]], [TensorType(DType.int32, [10])]))
    (y,) = InferenceSession().load(graph).execute(np.array([5, 40, 0], np.int32))
    pad = np.iinfo(np.int32).min
    assert y.to_numpy().tolist() == [40, 41, 42, 43, 44, pad, pad, pad, pad, pad]


def test_an_operand_returned_is_copied() -> None:
    declare(lambda x: (x, x), outputs=[pl.OutputSpec(name, F32, ("n",)) for name in "ab"], computed=None, parameters=())
    first, second = InferenceSession().load(graph_that_calls(VECTOR, VECTOR)).execute(VALUES)
    np.testing.assert_array_equal(first.to_numpy(), VALUES)
    np.testing.assert_array_equal(second.to_numpy(), VALUES)
    assert first.address != second.address


def test_special_values_keep_their_meaning() -> None:
    def double(x_ref: Any, y_ref: Any) -> None:
        y_ref[...] = pl.load(x_ref, pl.ds(0, 8), other=0.0) * 2.0

    def run(x: Any) -> Any:
        return pl.pallas_call(double, pl.ShapeDtypeStruct((8,), F32))(x)

    for special_values in (False, True):
        outputs = [pl.OutputSpec("y", F32, (8,))]
        declare(run, outputs=outputs, computed=None, parameters=(), special_values=special_values, replace=True)
        with Graph("g", input_types=[VECTOR]) as graph, graph.fastmath("nnan,nsz"):
            graph.output(*ops.custom(NAME, CPU, [graph.inputs[0]], [TensorType(F32, [8])]))
        text = emit(graph.module.clone(), "tile", CompileOptions())
        assert ("fastmath<nsz>" in text, "nnan" in text) == (special_values, not special_values)


def test_the_same_function_works_on_arrays() -> None:
    y, places = above(VALUES, limit=1.0, found=3)
    assert (y.tolist(), places.tolist()) == ([3, 2.5, 7], [0, 3, 6])


def compile_error(function: Callable[..., Any], *types: TensorType, **changes: Any) -> str:
    declare(function, **changes)
    graph = graph_that_calls(*types)
    with pytest.raises((GraphError, GraphTypeError)) as raised:
        InferenceSession().load(graph)
    return raised.value.message


ONE = [pl.OutputSpec("y", F32, ("n",))]


def test_wrong_results() -> None:
    plain = {"outputs": ONE, "computed": None, "parameters": ()}
    assert compile_error(lambda x: None, VECTOR, **plain) == "op 'above' returns 0 arrays for its outputs y"
    assert compile_error(lambda x: 3.0, VECTOR, **plain, replace=True) == (
        "op 'above' must return arrays of the op, not 3.0"
    )
    assert compile_error(lambda x: (x, x), VECTOR, **plain, replace=True) == (
        "op 'above' returns 2 arrays for its outputs y"
    )

    def wrong_type(x: Any) -> Any:
        return pl.pallas_call(bound(count, 0.0), pl.ShapeDtypeStruct((), "int32"))(x)

    assert compile_error(wrong_type, VECTOR, **plain, replace=True) == (
        "op 'above' returns an array of type int32[] as output 'y', which is declared as float32[n]"
    )


def test_wrong_use_of_arrays() -> None:
    plain = {"outputs": ONE, "computed": None, "parameters": (), "replace": True}

    def captures(x: Any) -> Any:
        return pl.pallas_call(lambda a, b, o: None, pl.ShapeDtypeStruct(x.shape, F32))(x, np.zeros(2, np.float32))

    assert compile_error(captures, VECTOR, **plain) == (
        "op 'above': kernel 'lambda' takes arrays of the op, but args[1] is array([0., 0.], dtype=float32); make it "
        "an operand or a parameter of the op"
    )

    def decides(x: Any) -> Any:
        size = pl.pallas_call(bound(count, 0.0), pl.ShapeDtypeStruct((), "int32"))(x)[()]
        return (x, x)[bool(size)]

    assert compile_error(decides, VECTOR, **plain) == (
        "an integer of the op has no value while the graph is built; decide in a kernel"
    )
    assert compile_error(lambda x: x[0], VECTOR, **plain) == (
        "an array of type float32[n][0]: reads one integer, with an index for each axis; compute the rest in a kernel"
    )

    def with_options(x: Any) -> Any:
        shape = pl.ShapeDtypeStruct(x.shape, F32)
        return pl.pallas_call(lambda a, o: None, shape, compiler_params={"opt_level": 1})(x)

    assert compile_error(with_options, VECTOR, **plain) == (
        "op 'above': compiler_params of kernel 'lambda' may hold dimension_semantics only; the rest belongs to the "
        "graph that calls the op"
    )


def test_computed_size_that_is_no_integer_of_the_op() -> None:
    assert compile_error(above, *FOUND, computed={"found": lambda x, limit: 3}) == (
        "op 'above' computes the size 'found' as 3; return an integer that is read from an array, x[i]"
    )


def test_wrong_declarations() -> None:
    with pytest.raises(GraphTypeError) as raised:
        declare(above, grid=3)
    assert raised.value.message == (
        "pl.register_kernel('above') is given a grid or specs, but the function takes the 1 operands alone; give them "
        "to the pallas_call in it, or take a reference for each output, too"
    )
    with pytest.raises(GraphError) as refused:
        declare(above, computed=None)
    assert refused.value.message == (
        "kernel 'above': output 'y' has size 'found', which no operand has; list it in computed or give a rule for it "
        "in dims"
    )


def test_a_missing_kernel_says_how_to_register_one() -> None:
    with Graph("g", input_types=[VECTOR]) as graph, pytest.raises(NotFoundError) as raised:
        ops.custom("abovee", CPU, [graph.inputs[0]], [VECTOR])
    assert "decorate a kernel with @halfulp.ops.pallas.register_kernel('abovee', operands=..., outputs=...)" in str(
        raised.value
    )


def test_declaration_keeps_the_reference() -> None:
    declare(above, reference=lambda x, limit: [x[x > limit]])
    assert find_kernel(NAME, "here").reference is not None
