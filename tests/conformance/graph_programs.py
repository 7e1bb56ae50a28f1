"""The graphs of the recorded conformance cases, by name; inputs and expected values lie in ``data/graph_cases.npz``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import DeviceRef, Dim, DType, Graph, TensorType, TensorValue, Weight

F16, BF16, F32, F64 = DType.float16, DType.bfloat16, DType.float32, DType.float64
I8, I16, I32, I64, U8, U16 = DType.int8, DType.int16, DType.int32, DType.int64, DType.uint8, DType.uint16
CPU = DeviceRef.CPU()

Program = Callable[..., Any]


def unary(function: Callable[[TensorValue], TensorValue]) -> Program:
    return lambda x: function(x)


BINARY: dict[str, Program] = {
    "add_f32_broadcast": lambda x, y: ops.add(x, y),
    "add_u64_large": lambda x, y: x + y,
    "sub_f64_scalar_left": lambda x, y: (2.5 - x, ops.sub(1, y)),
    "mul_i64_wraps": lambda x, y: ops.mul(x, y),
    "mul_f16_overflow": lambda x, y: x * y,
    "numpy_operand_left": lambda x: np.array([1, 2, 3], np.float32) * x,
    "div_i32_is_f64": lambda x, y: ops.div(x, y),
    "floor_div_f32": lambda x, y: ops.floor_div(x, y),
    "mod_u16": lambda x, y: ops.mod(x, y),
    "pow_f32": lambda x, y: (ops.pow(x, y), x**2),
    "pow_int_exponent": lambda x: x**3,
    "max_min_f32_nan": lambda x, y: (ops.max(x, y), ops.min(x, y)),
    "compare_f32": lambda x, y: (ops.equal(x, y), ops.not_equal(x, y), ops.greater(x, y), ops.greater_equal(x, y)),
    "compare_less_nan": lambda x, y: (x < y, x <= y),
    "compare_u64_top_bit": lambda x, y: (x > y, x >= y),
    "bitwise_i32": lambda x, y: (x & y, x | y, x ^ y, ~x),
    "shift_i32": lambda x, y: (x << y, x >> y),
    "where_broadcast": lambda c, x, y: (ops.where(c, x, y), ops.where(c, x, 0.5)),
    "promote_mixed": lambda a, b, c, d, e, f: (a + b, c + d, e + f, a + c, e * c),
}

CASTS: dict[str, Program] = {
    "cast_f32_to_ints": lambda x: (x.cast(I32), x.cast(I8), x.cast(I64)),
    "cast_f64_to_f32": lambda x: ops.cast(x, F32),
    "cast_ints_to_floats": lambda x, y, z: (x.cast(F32), x.cast(F64), y.cast(F32), z.cast(F16)),
    "cast_bool_nan": lambda x: x.cast(DType.bool),
    "cast_bf16_round_trip": lambda x: x.cast(BF16).cast(F32),
}

UNARY: dict[str, Program] = {
    f"{name}_f32{suffix}": unary(getattr(ops, name))
    for name in ("abs", "sqrt", "exp", "log1p", "cos", "atanh", "erf", "relu", "floor", "round", "gelu")
    for suffix in ("", "_special")
}
UNARY |= {
    "gelu_tanh_tail_f32": lambda x: ops.gelu(x, "tanh"),
    "gelu_quick_tail_f32": lambda x: ops.gelu(x, approximate="quick"),
    "activations_minus_inf": lambda x: (ops.silu(x), ops.gelu(x, "tanh"), ops.gelu(x, "quick")),
    "unary_f64": lambda x: [
        f(x) for f in (ops.exp, ops.log, ops.log1p, ops.sin, ops.cos, ops.tanh, ops.sqrt, ops.rsqrt)
    ],
    "unary_f16": lambda x: [getattr(ops, name)(x) for name in ["exp", "log", "tanh", "sqrt", "gelu", "sigmoid", "sin"]],
    "abs_negate_ints": lambda x, y: (ops.abs(x), -x, ops.negate(y), abs(y)),
    "unary_empty_and_scalar": lambda x, y: (ops.exp(x), ops.tanh(x + 1), ops.exp(y), y * 2),
}

REDUCTIONS: dict[str, Program] = {
    "sum_ints": lambda x, y, z: (ops.sum(x, 0), ops.sum(y, 0), ops.sum(z)),
    "sum_long_f32": lambda x: ops.sum(x),
    "mean_odd": lambda x, y: (ops.mean(x), ops.mean(y, axis=0), x.mean(0)),
    "max_min_reduce": lambda x, y: (
        ops.max(x),
        ops.max(x, axis=0),
        ops.min(x, axis=1),
        ops.max(y, axis=-1),
        ops.min(y, axis=0),
        x.max(1),
        x.min(-1),
    ),
    "argmax_argmin": lambda x, y: (ops.argmax(x), ops.argmin(x, axis=0), ops.argmax(y, axis=-2), x.argmax(0)),
    "argmax_nan": lambda x: (ops.argmax(x), ops.argmin(x)),
    "cumsum_modes": lambda x: (
        ops.cumsum(x),
        ops.cumsum(x, axis=0),
        ops.cumsum(x, exclusive=True),
        ops.cumsum(x, -1, False, True),
        ops.cumsum(x, axis=1, exclusive=True, reverse=True),
    ),
    "top_k_axes": lambda x: (*ops.top_k(x, 4), *ops.top_k(x, k=2, axis=0)),
    "top_k_all": lambda x: ops.top_k(x, 5),
    "argsort_both": lambda x, y: (ops.argsort(x), ops.argsort(x, ascending=False), ops.argsort(y)),
}

INDEXING: dict[str, Program] = {
    "gather_empty_indices": lambda x, i: ops.gather(x, i, 0),
    "gather_nd": lambda x, i, j: (ops.gather_nd(x, i), ops.gather_nd(x, j)),
    "scatter_axes": lambda x, u, i: (ops.scatter(x, u, i, axis=0), ops.scatter(x, u, i)),
    "scatter_max_min_mul": lambda x, u, i: (
        ops.scatter_max(x, u, i, axis=0),
        ops.scatter_min(x, u, i, 1),
        ops.scatter_mul(x, u, i, axis=-1),
    ),
    "scatter_nd_add": lambda x, u, i: ops.scatter_nd_add(x, u, i),
    "nonzero_2d": lambda x, b, y: (
        ops.nonzero(x, Dim("h1")),
        ops.nonzero(b, out_dim=Dim("h2")),
        ops.nonzero(y, Dim("h3")),
    ),
}

SHAPES: dict[str, Program] = {
    "reshape_forms": lambda x: (
        ops.reshape(x, (6, 4)),
        ops.reshape(x, [-1]),
        x.reshape((4, -1, 2)),
        x.reshape((2, 1, 12)),
    ),
    "broadcast_to": lambda x, y: (ops.broadcast_to(x, (2, 3, 4)), y.broadcast_to((2, 2)), x.broadcast_to((3, 0))),
    "permute_negative": lambda x: ops.permute(x, [-1, 0, -2]),
    "flatten_forms": lambda x: (ops.flatten(x), ops.flatten(x, 1, 2), ops.flatten(x, start_dim=-2), x.flatten(0, 1)),
    "stack_axes": lambda x, y: (
        ops.stack([x, y]),
        ops.stack([x, y], axis=1),
        ops.stack([x, y, x], axis=-1),
        ops.stack([x]),
    ),
    "slice_basic": lambda x: (
        x[1:4],
        x[:, ::2],
        x[..., -1],
        x[2],
        x[-1],
        x[1:-1, 3],
        x[:, None, 2:5],
        x[0, 1, 2],
        x[..., :1],
    ),
    "slice_negative_step_tuple": lambda x: ops.slice_tensor(x, [(slice(None, None, -1), 4), slice(None)]),
    "slice_tensor_index": lambda x, i: ops.slice_tensor(x, [i, slice(None)]),
    "pad_int": lambda x: ops.pad(x, [1, 1, 1, 1], value=7),
    "repeat_interleave": lambda x, k: (
        ops.repeat_interleave(x, 2, axis=0),
        ops.repeat_interleave(x, 3, axis=-1),
        ops.repeat_interleave(x, 2),
        ops.repeat_interleave(x, k, axis=0, out_dim=5),
    ),
    "range_uneven": lambda: ops.range(0, 5, 2, dtype=I32, device=CPU),
    "band_part": lambda x: (
        ops.band_part(x, 1, 1),
        ops.band_part(x, num_lower=None, num_upper=0),
        ops.band_part(x, 0, None),
        ops.band_part(x, 1, 0, exclude=True),
    ),
    "shape_to_tensor": lambda x: ops.shape_to_tensor(x.shape),
    "outputs_repeat_and_identity": lambda x: (x, x, x + 0),
    "constant_forms": lambda: (
        ops.constant(2.5, F32, CPU),
        ops.constant([[1, 2], [3, 4]], I8, device=CPU),
        ops.constant(np.arange(6.0).reshape(2, 3)),
        ops.constant(np.arange(3, dtype=np.uint16), device=CPU),
        ops.constant([True, False], DType.bool, CPU),
    ),
}

NETWORKS: dict[str, Program] = {
    "matmul_f32": lambda x, y: (ops.matmul(x, y), x @ y),
    "matmul_batched_broadcast": lambda x, y, w: (ops.matmul(x, y), x @ w),
    "matmul_bf16": lambda x, y: (x.cast(BF16) @ y.cast(BF16)).cast(F32),
    "matmul_empty": lambda a, b, c, d: (a @ b, c @ d),
    "matmul_vector": lambda v, m, n: (v @ m, n @ v),
    "softmax_large_values": lambda x: ops.softmax(x),
    "softmax_f16_f64": lambda x, y: (ops.softmax(x), ops.softmax(y)),
    "logsoftmax_large": lambda x: ops.logsoftmax(x),
    "layer_norm_constant_row": lambda x, g, b: ops.layer_norm(x, g, b, epsilon=1e-5),
    "rms_norm_f16": lambda x, g: ops.rms_norm(x, g, 1e-5),
    "conv2d_plain": lambda x, w: ops.conv2d(x, w),
    "conv2d_dilation": lambda x, w: ops.conv2d(x, w, (1, 1), (2, 2), (2, 2, 2, 2)),
    "max_pool2d": lambda x: (
        ops.max_pool2d(x, (2, 3)),
        ops.max_pool2d(x, kernel_size=(3, 2), stride=2, padding=1),
        ops.max_pool2d(x, (2, 2), stride=(2, 3), ceil_mode=True),
        ops.max_pool2d(x, (2, 2), dilation=2),
    ),
    "resize_nearest": lambda x: (
        ops.resize(x, [1, 2, 8, 18], ops.InterpolationMode.NEAREST),
        ops.resize_nearest(x, [1, 2, 2, 2]),
    ),
    "resize_linear_align_corners": lambda x: ops.resize_linear(x, [1, 1, 5, 7], coordinate_transform_mode=1),
    "attention_causal": lambda q, k, v: ops.attention(q, k, v, causal=True),
    "weight_used": lambda x: x @ Weight("w", F32, (3, 2)) + Weight("b", F32, (2,)),
}
WEIGHTS: dict[str, dict[str, Any]] = {
    "weight_used": {
        "w": np.array([[1, 2], [3, 4], [5, 6]], np.float32),
        "b": np.array([0.5, -0.5], np.float32),
    }
}

SYMBOLIC: dict[str, Program] = {
    "concat_static_plus_dim": lambda x, y: ops.concat([y, x]),
    "reshape_split_back": lambda x: (
        x.reshape((x.shape[0], 3, 4)),
        x.reshape((x.shape[0] * 3, 4)),
        x.reshape((x.shape[0] * 3, 4)).reshape((x.shape[0], -1)),
    ),
    "flatten_symbolic": lambda x: (ops.flatten(x), ops.flatten(x, 0, 1)),
    "repeat_interleave_symbolic": lambda x: ops.repeat_interleave(x, 3, axis=0),
    "slice_symbolic": lambda x: (x[1:], x[:-1], x[:, 1:3]),
    "slice_index_symbolic": lambda x: (x[0], x[-1]),
    "split_with_symbolic_rows": lambda x: ops.split(x, [1, 2, 3], axis=1),
    "broadcast_symbolic": lambda x, y: x + y,
    "matmul_symbolic": lambda x, y: x @ y,
    "range_over_dim": lambda x: ops.range(0, x.shape[0] * 2, 1, out_dim=x.shape[0] * 2, dtype=I64, device=CPU),
    "conv_symbolic_size": lambda x, k: ops.conv2d(x, k, padding=(1, 1, 1, 1)),
    "rebind_divisible": lambda x: x.rebind((x.shape[0] // 4 * 4, 2)).reshape((x.shape[0] // 4, 8)),
}


def swiglu(x: TensorValue, gate: TensorValue, up: TensorValue, down: TensorValue) -> TensorValue:
    return (ops.silu(x @ gate) * (x @ up)) @ down + x


def causal_attention(q: TensorValue, k: TensorValue, v: TensorValue) -> TensorValue:
    size = q.shape[2]
    place = ops.range(0, size, 1, out_dim=size, dtype=I64, device=CPU)
    scores = q @ ops.transpose(k, 2, 3) * (1 / math.sqrt(8))
    return ops.softmax(ops.where(ops.unsqueeze(place, 1) >= ops.unsqueeze(place, 0), scores, -10000.0)) @ v


def rope_half(x: TensorValue, positions: TensorValue, frequencies: TensorValue) -> TensorValue:
    angles = ops.unsqueeze(positions.cast(F32), 1) * frequencies
    cosine, sine = (ops.unsqueeze(ops.concat([f(angles), f(angles)], -1), 1) for f in (ops.cos, ops.sin))
    low, high = ops.chunk(x, 2, axis=-1)
    return x * cosine + ops.concat([-high, low], axis=-1) * sine


def rms_norm_by_hand(x: TensorValue, w: TensorValue) -> list[TensorValue]:
    return [x * ops.rsqrt(ops.mean(x * x) + 1e-6) * w, ops.rms_norm(x, w, 1e-6)]


def top_k_sampling(logits: TensorValue, temperature: TensorValue, u: TensorValue) -> TensorValue:
    values, indices = ops.top_k(logits / temperature, 5)
    below = (ops.cumsum(ops.softmax(values), axis=-1) < u).cast(I64)
    return ops.gather_nd(indices, ops.min(ops.sum(below), 4), batch_dims=1)


def beam_step(log_probs: TensorValue, score: TensorValue, tokens: TensorValue) -> tuple[TensorValue, ...]:
    total = (log_probs + ops.unsqueeze(score, 2)).reshape((log_probs.shape[0], 33))
    best, at = ops.top_k(total, 3)
    beam, token = at // 11, at % 11
    chosen = ops.gather_nd(tokens, ops.unsqueeze(beam, -1), batch_dims=1)
    return best, token, ops.concat([chosen, ops.unsqueeze(token, -1)], axis=-1)


def masked_mean_pool(x: TensorValue, mask: TensorValue) -> TensorValue:
    kept = ops.unsqueeze(mask.cast(F32), -1)
    count = ops.max(ops.sum(kept, axis=1), 1.0)
    return ops.squeeze(ops.sum(x * kept, axis=1), 1) / ops.squeeze(count, 1)


def softmax_by_hand(x: TensorValue) -> TensorValue:
    powers = ops.exp(x - ops.max(x, axis=-1))
    return powers / ops.sum(powers)


def cumulative(x: TensorValue) -> tuple[TensorValue, ...]:
    rest = x - ops.mean(x, axis=-1)
    return ops.cumsum(rest), ops.cumsum(ops.abs(rest), reverse=True), ops.cumsum((rest > 0).cast(I32))


def segment_sum(x: TensorValue, segments: TensorValue) -> TensorValue:
    zero = ops.broadcast_to(ops.constant(0.0, F32, CPU), (4, 3))
    return ops.scatter_nd_add(zero, x, ops.unsqueeze(segments, -1))


def moe_routing(logits: TensorValue, x: TensorValue, experts: TensorValue) -> TensorValue:
    values, chosen = ops.top_k(logits, 2)
    rows = ops.unsqueeze(ops.unsqueeze(x, 1), 2) @ ops.gather(experts, chosen, axis=0)
    return ops.squeeze(ops.unsqueeze(ops.softmax(values), 1) @ ops.squeeze(rows, 2), 1)


def quantize_int8(x: TensorValue) -> tuple[TensorValue, TensorValue]:
    scale = ops.max(ops.abs(x), axis=-1) / 127.0
    quantized = ops.cast(ops.round(x / scale), I8)
    return quantized, quantized.cast(F32) * scale


def mixed_bf16_linear(x: TensorValue, w: TensorValue) -> TensorValue:
    return ops.cast(x.cast(BF16) @ w.cast(BF16), F32)


def call_subgraph_twice(x: TensorValue, g: TensorValue, b: TensorValue) -> TensorValue:
    types = [TensorType(F32, shape) for shape in ((2, 5), (5,), (5,))]
    norm = Graph("norm", lambda v, scale, shift: ops.layer_norm(v, scale, shift, 1e-3), types)
    return ops.call(norm, ops.call(norm, x, g, b)[0], b, g)[0]


PROGRAMS: dict[str, Program] = {
    **BINARY,
    **CASTS,
    **UNARY,
    **REDUCTIONS,
    **INDEXING,
    **SHAPES,
    **NETWORKS,
    **SYMBOLIC,
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
            mixed_bf16_linear,
            call_subgraph_twice,
        )
    },
}
