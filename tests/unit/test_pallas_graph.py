"""Kernels as part of a graph: symbols, weights, rounding options, checks, and names for ops.custom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, GraphError, NotFoundError, TensorType, Weight
from halfulp.compiler.registry import OperandSpec, OutputSpec, ParameterSpec, unregister_kernel
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import BoundsError, ExecutionError, InferenceSession

F32 = DType.float32
FOURS = pl.BlockSpec((4,), lambda i: i)


def scale(x_ref: Any, s_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * s_ref[...]


def blockwise(kernel: Any, *tensors: Any, **keywords: Any) -> Any:
    x = tensors[0]
    specs = [FOURS, *[pl.BlockSpec()] * (len(tensors) - 1)]
    out = pl.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (pl.cdiv(x.shape[0], 4),)
    return pl.pallas_call(kernel, out, grid=grid, in_specs=specs, out_specs=FOURS, **keywords)(*tensors)


@pytest.mark.parametrize("interpret", [False, True])
def test_symbolic_size_with_a_weight_and_a_constant(interpret: bool) -> None:
    weight = Weight("factor", F32, ())
    with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
        scaled = blockwise(scale, graph.inputs[0] + 1.0, weight, interpret=interpret)
        graph.output(blockwise(scale, scaled, np.float32(0.5)))
    model = InferenceSession().load(graph, weights_registry={"factor": np.float32(3)})
    for n in (0, 1, 4, 7, 100):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(model.execute(x)[0].to_numpy(), (x + 1) * 3 * 0.5)


def test_one_session_runs_the_graph_with_any_options() -> None:
    def product(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...])

    square = TensorType(F32, [8, 8])
    with Graph("g", input_types=[square, square]) as graph:
        call = pl.pallas_call(product, pl.ShapeDtypeStruct((8, 8), F32))
        graph.output(call(*graph.inputs))
    x, y = (np.random.default_rng(seed).normal(size=(8, 8)).astype(np.float32) for seed in (1, 2))
    chains = {}
    for mode in ("on", "off"):
        (chains[mode],) = InferenceSession().load(graph, options=CompileOptions(fp_contract=mode)).execute(x, y)
    rounded = np.zeros((8, 8), np.float32)
    for k in range(8):
        rounded += x[:, k, None] * y[None, k, :]
    np.testing.assert_array_equal(chains["off"].to_numpy(), rounded)
    assert (chains["on"].to_numpy() != rounded).any()


def test_fastmath_flags_reach_the_kernel() -> None:
    from xdsl.context import Context

    from halfulp.compiler.passes import get_all_passes

    with Graph("g", input_types=[TensorType(F32, ["n"]), TensorType(F32, [])]) as graph:
        graph.output(blockwise(scale, *graph.inputs, compiler_params={"fastmath": "nsz,arcp"}))
    module = graph.module
    get_all_passes()["convert-graph-to-tile"]()().apply(Context(), module)
    (line,) = (line for line in str(module).splitlines() if "arith.mulf" in line)
    assert "fastmath<arcp,nsz>" in line or "fastmath<nsz,arcp>" in line


def test_failed_check_names_the_kernel_and_the_message() -> None:
    def checked(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        pl.check(i < 2, "program {} is one too many", i)
        o_ref[...] = x_ref[...]

    with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
        graph.output(blockwise(checked, graph.inputs[0]))
    model = InferenceSession().load(graph)
    model.execute(np.zeros(8, np.float32))
    with pytest.raises(ExecutionError) as raised:
        model.execute(np.zeros(9, np.float32))
    assert str(raised.value) == "model 'g': program 2 is one too many (kernel 'checked', program 2)"


def shifted(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


OUTSIDE = {
    "rank 1": (
        (8,),
        4,
        pl.BlockSpec((2,), lambda i: i + 2),
        pl.BlockSpec((2,), lambda i: i),
        "kernel 'shifted', program (2,): Out-of-bounds block index (4,) for 'x_ref': its array has shape [8], its "
        "blocks [2], so the block lies outside",
    ),
    "rank 2": (
        (4, 8),
        (2, 4),
        pl.BlockSpec((2, 2), lambda i, j: (i, j + 2 * i)),
        pl.BlockSpec((2, 2), lambda i, j: (i, j)),
        "kernel 'shifted', program (1, 2): Out-of-bounds block index (1, 4) for 'x_ref': its array has shape [4, 8], "
        "its blocks [2, 2], so the block lies outside",
    ),
}


@pytest.mark.parametrize("keywords", [{"interpret": True}, {"debug": True}], ids=["interpret", "debug"])
@pytest.mark.parametrize("case", OUTSIDE)
def test_blocks_outside_are_index_errors_with_one_text_on_arrays_and_in_graphs(
    case: str, keywords: dict[str, Any]
) -> None:
    shape, grid, spec, own, text = OUTSIDE[case]
    x = np.zeros(shape, np.float32)
    call = pl.pallas_call(
        shifted, pl.ShapeDtypeStruct(shape, F32), grid=grid, in_specs=[spec], out_specs=own, **keywords
    )
    with pytest.raises(IndexError) as on_arrays:
        call(x)
    assert isinstance(on_arrays.value, pl.BlockIndexError)
    assert str(on_arrays.value) == text
    with Graph("g", input_types=[TensorType(F32, list(shape))]) as graph:
        graph.output(call(graph.inputs[0]))
    with pytest.raises(IndexError) as in_graph:
        InferenceSession().load(graph).execute(x)
    assert isinstance(in_graph.value, BoundsError)
    assert isinstance(in_graph.value, ExecutionError)
    assert str(in_graph.value) == f"model 'g': {text}"
    assert in_graph.value.program == (6 if case == "rank 2" else 2)


def test_slices_and_indices_outside_are_index_errors_in_graphs() -> None:
    def by_slice(x_ref: Any, i_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(i_ref[0], 4)]

    def by_index(x_ref: Any, i_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.full((4,), x_ref[i_ref[0]])

    texts = {
        by_slice: "slice pl.ds(6, 4) of axis 0 of 'x_ref', which has 8 elements",
        by_index: "index 8 of axis 0 of 'x_ref', which has 8 elements",
    }
    for kernel, text in texts.items():
        with Graph("g", input_types=[TensorType(F32, [8]), TensorType(DType.int32, [1])]) as graph:
            graph.output(pl.pallas_call(kernel, pl.ShapeDtypeStruct((4,), F32), debug=True)(*graph.inputs))
        model = InferenceSession().load(graph)
        model.execute(np.zeros(8, np.float32), np.zeros(1, np.int32))
        with pytest.raises(IndexError) as raised:
            model.execute(np.zeros(8, np.float32), np.array([6 if kernel is by_slice else 8], np.int32))
        assert str(raised.value).endswith(f"Out-of-bounds {text}")


def test_a_check_of_the_user_is_no_index_error_whatever_it_says() -> None:
    def checked(x_ref: Any, o_ref: Any) -> None:
        pl.check(pl.program_id(0) * 3 + pl.program_id(1) < 4, "Out-of-bounds {}", pl.program_id(1))
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(checked, pl.ShapeDtypeStruct((3,), F32), grid=(2, 3))
    with Graph("g", input_types=[TensorType(F32, [3])]) as graph:
        graph.output(call(graph.inputs[0]))
    with pytest.raises(ExecutionError) as raised:
        InferenceSession().load(graph).execute(np.zeros(3, np.float32))
    assert not isinstance(raised.value, IndexError)
    assert str(raised.value) == "model 'g': Out-of-bounds 1 (kernel 'checked', program (1, 1))"
    with pytest.raises(pl.KernelCheckError):
        call(np.zeros(3, np.float32))


NAME = "scale_in_blocks"


@pytest.fixture
def registered() -> Iterator[None]:
    @pl.register_kernel(
        NAME,
        operands=[OperandSpec("x", (F32, DType.float64), ("rows", "columns"))],
        outputs=[OutputSpec("y", (F32, DType.float64), ("rows", "columns"))],
        parameters=[ParameterSpec("factor", float), ParameterSpec("offset", float, 0.0)],
        grid=lambda rows, columns: (rows, pl.cdiv(columns, 8)),
        in_specs=[pl.BlockSpec((None, 8), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((None, 8), lambda i, j: (i, j)),
    )
    def kernel(x_ref: Any, y_ref: Any, *, factor: float, offset: float) -> None:
        y_ref[...] = x_ref[...] * factor + offset

    yield
    unregister_kernel(NAME)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("dtype", [F32, DType.float64])
def test_registered_kernel(dtype: DType) -> None:
    with Graph("g", input_types=[TensorType(dtype, ["n", 13])]) as graph:
        (x,) = graph.inputs
        (y,) = ops.custom(NAME, DeviceRef.CPU(), [x], [x.type], {"factor": 2.0})
        (z,) = ops.custom(NAME, DeviceRef.CPU(), [y], [x.type], {"factor": 1.0, "offset": 0.5})
        graph.output(z)
    x_value = np.arange(39, dtype=dtype.to_numpy()).reshape(3, 13)
    result = InferenceSession().load(graph).execute(x_value)[0].to_numpy()
    np.testing.assert_array_equal(result, x_value * 2 + 0.5)


@pytest.mark.usefixtures("registered")
def test_wrong_calls_of_a_registered_kernel() -> None:
    with Graph("g", input_types=[TensorType(F32, [2, 8])]) as graph:
        (x,) = graph.inputs
        with pytest.raises(
            NotFoundError, match="no kernel is registered under that name; did you mean 'scale_in_blocks'"
        ):
            ops.custom("scale_in_block", DeviceRef.CPU(), [x], [x.type], {"factor": 2.0})
        with pytest.raises(GraphError, match=r"parameter 'factor' \(float\) is missing"):
            ops.custom(NAME, DeviceRef.CPU(), [x], [x.type])
        with pytest.raises(GraphError, match=r"operand 'x' is missing \(0 given\)"):
            ops.custom(NAME, DeviceRef.CPU(), [], [x.type], {"factor": 2.0})
        with pytest.raises(GraphError, match="output 'y' is missing"):
            ops.custom(NAME, DeviceRef.CPU(), [x], [], {"factor": 2.0})


def test_equal_kernels_share_the_cache_of_compiled_graphs() -> None:
    from halfulp.compiler.codegen.cpu import host_target
    from halfulp.runtime.fingerprint import graph_key

    def key(factor: float) -> str | None:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * factor

        with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
            graph.output(blockwise(kernel, graph.inputs[0]))
        return graph_key(graph, CompileOptions(), host_target())

    assert key(2.0) is not None
    assert key(2.0) == key(2.0)
    assert key(2.0) != key(3.0)
