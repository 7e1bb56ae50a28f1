"""matmul: the matrix product, batched, with broadcasting.

An element of the result is one chain over k in ascending order, from 0: fma, or under ``fp_contract="off"`` a rounded
product and a rounded sum. So it depends neither on the sizes of blocks nor on threads. f16 and bf16 have the chain in
f32, and one rounding at the end. Integers wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType as BlockType

from halfulp.compiler import Dim, DType, Graph, GraphError, TensorType, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .broadcasting import Shape, broadcast_shapes
from .contract import NUMBERS, Array, Contract, promise
from .elementwise import Flags, check_dtypes
from .promotion import TensorValueLike, as_tensors
from .reshaping import squeeze, unsqueeze

ROWS, COLUMNS, INNER = 16, 128, 128
"""Elements of a block: what a program reads of the right operand at a time is 64 KiB of f32, a part of an L2 cache."""


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


def _rows_of_block(call: OpCall) -> int:
    """Rows of a program's block: few if the result is known to have few."""
    rows = call.results[0].shape[-2]
    return 1 << max(min(ROWS, int(rows)) - 1, 0).bit_length() if isinstance(rows, StaticDim) else ROWS


def _recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    (target,), dtype = results, call.operands[0].dtype
    element = dtype.to_element_type()
    sum_element = DType.float32.to_element_type() if dtype.is_float and dtype.bits < 32 else element
    rank, rows = len(target.shape), _rows_of_block(call)

    def body(k: KernelBuilder) -> None:
        a, b, c = k.arguments
        *batch, i, j = k.program_ids
        at_a, at_b = (_batch_index(shape, batch, call) for shape in (call.operands[0].shape, call.operands[1].shape))

        def step(inner: Value, total: Value) -> list[Value]:
            left = k.load(_window(k, a, [*at_a, i, inner], (rows, INNER)))
            right = k.load(_window(k, b, [*at_b, inner, j], (INNER, COLUMNS)))
            return [k.dot(left, right, total)]

        zero = k.constant(0, BlockType(sum_element, [rows, COLUMNS]))
        (total,) = k.for_loop(0, (k.dim(a, len(at_a) + 1) + (INNER - 1)) // INNER, [zero], step)
        k.store(k.cast(total, element), _window(k, c, [*batch, i, j], (rows, COLUMNS)))

    sizes = [entry.dim(target, axis) for axis in range(rank)]
    grid = [*sizes[:-2], (sizes[-2] + (rows - 1)) // rows, (sizes[-1] + (COLUMNS - 1)) // COLUMNS]
    entry.launch("matmul", [*operands, target], grid, body)


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


MATMUL = register_op(OpDef("matmul", "opaque", ("lhs", "rhs"), _infer, fastmath=True, recipe=_recipe))


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
