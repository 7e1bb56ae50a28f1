"""Wrong calls of ops give the right error while the graph is built, word for word, with the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    Dim,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    HalfulpError,
    NotFoundError,
    TensorType,
    TensorValue,
)

F32, F16, I32, U8, BOOL = DType.float32, DType.float16, DType.int32, DType.uint8, DType.bool
Build = Callable[..., Any]
Case = tuple[str, list[tuple[DType, list[Any]]], Build, type[HalfulpError], str]

CASES: list[Case] = [
    (
        "static_sizes",
        [(F32, [2, 3]), (F32, [4])],
        lambda x, y: x + y,
        GraphError,
        "ops.add: operand 'lhs' has shape [2, 3] and operand 'rhs' has shape [4]; at axis -1 '3' and '4' are neither "
        "equal nor 1; reshape one of them, or slice it",
    ),
    (
        "symbols",
        [(F32, ["batch", "seq"]), (F32, ["n"])],
        lambda x, y: ops.mul(x, y),
        GraphError,
        "ops.mul: operand 'lhs' has shape [batch, seq] and operand 'rhs' has shape [n]; at axis -1 'seq' and 'n' are "
        "neither equal nor 1; rebind one of them if they are equal",
    ),
    (
        "promotion",
        [(I32, [3]), (F16, [3])],
        lambda x, y: x * y,
        GraphTypeError,
        "ops.mul: operand 'lhs' is int32 and operand 'rhs' is float16, and neither type holds both; cast one of them",
    ),
    (
        "int_out_of_range",
        [(U8, [3])],
        lambda x: x + 300,
        GraphError,
        "ops.add: operand 'rhs' is 300, but operand 'lhs' is uint8, which holds 0 to 255; "
        "cast that operand to a wider type",
    ),
    (
        "float_beside_ints",
        [(I32, [3])],
        lambda x: 1.5 - x,
        GraphTypeError,
        "ops.sub: operand 'lhs' is 1.5, but operand 'rhs' is int32; cast that operand to a float type",
    ),
    (
        "inexact_int",
        [(F16, [3])],
        lambda x: x + 4097,
        GraphError,
        "ops.add: operand 'rhs' is 4097, which is not exact in float16, the type of operand 'lhs'; "
        "write float(4097) to have it rounded, or cast that operand",
    ),
    (
        "float_too_large",
        [(F16, [3])],
        lambda x: x * 1e6,
        GraphError,
        "ops.mul: operand 'rhs' has 1000000.0, which is beyond float16, the type of operand 'lhs'; "
        "cast that operand to a wider type, or write math.inf",
    ),
    (
        "inexact_array",
        [(F32, [2])],
        lambda x: x + np.array([1, 2**24 + 1]),
        GraphError,
        "ops.add: operand 'rhs' is 16777217, which is not exact in float32, the type of operand 'lhs'; "
        "write float(16777217) to have it rounded, or cast that operand",
    ),
    (
        "none",
        [(F32, [3])],
        lambda x: ops.mul(x, None),  # type: ignore[arg-type]
        GraphTypeError,
        "ops.mul: operand 'rhs' must be a TensorValue, a number or an array, not None",
    ),
    (
        "list",
        [(F32, [3])],
        lambda x: ops.add(x, [1.0, 2.0, 3.0]),  # type: ignore[arg-type]
        GraphTypeError,
        "ops.add: operand 'rhs' must be a TensorValue, a number or an array, not [1.0, 2.0, 3.0]; "
        "write np.array(...) around it",
    ),
    (
        "numbers_only",
        [(F32, [3])],
        lambda x: ops.add(1, 2),
        GraphTypeError,
        "ops.add: one operand at least must be a TensorValue, not 1 and 2; make one with ops.constant",
    ),
    (
        "number_alone",
        [(F32, [3])],
        lambda x: ops.exp(1.0),
        GraphTypeError,
        "ops.exp: operand 'x' must be a TensorValue, not 1.0; make it one with ops.constant",
    ),
    (
        "exp_of_ints",
        [(I32, [3])],
        lambda x: ops.exp(x),
        GraphTypeError,
        "ops.exp on int32 [3]: the element type must be a float, not int32; "
        "write .cast(DType.float32) if that is meant",
    ),
    (
        "bitwise_on_floats",
        [(F32, [3])],
        lambda x: ~x,
        GraphTypeError,
        "ops.bitwise_not on float32 [3]: the element type must be an integer or bool, not float32; "
        "write .cast(DType.int8) if that is meant",
    ),
    (
        "condition",
        [(F32, [3])],
        lambda x: ops.where(x, x, 0.0),
        GraphTypeError,
        "ops.where: operand 'condition' must be bool, not float32; compare it with something",
    ),
    (
        "gelu_form",
        [(F32, [3])],
        lambda x: ops.gelu(x, "tan"),
        GraphError,
        "ops.gelu: approximate must be 'none', 'tanh' or 'quick', not 'tan'; did you mean 'tanh'?",
    ),
    (
        "axis",
        [(F32, [2, "n"])],
        lambda x: ops.sum(x, axis=2),
        GraphError,
        "ops.sum: axis 2 does not exist, since x has shape [2, n]; axis must be from -2 to 1",
    ),
    (
        "axis_of_scalar",
        [(F32, [])],
        lambda x: ops.softmax(x),
        GraphError,
        "ops.softmax: axis -1 does not exist, since x has shape []; a scalar has no axes",
    ),
    (
        "max_of_both",
        [(F32, [2])],
        lambda x: ops.max(x, x, axis=0),
        GraphError,
        "ops.max: takes either a second operand or axis, not both; reduce first, then compare the results",
    ),
    (
        "mean_of_ints",
        [(I32, [2])],
        lambda x: x.mean(),
        GraphTypeError,
        "ops.mean: the element type must be a float, not int32; write .cast(DType.float32) if that is meant",
    ),
    (
        "reshape_count",
        [(F32, [2, 3])],
        lambda x: x.reshape([4, 2]),
        GraphError,
        "ops.reshape: x has shape [2, 3] with '6' elements, but [4, 2] has '8'; "
        "make them equal, or leave one size open with -1",
    ),
    (
        "reshape_symbols",
        [(F32, ["n", 2])],
        lambda x: x.reshape(["m"]),
        GraphError,
        "ops.reshape: x has shape [n, 2] with '2*n' elements, but [m] has 'm'; rebind x if the two are equal",
    ),
    (
        "reshape_unprovable",
        [(F32, ["n"])],
        lambda x: x.reshape([2, -1]),
        GraphError,
        "ops.reshape: x has shape [n] with 'n' elements, which are not provably a multiple of '2', what the other "
        "sizes of [2, -1] make; rebind x to sizes that show it",
    ),
    (
        "reshape_two_open",
        [(F32, [4])],
        lambda x: x.reshape([-1, -1]),
        GraphError,
        "ops.reshape: shape has -1 at axes 0 and 1; leave one size open only",
    ),
    (
        "squeeze",
        [(F32, [2, "n"])],
        lambda x: ops.squeeze(x, 1),
        GraphError,
        "ops.squeeze: axis 1 of x, [2, n], has size 'n', not 1; rebind x if it is 1",
    ),
    (
        "rebind_rank",
        [(F32, ["n", 3])],
        lambda x: x.rebind([Dim("n")]),
        GraphError,
        "ops.rebind: shape [n] has 1 axes, but x, [n, 3], has 2; name a size for each axis",
    ),
    (
        "rebind_numbers",
        [(F32, ["n", 3])],
        lambda x: x.rebind(["n", 4]),
        GraphError,
        "ops.rebind: axis 1 of x, [n, 3], has size 3, which is never 4; use reshape or slice to change it",
    ),
    (
        "broadcast_to",
        [(F32, [3])],
        lambda x: x.broadcast_to([2, 4]),
        GraphError,
        "ops.broadcast_to: x has shape [3], which does not broadcast to [2, 4]: at axis -1 '3' is neither 1 nor '4'; "
        "use ops.tile or ops.repeat_interleave to repeat",
    ),
    (
        "permute_twice",
        [(F32, [2, 3, 4])],
        lambda x: ops.permute(x, [0, 0, 1]),
        GraphError,
        "ops.permute: axes [0, 0, 1] name an axis twice; name each once",
    ),
    (
        "permute_few",
        [(F32, [2, 3, 4])],
        lambda x: ops.permute(x, [0, 1]),
        GraphError,
        "ops.permute: axes has 2 entries, but x, [2, 3, 4], has 3 axes; name each once",
    ),
    (
        "index",
        [(F32, [4, 3])],
        lambda x: x[4],
        GraphError,
        "ops.slice_tensor: index 4 is beyond axis 0 of x, [4, 3], which has size 4",
    ),
    (
        "indices",
        [(F32, [4, 3])],
        lambda x: x[0, 0, 0],
        GraphError,
        "ops.slice_tensor: 3 indices for x, [4, 3], which has 2 axes; leave some out",
    ),
    (
        "ellipses",
        [(F32, [4, 3])],
        lambda x: x[..., 0, ...],
        GraphError,
        "ops.slice_tensor: '...' stands 2 times among the indices; use it once",
    ),
    (
        "slice_of_symbol",
        [(F32, ["n"])],
        lambda x: x[2:5],
        GraphError,
        "ops.slice_tensor: how many elements 2:5 takes of axis 0 of x, [n], depends on 'n'; "
        "state it as (slice(2, 5), size), or rebind x",
    ),
    (
        "concat_sizes",
        [(F32, [2, 3]), (F32, [2, 4])],
        lambda x, y: ops.concat([x, y]),
        GraphError,
        "ops.concat: part 0 has shape [2, 3] and part 1 [2, 4]; at axis 1 '3' and '4' must be equal; "
        "reshape one of them",
    ),
    (
        "concat_nothing",
        [(F32, [2])],
        lambda x: ops.concat([]),
        GraphError,
        "ops.concat: takes one tensor at least, and the list is empty",
    ),
    (
        "split_sizes",
        [(F32, [6])],
        lambda x: ops.split(x, [2, 3]),
        GraphError,
        "ops.split: split_sizes [2, 3] make '5', but axis 0 of x, [6], has size '6'; make them equal",
    ),
    (
        "chunk",
        [(F32, ["n"])],
        lambda x: ops.chunk(x, 2),
        GraphError,
        "ops.chunk: axis 0 of x, [n], has size 'n', which is not provably a multiple of 2; "
        "use ops.split with sizes that differ",
    ),
    (
        "tile",
        [(F32, [2, 3])],
        lambda x: ops.tile(x, [2]),
        GraphError,
        "ops.tile: repeats must have a number for each of the 2 axes of x, [2, 3], not 1",
    ),
    (
        "pad",
        [(F32, [3, 3])],
        lambda x: ops.pad(x, [1, 1]),
        GraphError,
        "ops.pad: paddings must have two sizes for each of the 2 axes of x, [3, 3], not 2",
    ),
    (
        "pad_negative",
        [(F32, [3])],
        lambda x: ops.pad(x, [1, -1]),
        GraphError,
        "ops.pad: a padding must not be negative, but one is -1; use a slice to cut",
    ),
    (
        "matmul",
        [(F32, ["m", "k"]), (F32, ["j", "n"])],
        lambda x, y: x @ y,
        GraphError,
        "ops.matmul: operand 'lhs' has shape [m, k] and operand 'rhs' has shape [j, n]; the inner sizes 'k' (axis -1 "
        "of lhs) and 'j' (axis -2 of rhs) must be equal; rebind one of them if they are equal",
    ),
    (
        "matmul_scalar",
        [(F32, [2, 3])],
        lambda x: x @ 2.0,
        GraphError,
        "ops.matmul: operand 'rhs' is a scalar; use ops.mul to scale",
    ),
    (
        "rms_norm",
        [(F32, [2, 8]), (F32, [4])],
        lambda x, w: ops.rms_norm(x, w, 1e-5),
        GraphError,
        "ops.rms_norm: operand 'weight' must have shape [8], the last axis of x, [2, 8], not [4]",
    ),
    (
        "constant_dtype",
        [(F32, [2])],
        lambda x: ops.constant([1.0, 2.0]),
        GraphTypeError,
        "ops.constant: [1.0, 2.0] has no element type of its own; pass dtype, such as DType.float32",
    ),
    (
        "constant_range",
        [(F32, [2])],
        lambda x: ops.constant([300], U8),
        GraphError,
        "ops.constant: 300 does not fit in uint8, which holds 0 to 255; choose a wider dtype",
    ),
    (
        "range_step",
        [(F32, [2])],
        lambda x: ops.range(0, 5, 0),
        GraphError,
        "ops.range: step must not be 0",
    ),
    (
        "gather_float_indices",
        [(F32, [4]), (F32, [2])],
        lambda x, i: ops.gather(x, i, 0),
        GraphTypeError,
        "ops.gather: operand 'indices' must be int32 or int64, not float32; write .cast(DType.int64) if that is meant",
    ),
    (
        "gather_nd_depth",
        [(F32, [4]), (I32, [2, "k"])],
        lambda x, i: ops.gather_nd(x, i),
        GraphError,
        "ops.gather_nd: x has shape [4] and indices [2, k]; the last size of indices must be a number, not 'k'; "
        "rebind it",
    ),
    (
        "scatter_dtype",
        [(F32, [4]), (F16, [2]), (I32, [2])],
        lambda x, u, i: ops.scatter(x, u, i),
        GraphTypeError,
        "ops.scatter: operand 'updates' is float16 and operand 'x' is float32; cast one of them",
    ),
    (
        "scatter_shapes",
        [(F32, [4]), (F32, [2]), (I32, [3])],
        lambda x, u, i: ops.scatter(x, u, i),
        GraphError,
        "ops.scatter: updates, [2], and indices, [3], must have one shape, with as many axes as x, [4]",
    ),
    (
        "scatter_nd_updates",
        [(F32, [4, 5]), (F32, [2, 4]), (I32, [2, 1])],
        lambda x, u, i: ops.scatter_nd_add(x, u, i),
        GraphError,
        "ops.scatter_nd_add: updates must have shape [2, 5], the positions of indices and the axes of x that they "
        "leave, not [2, 4]; rebind or broadcast it",
    ),
    (
        "top_k",
        [(F32, ["n", 3])],
        lambda x: ops.top_k(x, 4),
        GraphError,
        "ops.top_k: k must be from 0 to '3', the size of axis 1 of x, [n, 3], not 4",
    ),
    (
        "conv_channels",
        [(F32, [1, 5, 5, 2]), (F32, [3, 3, 3, 4])],
        lambda x, w: ops.conv2d(x, w),
        GraphError,
        "ops.conv2d: x has shape [1, 5, 5, 2] and filter [3, 3, 3, 4]; '2' channels of x (axis 3) must be 1 groups of "
        "'3' (axis 2 of filter); rebind one of them if they are",
    ),
    (
        "pool_padding",
        [(F32, [1, 5, 5, 2])],
        lambda x: ops.max_pool2d(x, 2, padding=2),
        GraphError,
        "ops.max_pool2d: padding 2 must be at most half of the window's 2; pad x instead",
    ),
    (
        "attention_heads",
        [(F32, [1, 3, 5, 4]), (F32, [1, 2, 5, 4])],
        lambda q, k: ops.attention(q, k, k),
        GraphError,
        "ops.attention: q [1, 3, 5, 4], k [1, 2, 5, 4], v [1, 2, 5, 4]; '3' heads are not provably a multiple of '2' "
        "groups",
    ),
    (
        "resize_symbol",
        [(F32, ["n"])],
        lambda x: ops.resize_linear(x, [8]),
        GraphError,
        "ops.resize_linear: axis 0 goes from size 'n' to '8', but both must be numbers; rebind x",
    ),
    (
        "repeats_without_size",
        [(F32, [3]), (I32, [3])],
        lambda x, k: ops.repeat_interleave(x, k, axis=0),
        GraphError,
        "ops.repeat_interleave: a tensor decides on the size of the result; state it with out_dim",
    ),
    (
        "group_norm",
        [(F32, [2, 6, 3]), (F32, [6])],
        lambda x, g: ops.group_norm(x, g, g, 4, 1e-5),
        GraphError,
        "ops.group_norm: axis 1 of x, [2, 6, 3], has size '6', which is not provably a multiple of 4 groups",
    ),
    (
        "call_count",
        [(F32, [3])],
        lambda x: ops.call(Graph("part", lambda a, b: a + b, [TensorType(F32, [3])] * 2), x),
        GraphError,
        "ops.call: graph 'part' has 2 inputs (a, b), but 1 values are given",
    ),
    (
        "call_sizes",
        [(F32, [3]), (F32, [4])],
        lambda x, y: ops.call(Graph("part", lambda a, b: a + b, [TensorType(F32, ["n"])] * 2), x, y),
        GraphError,
        "ops.call: graph 'part', input 'b' has shape [n], but the value has [4]; at axis 0 '4' must be '3'; "
        "rebind it if it is",
    ),
    (
        "shape_symbol",
        [(F32, ["n"])],
        lambda x: ops.shape_to_tensor(["m"]),
        GraphError,
        "ops.shape_to_tensor: 'm' is no symbol of an input and no op computes it; known here: 'n'",
    ),
    (
        "integers_of_sigmoid",
        [(I32, [3])],
        lambda x: ops.sigmoid(x),
        GraphTypeError,
        "ops.sigmoid on int32 [3]: the element type must be a float, not int32; write .cast(DType.float32) if that is "
        "meant",
    ),
    (
        "fastmath_on_ints",
        [(I32, [2])],
        lambda x: ops.add(x, x, fastmath="nnan"),
        GraphError,
        "ops.add: fastmath flags (nnan) stand on floats only, and it computes none; leave fastmath out",
    ),
]


@pytest.mark.parametrize(("specs", "build", "kind", "message"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_error(specs: list[tuple[DType, list[Any]]], build: Build, kind: type[HalfulpError], message: str) -> None:
    with Graph("g", input_types=[TensorType(dtype, shape) for dtype, shape in specs]) as graph:
        with pytest.raises(kind) as caught:
            build(*graph.inputs)
        graph.output()
    assert type(caught.value) is kind
    assert caught.value.message == message
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_truth_value() -> None:
    with Graph("g", input_types=[TensorType(BOOL, [])]) as graph:
        (x,) = graph.inputs
        with pytest.raises(TypeError, match=r"choose between values with ops\.where"):
            bool(x)
        graph.output(x)


def test_iteration_over_a_symbol() -> None:
    with Graph("g", input_types=[TensorType(F32, ["n", 2])]) as graph:
        (x,) = graph.inputs
        with pytest.raises(GraphTypeError, match="cannot be iterated over: axis 0 has size 'n'"):
            iter(x)
        rows: list[TensorValue] = list(x.transpose(0, 1))
        graph.output(*rows)
    assert [row.shape for row in rows] == [(Dim("n"),), (Dim("n"),)]


def test_op_outside_of_a_graph() -> None:
    with pytest.raises(LookupError) as caught:
        ops.constant(1.0, F32)
    assert type(caught.value) is NotFoundError
    assert caught.value.message == (
        "No graph found for ops.constant: it must be called inside 'with Graph(...) as g:', or in the forward function "
        "of a Graph"
    )
