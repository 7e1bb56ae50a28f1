"""Kernels at the edges of the language, interpreted, compiled and in a graph: all must leave numpy's bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from halfulp.compiler import DType, Graph, TensorType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import InferenceSession

Array = npt.NDArray[Any]
Result = Array | tuple[Array, ...]
Make = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A call, made with the keywords that say how it runs; its arguments, and what numpy gives."""

    make: Make
    arguments: tuple[Array, ...]
    wanted: Result


PROGRAMS: dict[str, Callable[[], Program]] = {}
NAN, INF = np.float32("nan"), np.float32("inf")
LEAST = np.iinfo(np.int32).min


def program(function: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS[function.__name__] = function
    return function


def call(kernel: Any, shape: Sequence[int], dtype: Any, **fixed: Any) -> Make:
    return lambda **keywords: pl.pallas_call(kernel, pl.ShapeDtypeStruct(shape, dtype), **fixed, **keywords)


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).integers(-50, 50, shape).astype(dtype)


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


@program
def odd_blocks() -> Program:
    x = numbers(7, 11)
    block = pl.BlockSpec((3, 5), lambda i, j: (i, j))

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 3 - 1

    return Program(call(kernel, (7, 11), "float32", grid=(3, 3), in_specs=[block], out_specs=block), (x,), x * 3 - 1)


@program
def blocks_in_reverse() -> Program:
    x = numbers(12, dtype=np.int32)
    grid = 4
    spec, own = pl.BlockSpec((3,), lambda i: 3 - i), pl.BlockSpec((3,), lambda i: i)
    wanted = x.reshape(4, 3)[::-1].reshape(-1)
    return Program(call(copy, (12,), "int32", grid=grid, in_specs=[spec], out_specs=own), (x,), wanted)


@program
def transposed_blocks_of_rank_4() -> Program:
    x = numbers(2, 3, 4, 5)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...].transpose(2, 0, 1)

    spec = pl.BlockSpec((None, 2, 4, 5), lambda i, j: (i, j, 0, 0))
    own = pl.BlockSpec((None, 5, 2, 4), lambda i, j: (i, 0, j, 0))
    made = call(kernel, (2, 5, 3, 4), "float32", grid=(2, 2), in_specs=[spec], out_specs=own)
    return Program(made, (x,), x.transpose(0, 3, 1, 2))


@program
def rank_0() -> Program:
    x = np.array(3.5, np.float32)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] / 2 + x_ref[()]

    return Program(call(kernel, (), "float32"), (x,), np.array(5.25, np.float32))


@program
def grid_of_none_leaves_the_pad() -> Program:
    made = call(copy, (3,), "float32", grid=(2, 0, 3))
    return Program(made, (numbers(3),), np.full(3, NAN))


@program
def grid_of_none_leaves_the_alias() -> Program:
    x = numbers(5, dtype=np.int16)
    return Program(call(copy, (5,), "int16", grid=0, input_output_aliases={0: 0}), (x,), x)


@program
def padding_on_both_sides() -> Program:
    x = numbers(6)
    spec = pl.BlockSpec((4,), lambda i: 2 * i, indexing_mode=pl.Unblocked(((3, 2),)))

    def kernel(x_ref: Any, o_ref: Any) -> None:
        outside = jnp.isnan(x_ref[...])
        o_ref[...] = jnp.where(outside, 1000.0, x_ref[...]).astype("int32")

    padded = np.concatenate([np.full(3, NAN), x, np.full(2, NAN)])
    rows = np.stack([padded[2 * i : 2 * i + 4] for i in range(4)])
    wanted = np.where(np.isnan(rows), 1000, np.nan_to_num(rows)).astype(np.int32)
    own = pl.BlockSpec((None, 4), lambda i: (i, 0))
    return Program(call(kernel, (4, 4), "int32", grid=4, in_specs=[spec], out_specs=own), (x,), wanted)


