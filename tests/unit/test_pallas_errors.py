"""The messages of the kernel language, word for word, and the user's line in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType
from halfulp.compiler.errors import HalfulpError
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

X = np.arange(8, dtype=np.float32)
OUT = pl.ShapeDtypeStruct((8,), "float32")
PAIRS = pl.BlockSpec((2,), lambda i: i)


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


def run(kernel: Callable[..., Any] = copy, *arrays: Any, out: Any = OUT, **keywords: Any) -> Any:
    return pl.pallas_call(kernel, out, **keywords)(*(arrays or (X,)))


def captured(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + X


def returned(x_ref: Any, o_ref: Any) -> Any:
    return x_ref[...]


def wrong_type(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...].astype(jnp.int32)


def int_into_float(x_ref: Any, o_ref: Any) -> None:
    o_ref[0] = 1


def wrong_shape(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[0:4]


def python_if(x_ref: Any, o_ref: Any) -> None:
    if pl.program_id(0) > 0:
        o_ref[...] = x_ref[...]


def python_range(x_ref: Any, o_ref: Any) -> None:
    for i in range(pl.program_id(0)):
        o_ref[i] = x_ref[i]


def no_such_axis(x_ref: Any, o_ref: Any) -> None:
    pl.program_id(2)


def unloaded(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref + 1


def stored_ref(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref


def backwards(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[::-1]


def static_slice(x_ref: Any, o_ref: Any) -> None:
    o_ref[0:4] = x_ref[pl.ds(6, 4)]


def dynamic_bounds(x_ref: Any, o_ref: Any) -> None:
    i = pl.program_id(0)
    o_ref[0:2] = x_ref[i : i + 2]


def too_many(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[0, 0]


def changing_carry(x_ref: Any, o_ref: Any) -> None:
    o_ref[0] = pl.fori_loop(0, 3, lambda i, c: c.astype(jnp.int32), x_ref[0])


def mask_of_three(x_ref: Any, o_ref: Any) -> None:
    pl.store(o_ref, (slice(None),), x_ref[...], mask=jnp.ones((3,), bool))


def bool_index(x_ref: Any, o_ref: Any) -> None:
    o_ref[x_ref[...] > 0] = x_ref[...]


def shapes_apart(x_ref: Any, o_ref: Any) -> None:
    o_ref[0:3] = x_ref[0:3] + x_ref[0:2]


def value_from_when(x_ref: Any, o_ref: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> Any:
        return x_ref[...]


def branches_apart(x_ref: Any, o_ref: Any) -> None:
    o_ref[0] = pl.cond(pl.program_id(0) == 0, lambda: x_ref[0], lambda: x_ref[0].astype(jnp.int32))


MESSAGES: list[tuple[Callable[..., Any], dict[str, Any], type[HalfulpError], str]] = [
    (
        captured,
        {},
        GraphError,
        "kernel 'captured' captures constants: the array 'X' of type float32[8] comes from outside. You should pass "
        "them as inputs.",
    ),
    (
        returned,
        {},
        GraphError,
        "kernel 'returned' should return None. It returns a value of type float32[8]; store what it computes in an "
        "output reference",
    ),
    (
        wrong_type,
        {},
        GraphError,
        "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32. Convert the value: .astype(o_ref.dtype)",
    ),
    (
        int_into_float,
        {},
        GraphError,
        "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32. Convert the value: .astype(o_ref.dtype)",
    ),
    (
        wrong_shape,
        {},
        GraphError,
        "Invalid shape for `swap`: o_ref[...] has shape [8], and the value [4]; reshape the value, or repeat it with "
        "jnp.broadcast_to or jnp.full",
    ),
    (
        python_if,
        {"grid": 2},
        GraphTypeError,
        "a value of type bool[] of kernel 'python_if' is neither true nor false while the kernel is traced, once for "
        "all programs; write pl.when(condition), pl.cond or jnp.where instead of if",
    ),
    (
        python_range,
        {"grid": 2},
        GraphTypeError,
        "a value of type int32[] of kernel 'python_range' is no Python int while the kernel is traced, once for all "
        "programs; write pl.fori_loop instead of range, and x[i] on a reference of the kernel",
    ),
    (no_such_axis, {"grid": (2, 3)}, GraphError, "pl.program_id: Axis 2 is out of bounds for grid (2, 3)"),
    (
        unloaded,
        {},
        GraphTypeError,
        "jnp.add takes values, not the reference 'x_ref'; did you forget to load from it using `[...]`?",
    ),
    (
        stored_ref,
        {},
        GraphError,
        "Cannot store a Ref into another Ref ('x_ref' into 'o_ref'). Did you forget to load from it using `[...]`?",
    ),
    (backwards, {}, GraphError, "x_ref[...]: slice must have a step >= 1, not -1"),
    (static_slice, {}, GraphError, "x_ref[...]: Out of bound slice: start=6, size=4, stride=1, dim=8."),
    (
        dynamic_bounds,
        {"grid": 2},
        GraphTypeError,
        "x_ref[...]: the bounds of a slice must be ints; write pl.ds(start, size) for a start that is a value of the "
        "kernel",
    ),
    (
        too_many,
        {},
        GraphError,
        "x_ref[...]: `indices` must not be longer than `shape`: there are 2 indices for shape [8]",
    ),
    (
        changing_carry,
        {},
        GraphTypeError,
        "pl.fori_loop: carried value 0 starts as a value of type float32[], but the body returns a value of type "
        "int32[]; convert one of them",
    ),
    (
        mask_of_three,
        {},
        GraphError,
        "pl.store: Cannot broadcast mask shape [3] to the shape [8] of the value",
    ),
    (
        bool_index,
        {},
        GraphTypeError,
        "o_ref[...]: an index block must hold integers, not bool; use pl.load and pl.store with a mask",
    ),
    (
        shapes_apart,
        {},
        GraphError,
        "jnp.add: shapes [3] and [2] do not broadcast; sizes of one axis must be equal or 1, reshape one of them",
    ),
    (
        value_from_when,
        {"grid": 2},
        GraphTypeError,
        "the function under pl.when must return None, not a value of type float32[8]; store what it computes, or use "
        "pl.cond",
    ),
    (
        branches_apart,
        {"grid": 2},
        GraphTypeError,
        "pl.cond: both functions must return values of one type, but value 0 is a value of type float32[] in one and a "
        "value of type int32[] in the other; convert with .astype or broadcast",
    ),
]


@pytest.mark.parametrize(
    ("kernel", "keywords", "kind", "message"), MESSAGES, ids=[message[0].__name__ for message in MESSAGES]
)
def test_kernel_is_refused_at_its_own_line(
    kernel: Callable[..., Any], keywords: dict[str, Any], kind: type[HalfulpError], message: str
) -> None:
    with pytest.raises(kind) as raised:
        run(kernel, **keywords)
    assert raised.value.message == message
    assert raised.value.location is not None
    first = inspect.getsourcelines(kernel)[1]
    assert first <= raised.value.location.line < first + len(inspect.getsourcelines(kernel)[0])
    assert raised.value.location.filename == __file__


TWO_AXES = pl.BlockSpec((2, 2), lambda i: (i, 0))
CALLS: list[tuple[Callable[[], Any], type[HalfulpError], str]] = [
    (
        lambda: run(grid=4, in_specs=[TWO_AXES]),
        GraphError,
        "Block shape for args[0] (= (2, 2)) must have the same number of dimensions as the array shape [8]; give an "
        "entry for each axis, None for one that the reference shall not have",
    ),
    (
        lambda: run(grid=4, in_specs=[pl.BlockSpec((2,), lambda i, j: i)]),
        GraphTypeError,
        "Index map function <lambda> for args[0] takes one positional argument for each of the 1 axes of the grid, "
        "but: missing required positional argument: 'j'",
    ),
    (
        lambda: run(in_specs=PAIRS),
        GraphError,
        "in_specs of kernel 'copy' must be a tuple or a list with an entry for each argument, not BlockSpec; write "
        "[spec]",
    ),
    (
        lambda: run(in_specs=[PAIRS, PAIRS]),
        GraphError,
        "Pytree for `in_specs` and `inputs` do not match: in_specs is a list of 2, but args is a tuple of 1; give each "
        "array one BlockSpec",
    ),
    (
        lambda: run(out_specs=[PAIRS]),
        GraphError,
        "Pytree for `out_specs` and `out_shape` do not match: out_specs is a list of 1, but out_shape is one "
        "ShapeDtypeStruct; give each array one BlockSpec",
    ),
    (
        lambda: run(out=8),
        GraphError,
        "Invalid out_shape type int: out_shape is 8; write pl.ShapeDtypeStruct(shape, dtype)",
    ),
    (
        lambda: run(lambda x_ref: None),
        GraphTypeError,
        "kernel '<lambda>' must take one positional argument for each of its 2 references (inputs, then outputs, then "
        "scratch), but: too many positional arguments",
    ),
    (
        lambda: run(lambda x, y, o: None, X, X, input_output_aliases={0: 0, 1: 0}),
        GraphError,
        "input_output_aliases={0: 0, 1: 0} of kernel 'lambda': two inputs are aliased to one output; an output starts "
        "as one input only",
    ),
    (
        lambda: run(input_output_aliases={0: 1}),
        GraphError,
        "input_output_aliases={0: 1} of kernel 'copy': there is no output 1; the kernel has 1, from 0 on",
    ),
    (
        lambda: run(input_output_aliases={0: 0}, out=pl.ShapeDtypeStruct((4,), "float32")),
        GraphError,
        "input_output_aliases={0: 0} of kernel 'copy': output 0 has a different abstract value than input 0: "
        "float32[4], not float32[8]; shapes and types must be equal",
    ),
    (
        lambda: run(grid_spec=pl.GridSpec(grid=(4,)), grid=(4,)),
        GraphError,
        "grid_spec and grid are both given; put grid into the GridSpec",
    ),
    (
        lambda: run(grid_spec=pl.GridSpec(grid=(4,)), in_specs=[PAIRS]),
        GraphError,
        "grid_spec and in_specs are both given; put in_specs into the GridSpec",
    ),
    (
        lambda: run(compiler_params={"dimension_semantic": ("parallel",)}),
        GraphError,
        "compiler_params: unknown key 'dimension_semantic'; keys: dimension_semantics, fastmath, fp_contract, threads, "
        "vector_bits, opt_level; did you mean 'dimension_semantics'?",
    ),
    (
        lambda: run(grid=4, compiler_params={"dimension_semantics": ("parallel", "arbitrary")}),
        GraphError,
        "dimension_semantics has 2 entries, but the grid has 1 axes; give one for each axis",
    ),
    (
        lambda: pl.BlockSpec((2,), lambda i: i, memory_space="vmem"),
        GraphError,
        "BlockSpec: memory_space must be one of 'any', 'program', 'host', not 'vmem'",
    ),
    (
        lambda: run(grid=(2.0,)),
        GraphError,
        "Grid must be a tuple of integers, dims or scalar tensors, got (2.0,)",
    ),
    (
        lambda: run(grid=(2, None)),
        GraphError,
        "Grid must be a tuple of integers, dims or scalar tensors, got (2, None)",
    ),
    (
        lambda: pl.BlockSpec((2.0,)),
        GraphError,
        "BlockSpec: Unsupported block dimension type float: 2.0; an entry of block_shape is an int, None, "
        "pl.Squeezed() or pl.Element(size)",
    ),
    (lambda: pl.BlockSpec((0,)), GraphError, "BlockSpec: the size of a block must be positive, not 0"),
    (
        lambda: pl.BlockSpec(lambda i: i, (2,)),  # type: ignore[arg-type]
        GraphTypeError,
        "BlockSpec takes block_shape first, then index_map; exchange the two",
    ),
    (
        lambda: pl.pallas_call(copy, OUT)(x=X),
        GraphTypeError,
        "kernel 'copy' is called with positional arguments only, not with x",
    ),
    (
        lambda: pl.program_id(0),
        GraphError,
        "pl.program_id(0) was called outside of a kernel; it has a value only while pallas_call runs a kernel or an "
        "index map",
    ),
    (
        lambda: pl.cdiv(7.0, 2),
        GraphTypeError,
        "pl.cdiv takes ints, not 7.0; use int(...) or //",
    ),
    (
        lambda: pl.plot_grid((2, 2, 2), pl.BlockSpec(), (1,)),
        GraphError,
        "pl.plot_grid draws arrays of one or two axes, not of shape (2, 2, 2); leave axes out",
    ),
    (
        lambda: pl.plot_grid((8,), PAIRS, (4,), "picture.png"),
        GraphError,
        "pl.plot_grid writes SVG, so the path must end in .svg, not 'picture.png'",
    ),
    (
        lambda: run(scratch_shapes=[OUT]),
        GraphTypeError,
        "a scratch shape must be made by pl.MemorySpace.ANY or pl.MemorySpace.PROGRAM, called with shape and dtype, "
        "not ShapeDtypeStruct(shape=(8,), dtype=DType.float32)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS, ids=[str(n) for n in range(len(CALLS))])
def test_call_is_refused(call: Callable[[], Any], kind: type[HalfulpError], message: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert raised.value.message == message
    assert raised.value.location is not None
    assert raised.value.location.filename == __file__


@pytest.mark.parametrize(
    ("index_map", "rule"),
    [
        (lambda i: (i, 0), "must return 1 values to match block_shape=[2]. Currently returning 2 values"),
        (lambda i: i * 1.0, "must return integer scalars. Output[0] is type float32[]; convert it to int32"),
        (lambda i: i > 0, "must return integer scalars. Output[0] is type bool[]; convert it to int32"),
        (lambda i: i.astype("uint32"), "must return integer scalars. Output[0] is type uint32[]; convert it to int32"),
        (
            lambda i: jnp.zeros((2,), "int32"),
            "must return integer scalars. Output[0] is type int32[2]; convert it to int32",
        ),
        (lambda i: None, "must return integer scalars. Output[0] is None; convert it to int32"),
    ],
)
def test_index_map_result_is_refused_at_its_line(index_map: Callable[..., Any], rule: str) -> None:
    line = index_map.__code__.co_firstlineno
    with pytest.raises(GraphError) as raised:
        run(grid=4, in_specs=[pl.BlockSpec((2,), index_map)])
    assert raised.value.message == f"Index map function <lambda> at {__file__}:{line} for args[0] {rule}"
    assert str(raised.value.location) == f"{__file__}:{line}"


def test_captured_local_array_is_named() -> None:
    weights = np.ones(8, np.float32)
    scale = np.float32(2)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.maximum(x_ref[...] * scale, weights)

    with pytest.raises(GraphError, match="captures constants: the array 'weights' of type float32\\[8\\]"):
        run(kernel)


TABLE = np.array([3, 2, 1, 0])


def indexes_host_array(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * TABLE[pl.program_id(0)]


def test_array_of_the_host_is_not_indexed_by_values() -> None:
    with pytest.raises(GraphError) as raised:
        run(indexes_host_array, grid=4)
    rule = "must not capture constants: it indexes an array of the host by a value of the kernel. You should pass that "
    assert raised.value.message == f"kernel 'indexes_host_array' {rule}array as an input"
    assert raised.value.location is not None
    assert "TABLE[pl.program_id(0)]" in raised.value.location.with_source()
    with pytest.raises(GraphError) as raised:
        run(grid=4, in_specs=[pl.BlockSpec((2,), lambda i: TABLE[i])], out_specs=PAIRS)
    assert raised.value.message == f"Index map function <lambda> for args[0] {rule}array as an input"
    with pytest.raises(IndexError, match="list index out of range"):
        run(lambda x_ref, o_ref: [][0])


def test_dynamic_extent_cannot_be_loaded_whole() -> None:
    with Graph("g", input_types=[TensorType(DType.float32, ["n"])]) as graph:
        x = graph.inputs[0]
        call = pl.pallas_call(copy, pl.ShapeDtypeStruct(x.shape, x.dtype))
        with pytest.raises(GraphError) as raised:
            call(x)
    assert raised.value.message == (
        "x_ref[...]: axis 0 has a size that is known at run time only, so it cannot be taken whole or from its end; "
        "give its BlockSpec a block shape, or take pl.ds(start, size) of it"
    )


def test_options_of_the_graph_are_refused_inside_one() -> None:
    with (
        Graph("g", input_types=[TensorType(DType.float32, [8])]) as graph,
        pytest.raises(GraphError) as raised,
    ):
        pl.pallas_call(copy, OUT, compiler_params={"threads": 2})(graph.inputs[0])
    assert raised.value.message == (
        "kernel 'copy': compiler_params['threads'] is an option of the whole graph; pass it to session.load(graph, "
        "options=CompileOptions(...))"
    )


def test_size_that_nobody_has_is_refused() -> None:
    with Graph("g", input_types=[TensorType(DType.float32, [8]), TensorType(DType.float32, ["m"])]) as graph:
        x, y = graph.inputs
        call = pl.pallas_call(copy, OUT, grid=(y.shape[0],))
        with pytest.raises(GraphError) as raised:
            call(x)
    assert raised.value.message == (
        "kernel 'copy': the grid needs the size 'm', which no operand and no output has; pass a tensor that has an "
        "axis of this size, or the size as a scalar tensor"
    )
