"""Ops whose result depends on an order: reductions in order R, the k chain of a dot, the sorted top-k.

Each loop here runs over the axis whose order matters; numpy works on all other elements at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from ..dialects import tile
from ..dialects.tile.compute import CHUNK
from . import exact, integers
from .casts import cast, is_float
from .exact import Array

if TYPE_CHECKING:
    from .frame import Frame, Handler

Combine = Callable[[Array, Array], Array]

_FLOATS: dict[str, tuple[Combine, float]] = {
    "add": (exact.add, -0.0),
    "mul": (exact.multiply, 1.0),
    "maximum": (exact.maximum, -np.inf),
    "minimum": (exact.minimum, np.inf),
}
_INTEGERS: dict[str, Combine] = {
    "add": integers.add,
    "mul": integers.multiply,
    "maxs": integers.maximum_signed,
    "maxu": integers.maximum_unsigned,
    "mins": integers.minimum_signed,
    "minu": integers.minimum_unsigned,
    "and": integers.bitwise_and,
    "or": integers.bitwise_or,
    "xor": integers.bitwise_xor,
}


def _integer_identity(kind: str, dtype: np.dtype[Any]) -> Array:
    """``e`` with ``e op x == x`` for all x. Read as signed, the i1 that is set is -1, the smallest."""
    bits = integers.width(dtype)
    all_ones, sign = -1, -(1 << bits - 1)
    identities = {"mul": 1, "maxs": sign, "mins": ~sign, "minu": all_ones, "and": all_ones}
    identity = identities.get(kind, 0)
    return np.array(identity & 1 if dtype == integers.BOOL else identity, dtype)


def reduction(kind: str, dtype: np.dtype[Any]) -> tuple[Combine, Array]:
    """The operation of a reduction by its name in the IR, and its identity as a scalar."""
    if is_float(dtype):
        combine, identity = _FLOATS[kind]
        return combine, np.array(identity, dtype)
    return _INTEGERS[kind], _integer_identity(kind, dtype)


def reduce_in_order(kind: str, block: Array, axis: int, lanes: int) -> Array:
    """``block`` with ``axis`` reduced away in order R(``lanes``); an empty axis gives the identity.

    Chunks of 4096 elements; element i of a chunk goes to lane ``i mod lanes``; the lanes meet in a halving tree; chunk
    results join in ascending order. Places left over in the last chunk hold the identity, which changes nothing.
    """
    combine, identity = reduction(kind, block.dtype)
    rows = np.moveaxis(block, axis, -1)
    n = rows.shape[-1]
    if n == 0:
        return np.full(rows.shape[:-1], identity)
    chunk = min(CHUNK, -(-n // lanes) * lanes)
    chunks = -(-n // chunk)
    padded = np.full((*rows.shape[:-1], chunks * chunk), identity)
    padded[..., :n] = rows
    steps = padded.reshape(*rows.shape[:-1], chunks, chunk // lanes, lanes)
    state = np.full((*rows.shape[:-1], chunks, lanes), identity)
    for step in range(chunk // lanes):
        state = combine(state, steps[..., step, :])
    while lanes > 1:
        lanes //= 2
        state = combine(state[..., :lanes], state[..., lanes:])
    total = state[..., 0, 0]
    for index in range(1, chunks):
        total = combine(total, state[..., index, 0])
    return total


def _reduce(frame: Frame, op: tile.ReduceOp) -> Iterable[Array]:
    block, axis = frame.array(op.operand), op.axis.value.data
    if op.count is not None:
        count = max(int(frame.array(op.count)), 0)
        block = block[(slice(None),) * axis + (slice(count),)]
    return (reduce_in_order(op.kind.data, block, axis, op.lanes.value.data),)


def dot(a: Array, b: Array, acc: Array, *, fused: bool) -> Array:
    """``acc + a @ b``, each element a chain over ascending k of fma, or of a rounded product and a rounded sum."""
    a, b = cast(a, acc.dtype), cast(b, acc.dtype)
    for k in range(a.shape[1]):
        column, row = a[:, k, None], b[None, k, :]
        if not is_float(acc.dtype):
            acc = integers.add(acc, integers.multiply(column, row))
        elif fused:
            acc = exact.fma(column, row, acc)
        else:
            acc = exact.add(acc, exact.multiply(column, row))
    return acc


def _dot(frame: Frame, op: tile.DotOp) -> Iterable[Array]:
    a, b, acc = frame.arrays((op.a, op.b, op.acc))
    if not op.counts:
        return (dot(a, b, acc, fused=bool(op.fused)),)
    rows, columns, inner = (max(int(count), 0) for count in frame.arrays(op.counts))
    part = dot(a[:rows, :inner], b[:inner, :columns], acc[:rows, :columns], fused=bool(op.fused))
    result = acc.copy()
    result[:rows, :columns] = part
    return (result,)


def top_merge(top_values: Array, top_indices: Array, values: Array, indices: Array) -> tuple[Array, Array]:
    """The first k of all pairs by (value descending, index ascending), k being the length of ``top_values``.

    A candidate that is NaN never enters. -0.0 and +0.0 are equal, so their indices decide.
    """
    enters = values == values if is_float(values.dtype) else np.ones(values.shape, np.bool_)
    all_values = np.concatenate([top_values, values[enters]])
    all_indices = np.concatenate([top_indices, indices[enters]])
    # lexsort is ascending; ~x turns the order of integers round without overflow
    if is_float(values.dtype):
        descending = -all_values.astype(np.float64)
    else:
        descending = np.invert(integers.as_signed(all_values))
    order = np.lexsort((integers.as_signed(all_indices), descending))[: len(top_values)]
    return all_values[order], all_indices[order]


def _top_merge(frame: Frame, op: tile.TopMergeOp) -> Iterable[Array]:
    return top_merge(*frame.arrays((op.top_values, op.top_indices, op.values, op.indices)))


REDUCTION_HANDLERS: dict[type[Operation], Handler] = {
    tile.ReduceOp: _reduce,
    tile.DotOp: _dot,
    tile.TopMergeOp: _top_merge,
}
