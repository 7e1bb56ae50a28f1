"""What kernels can do, interpreted and compiled: indexing, control flow, scratch, aliases, trees, vmap."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from halfulp.compiler import DType, Graph, GraphError, TensorType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import Buffer, InferenceSession

Array = npt.NDArray[Any]
F32 = np.float32
X = np.arange(12, dtype=F32)
TABLE = np.arange(40, dtype=F32).reshape(8, 5)
THREES = pl.BlockSpec((3,), lambda i: i)


@pytest.fixture(params=[True, False], ids=["interpreted", "compiled"])
def interpret(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def shape(*sizes: int, dtype: Any = "float32") -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(sizes, dtype)


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(actual), expected)


# -- references


def test_strided_slices(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(1, 4, 2)]
        o_ref[0:4:2] = x_ref[0:2]

    equal(pl.pallas_call(kernel, shape(4), interpret=interpret)(X), [0, 3, 1, 7])


def test_integer_blocks_take_the_nearest_element_and_drop_stores_outside(interpret: bool) -> None:
    ids = np.array([3, 1, -1, 9], np.int32)

    def kernel(ids_ref: Any, t_ref: Any, rows: Any, columns: Any, parts: Any, stored: Any) -> None:
        rows[...] = t_ref[ids_ref[...]]
        columns[...] = t_ref[:, ids_ref[...]]
        parts[...] = t_ref[ids_ref[...], pl.ds(1, 3)]
        stored[...] = jnp.zeros(stored.shape)
        stored[ids_ref[...]] = jnp.ones((4,)) * 7

    outputs = (shape(4, 5), shape(8, 4), shape(4, 3), shape(8))
    rows, columns, parts, stored = pl.pallas_call(kernel, outputs, interpret=interpret)(ids, TABLE)
    equal(rows, TABLE[[3, 1, 7, 7]])
    equal(columns, TABLE[:, [3, 1, 4, 4]])
    equal(parts, TABLE[[3, 1, 7, 7], 1:4])
    equal(stored, [0, 7, 0, 7, 0, 0, 0, 7])


def test_scalar_indices_wrap_and_stay_inside(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[i] = x_ref[i - 2] + x_ref[i * 5] + x_ref[-1] + x_ref[100]

    result = pl.pallas_call(kernel, shape(4), grid=4, interpret=interpret)(X)
    equal(result, [10 + 0 + 22, 11 + 5 + 22, 0 + 10 + 22, 1 + 11 + 22])


def test_views_and_values_are_indexed(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        view = x_ref.at[pl.ds(2, 8)].at[1:5]
        value = view[...] * 2.0
        o_ref[i, ...] = jnp.concatenate([value[::-1], value[None, 1:3][0], value[i][None]])

    result = pl.pallas_call(kernel, shape(4, 7), grid=4, interpret=interpret)(X)
    value = X[3:7] * 2
    equal(result, [np.concatenate([value[::-1], value[1:3], value[i : i + 1]]) for i in range(4)])


def test_masked_load_and_store(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        places = pl.iota((16,))
        value = pl.load(x_ref, (pl.ds(0, 16),), mask=places < 12, other=-1.0)
        pl.store(o_ref, (places,), value, mask=places % 2 == 0)

    result = pl.pallas_call(kernel, shape(16), interpret=interpret)(X)
    even = np.where(np.arange(16) < 12, np.arange(16), -1)
    equal(result, np.where(np.arange(16) % 2 == 0, even, np.nan))


def test_swap_returns_what_was_there(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any, p_ref: Any) -> None:
        p_ref[...] = pl.swap(o_ref, (slice(None),), x_ref[...] + 1.0)

    call = pl.pallas_call(kernel, (shape(12), shape(12)), input_output_aliases={0: 0}, interpret=interpret)
    new, old = call(X)
    equal(new, X + 1)
    equal(old, X)


def test_writes_to_inputs_are_seen_by_later_programs_and_not_by_the_caller(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        x_ref[...] = x_ref[...] + 1.0
        o_ref[...] = x_ref[...]

    given = X.copy()
    equal(pl.pallas_call(kernel, shape(12), grid=3, interpret=interpret)(given), X + 3)
    equal(given, X)


def test_outputs_never_written_hold_the_pad(interpret: bool) -> None:
    dtypes = ("float32", "bfloat16", "int16", "uint32", "bool")
    outputs = pl.pallas_call(lambda *refs: None, tuple(shape(2, dtype=d) for d in dtypes), interpret=interpret)()
    pads = [np.asarray(output).astype(F32).tolist() for output in outputs]
    assert pads[2:] == [[-32768.0] * 2, [0.0] * 2, [0.0] * 2]
    assert np.isnan(pads[:2]).all()


# -- block specs


@pytest.mark.parametrize("entry", [None, pl.Squeezed()])
def test_squeezed_axes(interpret: bool, entry: Any) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        assert x_ref.shape == (5,)
        assert o_ref.shape == ()
        o_ref[...] = jnp.sum(x_ref[...])

    call = pl.pallas_call(
        kernel,
        shape(8),
        grid=8,
        in_specs=[pl.BlockSpec((entry, 5), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((None,), lambda i: i),
        interpret=interpret,
    )
    equal(call(TABLE), TABLE.sum(axis=1))


def test_element_blocks_read_the_pad_around_and_beyond(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(
        kernel,
        shape(3, 6),
        grid=3,
        in_specs=[pl.BlockSpec((pl.Element(6, (2, 0)),), lambda i: 5 * i)],
        out_specs=pl.BlockSpec((None, 6), lambda i: (i, 0)),
        interpret=interpret,
    )
    padded = np.concatenate([[np.nan] * 2, X, [np.nan] * 6])
    equal(call(X), [padded[5 * i : 5 * i + 6] for i in range(3)])


def test_index_map_with_functions_of_the_program(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def index_map(i: Any) -> Any:
        return jnp.where(i > 1, i, pl.num_programs(0) - 1 - pl.program_id(0))

    call = pl.pallas_call(
        kernel, shape(12), grid=4, in_specs=[pl.BlockSpec((3,), index_map)], out_specs=THREES, interpret=interpret
    )
    equal(call(X), X.reshape(4, 3)[[3, 2, 2, 3]].ravel())


def test_mapping_helpers() -> None:
    spec = pl.BlockSpec((2, None, pl.Element(4, (1, 0))), lambda i, j: (i, j, 3 * i))
    assert spec == pl.BlockSpec([2, pl.Squeezed(), pl.Element(4, (1, 0))], spec.index_map)
    assert hash(spec) == hash(pl.BlockSpec((2, None, pl.Element(4, (1, 0))), spec.index_map))
    assert spec.compute_index(2, 1) == (2, 1, 6)
    array = np.zeros((7, 5, 9), F32)
    mapping = pl.GridSpec(grid=(4, 5), in_specs=[spec]).get_grid_mapping([array], [])
    assert mapping.inputs[0].compute_start_indices((2, 1)) == (4, 1, 5)
    assert mapping.inputs[0].block_shape == (2, 1, 4)
    assert mapping.inputs[0].ref_shape == (2, 4)
    assert pl.slices_for_invocation(
        (100, 100), pl.BlockSpec((10, 20), lambda i, j, k: (i, j)), (10, 5, 4), (2, 3, 0)
    ) == [
        slice(20, 30),
        slice(60, 80),
    ]
    with pytest.raises(GraphError, match="no program of grid"):
        pl.slices_for_invocation((8,), THREES, (3,), (3,))


@pytest.mark.parametrize(("a", "b", "expected"), [(7, 2, 4), (-7, 2, -3), (8, 4, 2), (0, 3, 0)])
def test_cdiv(a: int, b: int, expected: int) -> None:
    assert pl.cdiv(a, b) == expected


def test_cdiv_by_zero_and_next_power_of_2() -> None:
    with pytest.raises(ZeroDivisionError):
        pl.cdiv(7, 0)
    assert [pl.next_power_of_2(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 4, 1024]


# -- the grid


@pytest.mark.parametrize("grid", [None, (), 1, [1], (np.int64(1),), (True,), (("a", 1),)])
def test_ways_to_write_one_program(grid: Any) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1.0

    equal(pl.pallas_call(kernel, shape(12), grid=grid, interpret=True)(X), X + 1)


@pytest.mark.parametrize("grid", [0, (2, 0), (-1,)])
def test_grid_without_programs(grid: Any, interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1.0

    call = pl.pallas_call(kernel, shape(12), grid=grid, input_output_aliases={0: 0}, interpret=interpret)
    equal(call(X), X)


def test_environment_unwinds_after_an_error_and_belongs_to_a_thread() -> None:
    def failing(x_ref: Any, o_ref: Any) -> None:
        raise KeyError("of the user")

    with pytest.raises(KeyError):
        pl.pallas_call(failing, shape(12), grid=3)(X)
    assert pl.current_grid_env() is None
    seen: list[object] = []
    with pl.grid_env([pl.GridAxis(2, 5)]):
        assert (pl.program_id(0), pl.num_programs(-1)) == (2, 5)
        thread = threading.Thread(target=lambda: seen.append(pl.current_grid_env()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_run_time_grid_bound() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + pl.num_programs(0)

    types = [TensorType(DType.float32, [12]), TensorType(DType.int64, [])]
    with Graph("g", input_types=types) as graph:
        x, n = graph.inputs
        call = pl.pallas_call(
            kernel, shape(12), grid=(n,), in_specs=[THREES], out_specs=THREES, input_output_aliases={0: 0}
        )
        graph.output(call(x))
    model = InferenceSession().load(graph)
    for count in (0, 1, 4):
        expected = X.copy()
        expected[: 3 * count] += count
        equal(model.execute(X, np.int64(count))[0], expected)


# -- control flow


def test_weak_carries_take_the_type_of_the_body(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any, n_ref: Any) -> None:
        total, count = pl.fori_loop(0, 3, lambda i, c: (c[0] + x_ref[i], c[1] + 1), (0, 0))
        o_ref[0] = total
        n_ref[0] = count

    total, count = pl.pallas_call(kernel, (shape(1), shape(1, dtype="int32")), interpret=interpret)(X)
    equal(total, [3])
    equal(count, [3])


def test_nested_when_in_loops(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.zeros(o_ref.shape)

        def body(i: Any, carry: None) -> None:
            @pl.when(i % 2 == 0)
            def _() -> None:
                o_ref[i] = x_ref[i] + pl.program_id(0)

        pl.fori_loop(0, pl.program_id(0) + 6, body, None)

    result = pl.pallas_call(kernel, shape(12), grid=3, interpret=interpret)(X)
    equal(result, [n + 2 if n % 2 == 0 and n < 8 else 0 for n in range(12)])


def test_while_loop_and_cond_with_values(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        doubled = pl.while_loop(lambda v: v < 100, lambda v: v * 2, i + 1)
        o_ref[i] = pl.cond(i > 1, lambda v: v + 1, lambda v: -v, doubled)

    equal(pl.pallas_call(kernel, shape(4, dtype="int32"), grid=4, interpret=interpret)(X), [-128, -128, 193, 129])


def test_int32_wraps_like_int32(interpret: bool) -> None:
    def kernel(o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[i] = (i * 1103515245 + 12345) // 65536 % 32768

    i = np.arange(6, dtype=np.int32)
    with np.errstate(over="ignore"):
        expected = (i * np.int32(1103515245) + np.int32(12345)) // np.int32(65536) % np.int32(32768)
    equal(pl.pallas_call(kernel, shape(6, dtype="int32"), grid=6, interpret=interpret)(), expected)


# -- scratch


def running_sum(x_ref: Any, o_ref: Any, acc: Any) -> None:
    @pl.when(pl.program_id(pl.current_grid_env().__len__() - 1) == 0)  # type: ignore[union-attr]
    def _() -> None:
        acc[...] = jnp.zeros(acc.shape)

    acc[...] += x_ref[...]
    o_ref[...] = acc[...]


def test_scratch_lasts_from_program_to_program(interpret: bool) -> None:
    call = pl.pallas_call(
        running_sum,
        shape(12),
        grid=4,
        in_specs=[THREES],
        out_specs=THREES,
        scratch_shapes=[pl.ANY((3,), "float32")],
        interpret=interpret,
    )
    equal(call(X), np.cumsum(X.reshape(4, 3), axis=0).ravel())


def test_programs_along_a_parallel_axis_have_scratch_of_their_own(interpret: bool) -> None:
    spec = pl.BlockSpec((None, 3), lambda i, j: (i, j))
    call = pl.pallas_call(
        running_sum,
        shape(2, 12),
        grid=(2, 4),
        in_specs=[spec],
        out_specs=spec,
        scratch_shapes=[pl.ANY((3,), "float32")],
        compiler_params={"dimension_semantics": ("parallel", "arbitrary")},
        interpret=interpret,
    )
    rows = np.stack([X, X * 10])
    equal(call(rows), np.cumsum(rows.reshape(2, 4, 3), axis=1).reshape(2, 12))


def test_scratch_of_a_program_is_new_each_time_and_has_a_name(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any, *, own: Any) -> None:
        o_ref[...] = own[...]
        own[...] = x_ref[...]

    call = pl.pallas_call(
        kernel,
        shape(12),
        grid=4,
        in_specs=[THREES],
        out_specs=THREES,
        scratch_shapes={"own": pl.MemorySpace.PROGRAM((3,), "float32")},
        interpret=interpret,
    )
    assert np.isnan(call(X)).all()


# -- trees, types, vmap


def test_trees_of_arguments_and_results(interpret: bool) -> None:
    def kernel(given: Any, o_ref: Any) -> None:
        o_ref["b"][...] = given["x"][0][...] + given["y"][...]
        o_ref["a"][...] = given["y"][...]

    call = pl.pallas_call(kernel, {"b": shape(12), "a": shape(12)}, interpret=interpret)
    result = call({"y": X * 2, "x": (X,)})
    equal(result["a"], X * 2)
    equal(result["b"], X * 3)


def test_arguments_of_many_kinds() -> None:
    def kernel(x_ref: Any, n_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * n_ref[...]

    call = pl.pallas_call(kernel, shape(12))
    equal(call(X, 2.0), X * 2)
    result = call(Buffer.from_numpy(X), F32(3))
    assert isinstance(result, Buffer)
    equal(result, X * 3)


@pytest.mark.parametrize(("in_axes", "arrays"), [((0, None), (2, 1)), ((None, 1), (1, 2)), (0, (2, 2))])
def test_vmap_adds_an_axis_that_the_kernel_does_not_see(interpret: bool, in_axes: Any, arrays: Sequence[int]) -> None:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        assert pl.num_programs(0) == 4
        o_ref[...] = x_ref[...] + y_ref[...] * pl.program_id(0)

    call = pl.pallas_call(kernel, shape(12), grid=4, in_specs=[THREES, THREES], out_specs=THREES, interpret=interpret)
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes, in_axes)
    given = [np.stack([X, X + 100], axis=axis) if axis is not None else X for axis in axes]
    rows = [np.stack([X, X + 100]) if axis is not None else np.stack([X, X]) for axis in axes]
    assert [array.ndim for array in given] == list(arrays)
    equal(pl.vmap(call, in_axes)(*given), rows[0] + rows[1] * np.repeat(np.arange(4), 3))


def test_vmap_with_an_alias_that_is_not_mapped(interpret: bool) -> None:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = o_ref[...] + x_ref[...] * y_ref[...]

    call = pl.pallas_call(kernel, shape(12), input_output_aliases={1: 0}, interpret=interpret)
    equal(pl.vmap(call, (0, None))(np.stack([X, X + 1]), X), [X + X * X, X + (X + 1) * X])


def test_vmap_of_vmap(interpret: bool) -> None:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + y_ref[...]

    call = pl.pallas_call(kernel, shape(3), interpret=interpret)
    rows = X.reshape(4, 3)
    result = pl.vmap(pl.vmap(call, (0, None)), (None, 0))(rows, rows * 10)
    equal(result, rows[None] + (rows * 10)[:, None])


# -- offsets beyond int32


def test_offsets_beyond_int32_are_exact_as_starts_and_wrap_as_numbers(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any, n_ref: Any) -> None:
        far = pl.program_id(0) * 65536 * 65536
        o_ref[...] = pl.load(x_ref, pl.ds(far, 3), other=-1.0)
        n_ref[0] = far + 1

    shapes = [pl.ShapeDtypeStruct((6,), "float32"), pl.ShapeDtypeStruct((2,), "int32")]
    specs = [THREES, pl.BlockSpec((1,), lambda i: i)]
    o, n = pl.pallas_call(kernel, shapes, grid=2, out_specs=specs, interpret=interpret)(X)
    equal(o, np.array([0, 1, 2, -1, -1, -1], np.float32))
    equal(n, np.array([1, 1], np.int32))
