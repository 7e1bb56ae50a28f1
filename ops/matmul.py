"""matmul: the matrix product, batched, with broadcasting.

An element of the result is one chain over k in ascending order, from 0: fma, or under ``fp_contract="off"`` a rounded
product and a rounded sum. So it depends neither on the sizes of blocks nor on threads. f16 and bf16 have the chain in
f32, and one rounding at the end. Integers wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType as BlockType

from halfulp.compiler import Dim, DType, Graph, GraphError, TensorType, TensorValue
from halfulp.compiler.dialects.tile import DYNAMIC
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.passes.graph_to_tile.epilogue import Destination
from halfulp.compiler.registry import register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .broadcasting import Shape, broadcast_shapes
from .contract import NUMBERS, Array, Contract, promise
from .elementwise import Flags, check_dtypes
from .promotion import TensorValueLike, as_tensors
from .reshaping import elements, squeeze, unsqueeze


@dataclass(frozen=True)
class Blocks:
    """What a program computes, ``rows`` by ``columns``, and how much of k it takes in at a time."""

    rows: int
    columns: int
    inner: int


TILES = Blocks(384, 256, 192)
"""At most, in elements of 4 bytes: the sums, 384 KiB, and the part of the right operand, 192 KiB, stay in a core's
second cache while they are used some hundred times."""
FEW_ROWS = 16
"""Up to so many rows, most of the time goes into reading the right operand, once."""
LONG_RUN, SHORT_RUN = 4096, 512
"""Columns of a program then: long runs where they come from memory, and where from a cache, work for several cores."""
CACHED_BYTES = 1 << 24
GPU_BLOCKS = Blocks(32, 64, 64)
"""In f32 40 KiB for both operands, the sums, and the new sums: they fit into the 48 KiB of shared memory of a block."""
MULTIPLE = 32
"""Columns of a block are a multiple of this, so that no vector of them is cut."""


def matmul(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The matrix product of the last two axes; the axes before them broadcast.

    Args:
        lhs: numbers, shape ``[..., m, k]``, or ``[k]`` for a row.
        rhs: ``[..., k, n]``, or ``[k]`` for a column.

    Returns:
        ``[..., m, n]``, without m or n where the operand has only one axis; at most ``k * u * sum |a b|`` off. With
        k = 0 it is 0.

    Raises:
        GraphError: the inner sizes are not provably equal, batch axes do not broadcast, or an operand is a scalar.
        GraphTypeError: types do not promote, or are bool.
    """
    subject = "ops.matmul"
    graph = Graph.current(subject)
    with Located():
        a, b = as_tensors(graph, subject, ("lhs", "rhs"), [lhs, rhs])
        for name, value in (("lhs", a), ("rhs", b)):
            if value.rank == 0:
                raise GraphError(f"{subject}: operand {name!r} is a scalar; use ops.mul to scale")
        left = unsqueeze(a, 0) if a.rank == 1 else a
        right = unsqueeze(b, 1) if b.rank == 1 else b
        if left.shape[-1] != right.shape[-2]:
            raise GraphError(f"{subject}: {_inner_mismatch(a.shape, b.shape)}")
        broadcast_shapes(subject, ("lhs", "rhs"), [(*value.shape[:-2], Dim(1), Dim(1)) for value in (left, right)])
    result = graph.apply(MATMUL, [left, right], None, fastmath)[0]
    result = squeeze(result, -1) if b.rank == 1 else result
    return squeeze(result, -2 + (b.rank == 1)) if a.rank == 1 else result


def _inner_mismatch(left: Shape, right: Shape) -> str:
    inner = right[-2] if len(right) > 1 else right[-1]
    symbolic = left[-1].symbols or inner.symbols
    remedy = "rebind one of them if they are equal" if symbolic else "transpose or reshape one of them"
    return (
        f"operand 'lhs' has shape {shape_text(left)} and operand 'rhs' has shape {shape_text(right)}; the inner sizes "
        f"'{left[-1]}' (axis -1 of lhs) and '{inner}' (axis {-2 if len(right) > 1 else -1} of rhs) must be equal; "
        f"{remedy}"
    )


def _infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    a, b = operands
    check_dtypes(operands, NUMBERS)
    if min(a.rank, b.rank) < 2 or a.shape[-1] != b.shape[-2]:
        raise GraphError(_inner_mismatch(a.shape, b.shape))
    batch = broadcast_shapes("matmul", ("lhs", "rhs"), [a.shape[:-2], b.shape[:-2]])
    return [TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-1]), a.device)]


