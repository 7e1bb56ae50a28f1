"""A graph for each record in ``data/graph_cases.json`` that has values, by its name.

Most records try one op with several arguments or several ops on the same inputs; `calls`, `together` and `for_each` say
so. The networks at the end are written as a user would write them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import DeviceRef, Dim, DType, Graph, TensorType, TensorValue, Weight

F16, BF16, F32, F64 = DType.float16, DType.bfloat16, DType.float32, DType.float64
I8, I32, I64 = DType.int8, DType.int32, DType.int64
CPU = DeviceRef.CPU()

Program = Callable[..., Any]
Arguments = tuple[Any, ...] | dict[str, Any]


def together(*functions: Program) -> Program:
    """Each function on all of the inputs."""
    return lambda *inputs: [function(*inputs) for function in functions]


def for_each(function: Program) -> Program:
    """The function on each input."""
    return lambda *inputs: [function(x) for x in inputs]


def calls(function: Program, *argument_sets: Arguments) -> Program:
    """The function on the one input and each set of further arguments, positional ones or keywords."""

    def program(x: TensorValue) -> list[Any]:
        return [function(x, **more) if isinstance(more, dict) else function(x, *more) for more in argument_sets]

    return program


def items(*indices: Any) -> Program:
    """``x[index]`` for each index."""
    return lambda x: [x[index] for index in indices]


def named(*names: str) -> list[Program]:
    return [getattr(ops, name) for name in names]


S = np.s_
EVERY_ROW = slice(None)
ELEMENTARY = ("abs", "sqrt", "exp", "log1p", "cos", "atanh", "erf", "relu", "floor", "round", "gelu")

ELEMENTWISE: dict[str, Program] = {
    **{f"{name}_f32{inputs}": getattr(ops, name) for name in ELEMENTARY for inputs in ("", "_special")},
    "gelu_tanh_tail_f32": calls(ops.gelu, {"approximate": "tanh"}),
    "gelu_quick_tail_f32": calls(ops.gelu, ("quick",)),
    "activations_minus_inf": lambda x: [ops.silu(x), *calls(ops.gelu, ("tanh",), ("quick",))(x)],
    "unary_f64": together(*named("exp", "log", "log1p", "sin", "cos", "tanh", "sqrt", "rsqrt")),
    "unary_f16": together(*named("exp", "log", "tanh", "sqrt", "gelu", "sigmoid", "sin")),
    "abs_negate_ints": lambda small, large: [*together(abs, ops.negate)(small), -large, ops.abs(large)],
    "unary_empty_and_scalar": lambda none, one: [ops.exp(none), ops.tanh(1 + none), ops.exp(one), one + one],
    "cast_f32_to_ints": calls(ops.cast, (I32,), (I8,), (I64,)),
    "cast_f64_to_f32": calls(TensorValue.cast, (F32,)),
    "cast_ints_to_floats": lambda i, u, byte: [i.cast(F32), i.cast(F64), ops.cast(u, F32), ops.cast(byte, F16)],
    "cast_bool_nan": calls(ops.cast, (DType.bool,)),
    "cast_bf16_round_trip": lambda x: ops.cast(ops.cast(x, BF16), F32),
    "add_f32_broadcast": ops.add,
    "add_u64_large": operator.add,
    "sub_f64_scalar_left": lambda x, y: [ops.sub(2.5, x), 1 - y],
    "mul_i64_wraps": operator.mul,
    "mul_f16_overflow": ops.mul,
    "numpy_operand_left": lambda x: np.arange(1, 4, dtype=np.float32) * x,
    "div_i32_is_f64": operator.truediv,
    "floor_div_f32": operator.floordiv,
    "mod_u16": operator.mod,
    "pow_f32": lambda base, exponent: [base**exponent, ops.pow(base, 2)],
    "pow_int_exponent": calls(ops.pow, (3,)),
    "max_min_f32_nan": together(ops.max, ops.min),
    "compare_f32": together(*named("equal", "not_equal", "greater", "greater_equal")),
    "compare_less_nan": together(operator.lt, operator.le),
    "compare_u64_top_bit": together(operator.gt, ops.greater_equal),
    "bitwise_i32": lambda x, y: [*together(operator.and_, operator.or_, operator.xor)(x, y), ~x],
    "shift_i32": together(operator.lshift, operator.rshift),
    "where_broadcast": lambda condition, *choices: [ops.where(condition, choices[0], no) for no in (choices[1], 0.5)],
    "promote_mixed": lambda i8, i32, f16, f32, u8, i16: [i8 + i32, f16 + f32, u8 + i16, i8 + f16, u8 * f16],
}

AXES: dict[str, Program] = {
    "sum_ints": lambda x, y, z: [*for_each(lambda matrix: ops.sum(matrix, axis=0))(x, y), ops.sum(z)],
    "sum_long_f32": ops.sum,
    "mean_odd": lambda x, y: [ops.mean(x), y.mean(0), ops.mean(x, axis=0)],
    "max_min_reduce": lambda x, y: [
        *calls(ops.max, {}, {"axis": 0})(x),
        ops.min(x, axis=1),
        y.max(-1),
        y.min(0),
        ops.max(x, axis=-2),
        ops.min(x, axis=2),
    ],
    "argmax_argmin": lambda x, y: [x.argmax(), ops.argmin(x, 0), ops.argmax(y, axis=0), ops.argmax(x, axis=-2)],
    "argmax_nan": together(ops.argmax, ops.argmin),
    "cumsum_modes": calls(
        ops.cumsum, (), (0,), (-1, True), {"reverse": True}, {"axis": 1, "exclusive": True, "reverse": True}
    ),
    "top_k_axes": lambda x: [part for along in ((4,), (2, 0)) for part in ops.top_k(x, *along)],
    "top_k_all": lambda x: ops.top_k(x, k=5),
    "argsort_both": lambda x, y: [*calls(ops.argsort, {}, {"ascending": False})(x), ops.argsort(y)],
    "gather_empty_indices": lambda table, rows: ops.gather(table, rows, axis=0),
    "gather_nd": lambda x, *places: [ops.gather_nd(x, place) for place in places],
    "scatter_axes": lambda x, new, at: [ops.scatter(x, new, at, axis) for axis in (0, 1)],
    "scatter_max_min_mul": lambda x, new, at: [
        ops.scatter_max(x, new, at, 0),
        ops.scatter_min(x, new, at, axis=-1),
        ops.scatter_mul(x, new, at),
    ],
    "scatter_nd_add": ops.scatter_nd_add,
    "nonzero_2d": lambda *inputs: [ops.nonzero(x, Dim(f"count_{n}")) for n, x in enumerate(inputs)],
}

SHAPES: dict[str, Program] = {
    "reshape_forms": calls(ops.reshape, ((6, 4),), ((24,),), ((-1, 3, 2),), ([2, 1, -1],)),
    "broadcast_to": lambda x, y: [x.broadcast_to((2, 3, 4)), ops.broadcast_to(y, (2, 2)), ops.broadcast_to(x, (3, 0))],
    "permute_negative": calls(TensorValue.permute, ((2, 0, -2),)),
    "flatten_forms": calls(ops.flatten, (), {"start_dim": 1, "end_dim": -2}, (2,), (0, 1)),
    "stack_axes": lambda x, y: [
        *(ops.stack([x, y], axis=axis) for axis in (0, 1)),
        ops.stack((x, y, x), axis=2),
        ops.stack([x], axis=0),
    ],
    "slice_basic": items(S[1:4], S[:, ::2], S[..., -1], 2, -1, S[1:-1, 3], S[:, None, 2:5], S[0, 1, 2], S[..., :1]),
    "slice_negative_step_tuple": lambda x: ops.slice_tensor(x, ((S[::-1], 4), EVERY_ROW)),
    "slice_tensor_index": lambda x, row: ops.slice_tensor(x, (row, EVERY_ROW)),
    "pad_int": calls(ops.pad, {"paddings": (1,) * 4, "value": 7}),
    "repeat_interleave": lambda x, counts: [
        *calls(ops.repeat_interleave, (2, 0), (3, 1), (2,))(x),
        ops.repeat_interleave(x, counts, 0, out_dim=5),
    ],
    "range_uneven": lambda: ops.range(start=0, stop=5, step=2, device=CPU, dtype=I32),
    "band_part": calls(ops.band_part, (1, 1), (None, 0), (0, None), {"num_lower": 1, "num_upper": 0, "exclude": True}),
    "shape_to_tensor": lambda x: ops.shape_to_tensor(x.shape),
    "outputs_repeat_and_identity": lambda x: [x, x, 0 + x],
    "constant_forms": lambda: [
        ops.constant(2.5, dtype=F32, device=CPU),
        ops.constant(((1, 2), (3, 4)), I8, CPU),
        ops.constant(np.linspace(0, 5, 6).reshape(2, 3)),
        ops.constant(np.array([0, 1, 2], np.uint16)),
        ops.constant([True, False], DType.bool, device=CPU),
    ],
    "concat_static_plus_dim": lambda varying, fixed: ops.concat((fixed, varying), axis=0),
    "reshape_split_back": lambda x: [
        ops.reshape(x, (x.shape[0], 3, 4)),
        ops.reshape(x, (3 * x.shape[0], 4)),
        ops.reshape(ops.reshape(x, (3 * x.shape[0], 4)), (x.shape[0], 12)),
    ],
    "flatten_symbolic": calls(TensorValue.flatten, (), {"end_dim": 1}),
    "repeat_interleave_symbolic": calls(ops.repeat_interleave, (3, -2)),
    "slice_symbolic": items(S[1:], S[:-1], S[:, 1:-1]),
    "slice_index_symbolic": items(0, -1),
    "split_with_symbolic_rows": lambda x: ops.split(x, (1, 2, 3), axis=-1),
    "broadcast_symbolic": ops.add,
    "range_over_dim": lambda x: ops.range(0, 2 * x.shape[0], 1, dtype=I64, device=x.device, out_dim=2 * x.shape[0]),
    "rebind_divisible": lambda x: ops.reshape(x.rebind((4 * (x.shape[0] // 4), 2)), (x.shape[0] // 4, 8)),
}

LAYERS: dict[str, Program] = {
    "matmul_f32": together(operator.matmul, ops.matmul),
    "matmul_batched_broadcast": lambda x, *others: [ops.matmul(x, y) for y in others],
    "matmul_empty": lambda *pairs: [ops.matmul(*pairs[:2]), ops.matmul(*pairs[2:])],
    "matmul_vector": lambda vector, m, n: [ops.matmul(vector, m), ops.matmul(n, vector)],
    "matmul_symbolic": ops.matmul,
    "softmax_large_values": ops.softmax,
    "softmax_f16_f64": for_each(ops.softmax),
    "logsoftmax_large": ops.logsoftmax,
    "layer_norm_constant_row": lambda x, scale, shift: ops.layer_norm(x, scale, shift, epsilon=1e-5),
    "rms_norm_f16": lambda x, scale: ops.rms_norm(x, scale, epsilon=1e-5),
    "conv2d_plain": ops.conv2d,
    "conv2d_dilation": lambda image, filters: ops.conv2d(image, filters, dilation=(2, 2), padding=(2,) * 4),
    "conv_symbolic_size": lambda image, filters: ops.conv2d(image, filters, padding=(1,) * 4),
    "max_pool2d": calls(
        ops.max_pool2d,
        ((2, 3),),
        ((3, 2), 2, 1, 1),
        {"kernel_size": (2, 2), "stride": (2, 3), "ceil_mode": True},
        {"kernel_size": 2, "dilation": 2},
    ),
    "resize_nearest": lambda x: [
        ops.resize_nearest(x, (1, 2, 8, 18)),
        ops.resize(x, (1, 2, 2, 2), ops.InterpolationMode.NEAREST),
    ],
    "resize_linear_align_corners": calls(ops.resize_linear, ((1, 1, 5, 7), 1)),
    "attention_causal": lambda *operands: ops.attention(*operands, causal=True),
    "weight_used": lambda x: ops.add(ops.matmul(x, Weight("w", F32, (3, 2))), Weight("b", F32, (2,))),
}
WEIGHTS: dict[str, dict[str, Any]] = {
    "weight_used": {"w": np.arange(1, 7, dtype=np.float32).reshape(3, 2), "b": np.array([0.5, -0.5], np.float32)}
}


def matmul_in_bf16(x: TensorValue, y: TensorValue) -> TensorValue:
    product = ops.matmul(ops.cast(x, BF16), ops.cast(y, BF16))
    return product.cast(F32)


def swiglu(x: TensorValue, gate: TensorValue, up: TensorValue, down: TensorValue) -> TensorValue:
    hidden = ops.silu(ops.matmul(x, gate)) * ops.matmul(x, up)
    return x + ops.matmul(hidden, down)


def causal_attention(q: TensorValue, k: TensorValue, v: TensorValue) -> TensorValue:
    length = q.shape[-2]
    place = ops.range(0, length, 1, out_dim=length, device=q.device, dtype=I32)
    is_later = ops.unsqueeze(place, 0) > ops.unsqueeze(place, -1)
    scores = ops.matmul(q, ops.transpose(k, -1, -2)) / 8**0.5
    return ops.matmul(ops.softmax(ops.where(is_later, float("-inf"), scores)), v)


def rope_half(x: TensorValue, positions: TensorValue, frequencies: TensorValue) -> TensorValue:
    """Numbers i and i + 4 of a head are a point of the plane, which turns by the angle."""
    angle = ops.cast(positions, F32).reshape((-1, 1, 1)) * frequencies
    cosine, sine = ops.cos(angle), ops.sin(angle)
    first, second = x[..., :4], x[..., 4:]
    return ops.concat([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def rms_norm_by_hand(x: TensorValue, scale: TensorValue) -> list[TensorValue]:
    root = ops.sqrt(ops.mean(x**2) + 1e-6)
    return [x / root * scale, ops.rms_norm(x, scale, epsilon=1e-6)]


def top_k_sampling(logits: TensorValue, temperature: TensorValue, threshold: TensorValue) -> TensorValue:
    """The first of the five best tokens at which the sum of the probabilities reaches the threshold."""
    scaled, tokens = ops.top_k(logits / temperature, k=5)
    is_passed = ops.cumsum(ops.softmax(scaled)) < threshold
    rank = ops.min(ops.sum(is_passed.cast(I64)), 4)
    return ops.gather_nd(tokens, rank, batch_dims=1)


def beam_step(log_probs: TensorValue, scores: TensorValue, histories: TensorValue) -> list[TensorValue]:
    candidates = ops.flatten(ops.unsqueeze(scores, -1) + log_probs, start_dim=1)
    best, place = ops.top_k(candidates, k=3)
    parent = ops.unsqueeze(place // 11, 2)
    token = ops.mod(place, 11)
    kept = ops.gather_nd(histories, parent, batch_dims=1)
    return [best, token, ops.concat((kept, ops.unsqueeze(token, 2)), axis=2)]


def masked_mean_pool(x: TensorValue, mask: TensorValue) -> TensorValue:
    """The sum over the unmasked places is a product with a row of zeros and ones."""
    row = ops.unsqueeze(ops.where(mask, 1.0, ops.constant(0.0, F32, CPU)), 1)
    mean = ops.matmul(row, x) / ops.max(ops.sum(row), 1.0)
    return ops.squeeze(mean, 1)


def softmax_by_hand(x: TensorValue) -> TensorValue:
    powers = ops.exp(x - x.max(-1))
    return powers / ops.sum(powers, axis=-1)


def cumulative(x: TensorValue) -> list[TensorValue]:
    deviation = x - x.mean(-1)
    above = ops.greater(deviation, 0)
    return [ops.cumsum(deviation), ops.cumsum(abs(deviation), -1, reverse=True), ops.cumsum(above.cast(I32))]


def segment_sum(rows: TensorValue, segments: TensorValue) -> TensorValue:
    sums = ops.constant(np.zeros((4, 3), np.float32))
    return ops.scatter_nd_add(sums, rows, ops.unsqueeze(segments, 1))


def moe_routing(logits: TensorValue, x: TensorValue, experts: TensorValue) -> TensorValue:
    """Runs the two best experts of each row, and mixes what they give."""
    scores, chosen = ops.top_k(logits, k=2)
    given = ops.matmul(x.reshape((-1, 1, 1, 6)), ops.gather(experts, chosen, axis=0))
    shares = ops.softmax(scores).reshape((-1, 2, 1, 1))
    return ops.sum(shares * given, axis=1).reshape((-1, 5))


def quantize_int8(x: TensorValue) -> list[TensorValue]:
    step = ops.max(abs(x), axis=-1) / 127
    steps = ops.round(x / step)
    return [steps.cast(I8), steps * step]


def call_subgraph_twice(x: TensorValue, first: TensorValue, second: TensorValue) -> TensorValue:
    """The second call takes scale and shift in exchanged roles."""

    def normalised(rows: TensorValue, scale: TensorValue, shift: TensorValue) -> TensorValue:
        return ops.layer_norm(rows, scale, shift, epsilon=1e-3)

    graph = Graph("normalised", normalised, [TensorType(F32, (2, 5)), *[TensorType(F32, (5,))] * 2])
    (once,) = ops.call(graph, x, first, second)
    (twice,) = ops.call(graph, once, second, first)
    return twice


def print_passes(x: TensorValue) -> TensorValue:
    ops.print(x, "values")
    return 1 + x


def cond_both(x: TensorValue, doubled: TensorValue) -> list[TensorValue]:
    return ops.cond(doubled, [x.type], lambda: x + x, lambda: x - 1)


def while_collatz(start: TensorValue) -> list[TensorValue]:
    """Steps until the number is 1: the number, and how many there were."""

    def step(number: TensorValue, steps: TensorValue) -> list[TensorValue]:
        is_odd = ops.not_equal(number & 1, 0)
        return [ops.where(is_odd, 3 * number + 1, number >> 1), steps + 1]

    return ops.while_loop([start, ops.constant(0, I64)], lambda number, steps: number > 1, step)


def cond_inside_while(x: TensorValue, rounds: TensorValue) -> TensorValue:
    """Even rounds double, odd rounds count up."""

    def go(round: TensorValue, value: TensorValue) -> list[TensorValue]:
        is_even = ops.equal(round % 2, 0)
        (changed,) = ops.cond(is_even, [value.type], lambda: value + value, lambda: value + 1)
        return [round + 1, changed]

    return ops.while_loop([ops.constant(0, I64), x], lambda round, _: round < rounds, go)[1]


NETWORKS: dict[str, Program] = {
    "matmul_bf16": matmul_in_bf16,
    "mixed_bf16_linear": matmul_in_bf16,
    **{
        function.__name__: function
        for function in (
            swiglu,
            causal_attention,
            rope_half,
            rms_norm_by_hand,
            top_k_sampling,
            beam_step,
            masked_mean_pool,
            softmax_by_hand,
            cumulative,
            segment_sum,
            moe_routing,
            quantize_int8,
            call_subgraph_twice,
            print_passes,
            cond_both,
            while_collatz,
            cond_inside_while,
        )
    },
}

PROGRAMS: dict[str, Program] = ELEMENTWISE | AXES | SHAPES | LAYERS | NETWORKS