@program
def element_beside_blocked_and_squeezed() -> Program:
    x = numbers(4, 9, 3, dtype=np.int32)
    spec = pl.BlockSpec((None, pl.Element(4, (1, 0)), 3), lambda i, j: (i, 2 * j, 0))
    own = pl.BlockSpec((None, None, 4, 3), lambda i, j: (i, j, 0, 0))
    padded = np.concatenate([np.full((4, 1, 3), LEAST, np.int32), x], axis=1)
    wanted = np.stack([padded[:, 2 * j : 2 * j + 4] for j in range(4)], axis=1)
    return Program(call(copy, (4, 4, 4, 3), "int32", grid=(4, 4), in_specs=[spec], out_specs=own), (x,), wanted)


@program
def alias_accumulates() -> Program:
    x, y = numbers(8), numbers(5, 8)

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] += y_ref[...] * 2

    row = pl.BlockSpec((None, 8), lambda i: (i, 0))
    made = call(kernel, (8,), "float32", grid=5, in_specs=[None, row], input_output_aliases={0: 0})
    return Program(made, (x, y), x + 2 * y.sum(axis=0, dtype=np.float32))


@program
def two_aliases_swapped() -> Program:
    x, y = numbers(6), numbers(2, 3)[0:1].repeat(2, 0).reshape(-1)

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any, a_ref: Any, b_ref: Any) -> None:
            a_ref[...] = a_ref[...] - x_ref[...]
            b_ref[...] = b_ref[...] * y_ref[...]

        shapes = [pl.ShapeDtypeStruct((6,), "float32")] * 2
        return pl.pallas_call(kernel, shapes, input_output_aliases={0: 1, 1: 0}, **keywords)

    return Program(make, (x, y), (y - x, x * y))