def _blocks(call: OpCall, few_rows: bool, size: int) -> Blocks:
    """Blocks for these shapes, on sums of ``size`` bytes; an axis of known size is cut evenly."""
    a, b = call.operands
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if not call.results[0].device.is_host:
        return replace(GPU_BLOCKS, rows=1 << (_cut(rows, GPU_BLOCKS.rows, 1) - 1).bit_length())
    if few_rows:
        known = isinstance(inner, StaticDim) and isinstance(columns, StaticDim)
        is_cached = known and int(inner) * int(columns) * b.dtype.size_in_bytes <= CACHED_BYTES
        share = 1 if isinstance(rows, StaticDim) and int(rows) <= 2 else 2  # several rows keep a second core busy, too
        run = (SHORT_RUN if is_cached else LONG_RUN // share) * 4 // size
        return Blocks(_cut(rows, FEW_ROWS, 1), _cut(columns, run, MULTIPLE), _cut(inner, TILES.inner, 1))
    most = replace(TILES, rows=TILES.rows * 4 // size, inner=TILES.inner * 4 // size)
    return Blocks(_cut(rows, most.rows, 1), _cut(columns, most.columns, MULTIPLE), _cut(inner, most.inner, 1))


def _cut(size: Dim, most: int, multiple: int) -> int:
    """The size of equal parts of an axis, ``most`` at most and a multiple of ``multiple``."""
    if not isinstance(size, StaticDim):
        return most
    parts = max(-(-int(size) // most), 1)
    return max(-(-int(size) // parts // multiple) * multiple, multiple)


def _recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], target: Destination) -> None:
    """One launch; two where only the run can tell whether there are few rows, of which one has no programs then."""
    rows = call.operands[0].shape[-2]
    count = entry.dim(target.arguments[-1], call.results[0].rank - 2)
    if isinstance(rows, StaticDim) or not call.results[0].device.is_host:
        is_few = isinstance(rows, StaticDim) and int(rows) <= FEW_ROWS
        _launch(entry, call, operands, target, is_few, count)
        return
    is_few_now = entry.compare("le", count, FEW_ROWS)
    _launch(entry, call, operands, target, True, entry.select(is_few_now, count, entry.index(0)))
    _launch(entry, call, operands, target, False, entry.select(is_few_now, entry.index(0), count))


def _launch(
    entry: EntryBuilder, call: OpCall, operands: Sequence[Value], target: Destination, few_rows: bool, count: Value
) -> None:
    """A kernel for few or for many rows, run on ``count`` rows."""
    dtype, rank, refs = call.operands[0].dtype, call.results[0].rank, [*operands, *target.arguments]
    sums = DType.float32 if dtype.is_float and dtype.bits < 32 else dtype
    block = _blocks(call, few_rows, max(sums.size_in_bytes, 4))

    def body(k: KernelBuilder) -> None:
        a, b, *rest = k.arguments
        c = rest[-1]
        *batch, i, j = k.program_ids
        at_a, at_b = (_batch_index(shape, batch, call) for shape in (call.operands[0].shape, call.operands[1].shape))
        inner = k.dim(a, len(at_a) + 1)

        def step(part: Value, total: Value) -> list[Value]:
            left = k.load(_window(k, a, [*at_a, i, part], (block.rows, block.inner)))
            right = k.load(_window(k, b, [*at_b, part, j], (block.inner, block.columns)))
            counts = [
                _count(k, c, rank - 2, i, block.rows),
                _count(k, c, rank - 1, j, block.columns),
                _count(k, a, len(at_a) + 1, part, block.inner),
            ]
            return [k.dot(left, right, total, counts=counts)]

        zero = k.constant(0, BlockType(sums.to_element_type(), [block.rows, block.columns]))
        (total,) = k.for_loop(0, (inner + (block.inner - 1)) // block.inner, [zero], step)
        place = [*batch, i * block.rows, j * block.columns]
        target.store(k, rest, k.cast(total, dtype.to_element_type()), place)

    *sizes, n = (entry.dim(refs[-1], axis) for axis in range(rank))
    programs = [(count + (block.rows - 1)) // block.rows, (n + (block.columns - 1)) // block.columns]
    entry.launch(target.named("matmul_rows" if few_rows else "matmul"), refs, [*sizes[:-1], *programs], body)


def _count(k: KernelBuilder, ref: Value, axis: int, number: Value, size: int) -> Value | int:
    """How many elements of block ``number`` of an axis, and of those after it, there are; ``size`` if all are whole."""
    extent = ref.shape[axis]
    return size if extent != DYNAMIC and extent % size == 0 else k.dim(ref, axis) - number * size


def _batch_index(shape: Shape, batch: Sequence[Value], call: OpCall) -> list[Value | int]:
    """Where a program reads an operand along its batch axes: at 0 where that is repeated."""
    lead = len(batch) - (len(shape) - 2)
    return [
        0 if size == 1 and call.results[0].shape[lead + axis] != 1 else batch[lead + axis]
        for axis, size in enumerate(shape[:-2])
    ]


def _window(k: KernelBuilder, ref: Value, indices: Sequence[Value | int], block: tuple[int, int]) -> Value:
    lead = len(indices) - 2
    return k.window(ref, indices, [1] * lead + list(block), squeezed=range(lead))


def _multiply_adds(call: OpCall) -> Dim:
    return elements(call.results[0].shape) * call.operands[0].shape[-1]


MATMUL = register_op(
    OpDef(
        "matmul",
        "opaque",
        ("lhs", "rhs"),
        _infer,
        fastmath=True,
        has_epilogue=True,
        multiply_adds=_multiply_adds,
        recipe=_recipe,
    )
)


def _tolerance(epsilon: float, a: Array, b: Array) -> Array:
    return np.asarray((a.shape[-1] + 1) * epsilon / 2 * (np.abs(a) @ np.abs(b)))


promise(
    Contract(
        "matmul",
        matmul,
        2,
        NUMBERS,
        None,
        lambda a, b: a @ b,
        tolerance=_tolerance,
        tolerance_text="k * u * sum abs a b",
        layout="matrices",
    )
)
