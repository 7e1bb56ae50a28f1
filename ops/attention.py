"""attention: scaled dot products, softmax, and the weighted sum of values, made of other ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.types import shape_text

from .comparison import where
from .contract import FLOATS, Array, Example, promise_examples
from .matmul import matmul
from .normalization import softmax
from .promotion import TensorValueLike, as_tensor
from .reduction import summation_steps
from .reshaping import reshape, unsqueeze
from .samples import moderate
from .selection import transpose
from .sizes import dim_value, iota


def attention(
    q: TensorValueLike,
    k: TensorValueLike,
    v: TensorValueLike,
    *,
    causal: bool = False,
    mask: TensorValueLike | None = None,
    scale: float | None = None,
) -> TensorValue:
    """``softmax(scale q k^T + mask) v``.

    Args:
        q: floats, ``[batch, heads, s, d]``.
        k: ``[batch, groups, t, d]``, heads a multiple of groups: each group serves as many heads, in order.
        v: ``[batch, groups, t, e]``.
        causal: whether position i sees only the first ``i + 1 + (t - s)`` keys.
        mask: added to the scores; broadcasts to ``[batch, heads, s, t]``.
        scale: 1 / sqrt(d) if nothing is said.

    Returns:
        ``[batch, heads, s, e]``. A row that sees nothing is NaN.

    Raises:
        GraphError: shapes that do not fit.
        GraphTypeError: an operand that is no tensor of floats.
    """
    subject = "ops.attention"
    graph = Graph.current(subject)
    with Located():
        query, key, value = (as_tensor(graph, subject, name, x) for name, x in (("q", q), ("k", k), ("v", v)))
        repeats = _check(subject, query, key, value)
        width = query.shape[-1]
        if scale is None and not isinstance(width, StaticDim):
            raise GraphError(f"{subject}: the last size of q, '{width}', is not known; pass scale")
        factor = 1 / math.sqrt(int(width)) if scale is None else scale
    batch, heads, length, _ = query.shape
    groups = key.shape[1]
    grouped = reshape(query, [batch, groups, repeats, length, width])
    scores = matmul(grouped, transpose(unsqueeze(key, 2), -1, -2)) * factor
    scores = reshape(scores, [batch, heads, length, key.shape[2]])
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = where(_visible(graph, query, key), scores, -math.inf)
    weights = reshape(softmax(scores), [batch, groups, repeats, length, key.shape[2]])
    return reshape(matmul(weights, unsqueeze(value, 2)), [batch, heads, length, value.shape[-1]])


def _visible(graph: Graph, query: TensorValue, key: TensorValue) -> TensorValue:
    """Which key each query sees: key j if ``j <= i + (t - s)``."""
    lead = key.shape[2] - query.shape[2]
    rows = unsqueeze(iota(graph, query.shape[2], query.device), 1)
    if lead != 0:
        rows = rows + dim_value(graph, lead, rows.dtype, query.device)
    return iota(graph, key.shape[2], query.device) <= rows


def _check(subject: str, query: TensorValue, key: TensorValue, value: TensorValue) -> Dim:
    """The shapes fit; how many heads share a group."""
    shapes = f"q {shape_text(query.shape)}, k {shape_text(key.shape)}, v {shape_text(value.shape)}"
    for given in (query, key, value):
        if not given.dtype.is_float:
            raise GraphTypeError(f"{subject}: q, k and v must hold floats, not {given.dtype}; cast them")
        if given.rank != 4:
            raise GraphError(f"{subject}: {shapes}; each must have four axes, [batch, heads, positions, width]")
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        raise GraphError(f"{subject}: {shapes}; the first sizes must be equal; rebind them if they are")
    if key.shape[1:3] != value.shape[1:3]:
        raise GraphError(f"{subject}: {shapes}; axes 1 and 2 of k and v must be equal; rebind them if they are")
    if query.shape[3] != key.shape[3]:
        raise GraphError(f"{subject}: {shapes}; the last sizes of q and k must be equal; rebind them if they are")
    repeats = query.shape[1] // key.shape[1]
    if repeats * key.shape[1] != query.shape[1]:
        raise GraphError(
            f"{subject}: {shapes}; '{query.shape[1]}' heads are not provably a multiple of '{key.shape[1]}' groups"
        )
    return repeats


# -- contracts


def _weights(q: Array, k: Array, mask: Array | None, causal: bool, scale: float | None) -> tuple[Array, Array]:
    """The scores, and the weights that softmax makes of them."""
    keys = np.repeat(k, q.shape[1] // k.shape[1], 1)
    scores = q @ np.swapaxes(keys, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if causal:
        lead = k.shape[2] - q.shape[2]
        scores = np.where(np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None] + lead, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return scores, powers / powers.sum(-1, keepdims=True)


def _values(q: Array, v: Array) -> Array:
    return np.repeat(v, q.shape[1] // v.shape[1], 1)


def _reference(
    q: Array, k: Array, v: Array, mask: Array | None = None, causal: bool = False, scale: float | None = None
) -> Array:
    return np.asarray(_weights(q, k, mask, causal, scale)[1] @ _values(q, v))


def _tolerance(
    epsilon: float,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """A score that is off by s makes a weight that is off by a factor of e^2s; then come softmax and the last sum."""
    u, length = epsilon / 2, k.shape[2]
    scores, weights = _weights(q, k, mask, causal, scale)
    sizes, _ = _weights(np.abs(q), np.abs(k), None if mask is None else np.abs(mask), False, scale)
    off = (q.shape[-1] + 3) * u * sizes.max(-1, keepdims=True)
    finite = np.where(np.isfinite(scores), scores, scores.max(-1, keepdims=True))
    softmax_off = 2 * (summation_steps(length) + 6 + np.ptp(finite, -1, keepdims=True)) * u
    return np.asarray((np.expm1(2 * off) + softmax_off + (length + 2) * u) * (weights @ np.abs(_values(q, v))))


def _examples(dtype: DType) -> list[Example]:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((2, 3, 5, 8), (2, 3, 7, 8), {}),
        ((1, 4, 6, 16), (1, 2, 6, 16), {"causal": True}),
        ((1, 2, 3, 5), (1, 1, 70, 5), {"causal": True, "scale": 0.25}),
    )
    return [
        Example(
            (moderate(dtype, query), moderate(dtype, key, 1), moderate(dtype, (*key[:3], 9), 2)),
            parameters,
        )
        for query, key, parameters in cases
    ]


promise_examples(
    attention,
    FLOATS,
    _reference,
    _examples,
    tolerance=_tolerance,
    text="(2 d * u * abs q abs k, as softmax has it, + t * u) * weights abs v",
    rounds_each_step=True,
)