@program
def scratch_accumulates_over_the_inner_axis() -> Program:
    x = numbers(4, 10)

    def kernel(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            total_ref[...] = jnp.zeros((2,), "float32")

        total_ref[...] += jnp.sum(jnp.where(pl.iota((3,)) + 3 * j < 10, x_ref[...], 0.0), axis=1)

        @pl.when(j == pl.num_programs(1) - 1)
        def _() -> None:
            o_ref[...] = total_ref[...]

    made = call(
        kernel,
        (4,),
        "float32",
        grid=(2, 4),
        in_specs=[pl.BlockSpec((2, 3), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((2,), lambda i, j: i),
        scratch_shapes=[pl.MemorySpace.ANY((2,), "float32")],
    )
    return Program(made, (x,), x.sum(axis=1))


@program
def scratch_of_each_program_starts_anew() -> Program:
    def kernel(o_ref: Any, *, counter: Any) -> None:
        counter[...] = jnp.where(counter[...] == LEAST, 1, counter[...] + 1)
        o_ref[0] = counter[0]

    made = call(
        kernel,
        (5,),
        "int32",
        grid=5,
        out_specs=pl.BlockSpec((1,), lambda i: i),
        scratch_shapes={"counter": pl.MemorySpace.PROGRAM((1,), "int32")},
    )
    return Program(made, (), np.ones(5, np.int32))


@program
def masks_of_two_axes() -> Program:
    x = numbers(5, 6)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        rows, columns = pl.iota((5, 6), 0), pl.iota((5, 6), 1)
        upper = pl.load(x_ref, ..., mask=rows <= columns, other=-1.0)
        pl.store(o_ref, ..., jnp.zeros((5, 6), "float32"))
        pl.store(o_ref, ..., upper, mask=(rows + columns) % 2 == 0)

    i, j = np.indices((5, 6))
    wanted = np.where((i + j) % 2 == 0, np.where(i <= j, x, np.float32(-1)), np.float32(0))
    return Program(call(kernel, (5, 6), "float32"), (x,), wanted)


@program
def other_without_a_mask_reaches_beyond() -> Program:
    x = numbers(10, dtype=np.int32)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[...] = pl.load(x_ref, pl.ds(4 * i - 2, 4), other=7) + pl.load(x_ref, pl.ds(4 * i + 1, 4, 2), other=0)

    padded = np.concatenate([np.full(2, 7, np.int32), x, np.full(4, 7, np.int32)])
    zeros = np.concatenate([x, np.zeros(10, np.int32)])
    wanted = np.stack([padded[4 * i : 4 * i + 4] + zeros[4 * i + 1 : 4 * i + 9 : 2] for i in range(3)])
    return Program(
        call(kernel, (3, 4), "int32", grid=3, out_specs=pl.BlockSpec((None, 4), lambda i: (i, 0))), (x,), wanted
    )


@program
def python_scalars_in_closures() -> Program:
    scale, offset, flag, name = 3, np.int8(-2), True, "ignored"

    def kernel(x_ref: Any, o_ref: Any) -> None:
        if flag and name:
            o_ref[...] = x_ref[...] * scale + offset

    x = numbers(9, dtype=np.int8) // 4
    return Program(call(kernel, (9,), "int8"), (x,), x * np.int8(3) + np.int8(-2))


@program
def integers_wrap() -> Program:
    x = np.array([127, -128, 100, -100], np.int8)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + x_ref[...] * x_ref[...] - 1

    with np.errstate(over="ignore"):
        wanted = x + x * x - np.int8(1)
    return Program(call(kernel, (4,), "int8"), (x,), wanted)


@program
def program_ids_wrap_as_int32() -> Program:
    def kernel(o_ref: Any) -> None:
        far = (pl.program_id(0) + 1) * 65536 * 32768
        o_ref[0] = jnp.where(far < 0, far // 65536, far)

    ids = np.arange(1, 5, dtype=np.int64) * 2**31
    far = ids.astype(np.int32)
    wanted = np.where(far < 0, far // 65536, far)
    return Program(call(kernel, (4,), "int32", grid=4, out_specs=pl.BlockSpec((1,), lambda i: i)), (), wanted)


@program
def unsigned_minus_and_division_by_zero() -> Program:
    x, y = np.array([0, 3, 250, 7], np.uint8), np.array([1, 0, 7, 255], np.uint8)

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any, o_ref: Any, q_ref: Any) -> None:
            o_ref[...] = x_ref[...] - y_ref[...]
            q_ref[...] = x_ref[...] // y_ref[...] + x_ref[...] % y_ref[...]

        return pl.pallas_call(kernel, [pl.ShapeDtypeStruct((4,), "uint8")] * 2, **keywords)

    quotient, rest = np.array([0, 0, 35, 0], np.uint8), np.array([0, 0, 5, 7], np.uint8)
    return Program(make, (x, y), (x - y, quotient + rest))


@program
def bool_reductions_along_axes() -> Program:
    x = numbers(4, 7, dtype=np.int64) > 0

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, any_ref: Any, all_ref: Any, sum_ref: Any) -> None:
            any_ref[...] = jnp.any(x_ref[...], axis=0)
            all_ref[...] = jnp.all(x_ref[...], axis=1)
            sum_ref[...] = jnp.sum(x_ref[...])

        shapes = [((7,), "bool"), ((4,), "bool"), ((), "int32")]
        return pl.pallas_call(kernel, [pl.ShapeDtypeStruct(*shape) for shape in shapes], **keywords)

    return Program(make, (x,), (np.any(x, axis=0), np.all(x, axis=1), np.array(x.sum(), np.int32)))


@program
def nan_and_infinity() -> Program:
    x = np.array([NAN, 1, -INF, INF, -0.0, 0.0, 5], np.float32)

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, o_ref: Any, top_ref: Any, place_ref: Any, sure_ref: Any) -> None:
            value = x_ref[...]
            o_ref[...] = jnp.maximum(value, 0.0) + jnp.where(value == value, jnp.minimum(value, 1.0), 2.0)
            top_ref[...] = jnp.max(value)
            place_ref[...] = jnp.argmax(value)
            sure_ref[...] = jnp.max(jnp.where(jnp.isnan(value), -jnp.inf, value))

        shapes = [((7,), "float32"), ((), "float32"), ((), "int32"), ((), "float32")]
        return pl.pallas_call(kernel, [pl.ShapeDtypeStruct(*shape) for shape in shapes], **keywords)

    with np.errstate(invalid="ignore"):
        first = np.maximum(x, np.float32(0)) + np.where(x == x, np.minimum(x, np.float32(1)), np.float32(2))
    wanted = (first, np.array(NAN), np.array(0, np.int32), np.array(INF))
    return Program(make, (x,), wanted)


@program
def edge_blocks_read_the_pad() -> Program:
    x = numbers(5, dtype=np.uint16)

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = jnp.sum(x_ref[...] == 0).reshape(1)

        spec, own = pl.BlockSpec((4,), lambda i: i), pl.BlockSpec((1,), lambda i: i)
        out = pl.ShapeDtypeStruct((2,), "int32")
        return pl.pallas_call(kernel, out, grid=2, in_specs=[spec], out_specs=own, **keywords)

    wanted = np.array([(x[:4] == 0).sum(), 3 + (x[4:] == 0).sum()], np.int32)
    return Program(make, (x,), wanted)


@program
def blocks_larger_than_the_array() -> Program:
    x = numbers(3, 2, dtype=np.float64)
    block = pl.BlockSpec((5, 4), lambda: (0, 0))
    made = call(copy, (3, 2), "float64", in_specs=[block], out_specs=block)
    return Program(made, (x,), x)


@program
def gather_and_scatter_of_rows() -> Program:
    x = numbers(6, 4)
    rows = np.array([5, 0, -1, 2], np.int32)

    def kernel(x_ref: Any, rows_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.zeros((6, 4), "float32")
        o_ref[rows_ref[...] % 6] = x_ref[rows_ref[...]] + 1

    wanted = np.zeros((6, 4), np.float32)
    wanted[rows % 6] = x[rows] + 1
    return Program(call(kernel, (6, 4), "float32"), (x, rows), wanted)


@program
def swap_and_steps() -> Program:
    x = numbers(8, dtype=np.int32)

    def make(**keywords: Any) -> Any:
        def kernel(x_ref: Any, o_ref: Any, old_ref: Any) -> None:
            o_ref[...] = x_ref[...]
            old_ref[...] = pl.swap(o_ref, pl.ds(1, 4, 2), x_ref[::2] * 10)

        shapes = [pl.ShapeDtypeStruct((8,), "int32"), pl.ShapeDtypeStruct((4,), "int32")]
        return pl.pallas_call(kernel, shapes, **keywords)

    wanted = x.copy()
    wanted[1::2] = x[::2] * 10
    return Program(make, (x,), (wanted, x[1::2]))


@program
def loops_with_bounds_from_the_data() -> Program:
    n = np.array([3, 0, 7, 1], np.int32)

    def kernel(n_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        factorial = pl.fori_loop(1, n_ref[i] + 1, lambda k, f: f * k, 1)
        halvings, _ = pl.while_loop(lambda c: c[1] > 0, lambda c: (c[0] + 1, c[1] // 2), (0, factorial))
        o_ref[0] = pl.cond(n_ref[i] > 2, lambda: halvings, lambda: -halvings)

    made = call(kernel, (4,), "int32", grid=4, out_specs=pl.BlockSpec((1,), lambda i: i))
    return Program(made, (n,), np.array([3, -1, 13, -1], np.int32))


@program
def serial_grid_carries_state_through_its_output() -> Program:
    def kernel(o_ref: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when((i == 0) & (j == 0))
        def _() -> None:
            o_ref[...] = jnp.zeros((3,), "int32")

        o_ref[j] = o_ref[(j + 2) % 3] * 2 + i + 1

    state = np.zeros(3, np.int32)
    for i in range(4):
        for j in range(3):
            state[j] = state[(j + 2) % 3] * 2 + i + 1
    return Program(call(kernel, (3,), "int32", grid=(4, 3)), (), state)


@program
def trees_of_operands_and_outputs() -> Program:
    x, y = numbers(4), numbers(3, 4)

    def make(**keywords: Any) -> Any:
        def kernel(parts: Any, o_ref: Any) -> None:
            o_ref["sum"][...] = parts["x"][...] + parts["rows"][0][1, :]
            o_ref["least"][...] = jnp.min(parts["rows"][0][...])

        shapes = {"sum": pl.ShapeDtypeStruct((4,), "float32"), "least": pl.ShapeDtypeStruct((), "float32")}
        made = pl.pallas_call(kernel, shapes, **keywords)

        def run(x: Any, y: Any) -> Any:
            result = made({"x": x, "rows": (y,)})
            return result["sum"], result["least"]

        return run

    return Program(make, (x, y), (x + y[1], np.array(y.min())))


@program
def small_floats_round_each_time() -> Program:
    x = (np.arange(12) / 7).astype(ml_dtypes.bfloat16)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * x_ref[...] + x_ref[...] / 3

    return Program(call(kernel, (12,), "bfloat16"), (x,), x * x + x / ml_dtypes.bfloat16(3))


@program
def dot_of_every_orientation() -> Program:
    x, y = numbers(4, 6, dtype=np.int32), numbers(4, 5, dtype=np.int32)

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = pl.dot(x_ref[...], y_ref[...], trans_a=True) + jnp.dot(x_ref[...].T, y_ref[...])

    return Program(call(kernel, (6, 5), "int32"), (x, y), 2 * (x.T @ y))


@program
def functions_of_program_ids_in_index_maps() -> Program:
    x = numbers(9, dtype=np.int64)
    spec = pl.BlockSpec((1,), lambda i: (pl.num_programs(0) - 1 - i) * 2 % 9)
    own = pl.BlockSpec((1,), lambda i: pl.program_id(0))
    wanted = x[(8 - np.arange(9)) * 2 % 9]
    return Program(call(copy, (9,), "int64", grid=9, in_specs=[spec], out_specs=own), (x,), wanted)


def assert_same(results: Any, wanted: Result, how: str) -> None:
    got = results if isinstance(results, tuple) else (results,)
    expected = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(got) == len(expected), how
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), f"{how}, output {number}"
        np.testing.assert_array_equal(one, other, err_msg=f"{how}, output {number}")
        if other.dtype.kind == "f":
            np.testing.assert_array_equal(
                np.signbit(one), np.signbit(np.where(np.isnan(other), one, other)), err_msg=how
            )


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("keywords", [{"interpret": True}, {}, {"debug": True}], ids=["interpret", "compiled", "debug"])
def test_on_arrays(name: str, keywords: dict[str, Any]) -> None:
    case = PROGRAMS[name]()
    before = [argument.copy() for argument in case.arguments]
    assert_same(case.make(**keywords)(*case.arguments), case.wanted, f"{name}, {keywords}")
    for argument, kept in zip(case.arguments, before, strict=True):
        np.testing.assert_array_equal(argument, kept)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("interpret", [False, True])
def test_in_a_graph(name: str, interpret: bool) -> None:
    case = PROGRAMS[name]()
    types = [TensorType(DType.from_numpy(argument.dtype), argument.shape) for argument in case.arguments]
    with Graph("g", input_types=types) as graph:
        made = case.make(interpret=interpret)(*graph.inputs)
        graph.output(*(made if isinstance(made, tuple | list) else [made]))
    outputs = InferenceSession().load(graph).execute(*case.arguments)
    assert_same(tuple(output.to_numpy() for output in outputs), case.wanted, name)
