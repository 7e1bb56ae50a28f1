"""Sums and matrix products in the orders that other programs add in, every addition rounded as IEEE 754 says.

All functions work along the last axis of the first operand. Additions are those of the interpreter
(`halfulp.compiler.interpreter.exact`): f16 and bf16 add in f32 and round. What accumulates wider is another order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from halfulp.compiler.interpreter import exact

from .ulps import Array

Order = Callable[[Array], Array]
DotOrder = Callable[[Array, Array], Array]
LANES = (4, 8, 16, 32, 64)
BLOCKS = (64, 128, 256, 384, 512)


def in_sequence(x: Array) -> Array:
    """One after another, from the first."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for place in range(x.shape[-1]):
        total = exact.add(total, x[..., place])
    return total


def backwards(x: Array) -> Array:
    """One after another, from the last."""
    return in_sequence(x[..., ::-1])


def pairwise(x: Array) -> Array:
    """The sum of the left half plus that of the right half, down to single elements."""
    n = x.shape[-1]
    if n == 0:
        return np.zeros(x.shape[:-1], x.dtype)
    if n == 1:
        return np.asarray(x[..., 0])
    return exact.add(pairwise(x[..., : n // 2]), pairwise(x[..., n // 2 :]))


def by_numpy(x: Array) -> Array:
    """As ``numpy.sum`` does here; its order depends on the build."""
    return np.asarray(x.sum(axis=-1, dtype=x.dtype))


def in_lanes(x: Array, lanes: int) -> Array:
    """Element i to lane ``i mod lanes``, each lane in sequence; the lanes meet in a halving tree."""
    steps = -(-x.shape[-1] // lanes)
    padded = np.full((*x.shape[:-1], steps * lanes), -0.0, x.dtype)
    padded[..., : x.shape[-1]] = x
    state = in_sequence(np.moveaxis(padded.reshape(*x.shape[:-1], steps, lanes), -2, -1))
    return _tree(state)


def _tree(state: Array) -> Array:
    while state.shape[-1] > 1:
        half = state.shape[-1] // 2
        state = exact.add(state[..., :half], state[..., half:])
    return np.asarray(state[..., 0])


def accumulated_in(wide: type) -> Order:
    """In sequence in a wider type, rounded at the end."""
    return lambda x: exact.narrow(in_sequence(x.astype(wide)), x.dtype)


SUM_ORDERS: Mapping[str, Order] = {
    "in sequence": in_sequence,
    "backwards": backwards,
    "pairwise": pairwise,
    "numpy's order": by_numpy,
    **{f"{lanes} lanes": partial(in_lanes, lanes=lanes) for lanes in LANES},
    "in sequence in float32": accumulated_in(np.float32),
    "in sequence in float64": accumulated_in(np.float64),
}
"""By name, the orders of a sum that are tried."""


def dot_in_sequence(a: Array, b: Array, fused: bool = True) -> Array:
    """``a @ b``: along k from the first, by fma or by a rounded product and a rounded sum."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        total = _add_product(a[..., k, None], b[..., k, None, :], total, fused)
    return total


def _add_product(a: Array, b: Array, total: Array, fused: bool) -> Array:
    a, b = np.broadcast_to(a, total.shape), np.broadcast_to(b, total.shape)
    return exact.fma(a, b, total) if fused else exact.add(exact.multiply(a, b), total)


def dot_in_blocks(a: Array, b: Array, block: int) -> Array:
    """Chains of fma over ``block`` places of k each, whose results are added one after another."""
    total: Array | None = None
    for start in range(0, a.shape[-1], block):
        part = dot_in_sequence(a[..., start : start + block], b[..., start : start + block, :])
        total = part if total is None else exact.add(total, part)
    return dot_in_sequence(a, b) if total is None else total


def dot_in_lanes(a: Array, b: Array, lanes: int) -> Array:
    """Place k goes to lane ``k mod lanes``, each lane a chain of fma; the lanes meet in a halving tree."""
    parts = [dot_in_sequence(a[..., lane::lanes], b[..., lane::lanes, :]) for lane in range(lanes)]
    return _tree(np.stack(parts, axis=-1))


def dot_in(wide: type) -> DotOrder:
    """A chain of fma in a wider type, rounded at the end."""
    return lambda a, b: exact.narrow(dot_in_sequence(a.astype(wide), b.astype(wide)), a.dtype)


DOT_ORDERS: Mapping[str, DotOrder] = {
    "fma in sequence": dot_in_sequence,
    "products rounded, in sequence": partial(dot_in_sequence, fused=False),
    **{f"fma in blocks of {size}": partial(dot_in_blocks, block=size) for size in BLOCKS},
    **{f"fma in {lanes} lanes": partial(dot_in_lanes, lanes=lanes) for lanes in LANES[:3]},
    "fma in sequence in float32": dot_in(np.float32),
    "fma in sequence in float64": dot_in(np.float64),
}
"""By name, the orders of a matrix product that are tried."""
