"""The kernel of a reduction along an axis that is not the last: blocks of columns, elements of the axis in order."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import graph
from ...dialects.tile.compute import CHUNK
from ...dialects.tile.memory import ELEMENT
from ...dialects.tile.reduction import identity, safe_flags
from ...registry import find_op
from ...tile_builder import KernelBuilder, Value
from .access import call_of
from .entry import Entry, flags_of

COLUMNS = 256
"""Columns of a program: several vectors, so that every cache line that is read is used whole."""


def emit_column_reduction(entry: Entry, op: graph.ApplyOp) -> None:
    """Launches one reduction; the operand lies in a buffer, the axis has size 1 in the result."""
    definition = find_op(op.callee.data, op.subject)
    assert definition.reduction is not None
    kind = definition.reduction(call_of(definition, op))
    rank, axis = op.argument_types[0].rank, op.parameter_values["axis"]
    assert isinstance(axis, int)
    axis %= rank
    builder, source, target = entry.builder, entry.ref(op.arguments[0]), entry.ref(op.outputs[0])
    grid = [builder.dim(target, number) for number in range(rank)]
    grid[-1] = (grid[-1] + (COLUMNS - 1)) // COLUMNS
    builder.fastmath = flags_of(op)

    def body(k: KernelBuilder) -> None:
        ref, out = k.arguments
        column = k.program_ids[-1] * COLUMNS
        block = reduce_columns(k, ref, kind, axis, [*k.program_ids[:-1], column])
        shape = [1] * (rank - 1) + [COLUMNS]
        window = k.window(out, [*k.program_ids[:-1], column], shape, indexing=ELEMENT, squeezed=range(rank - 1))
        k.store(block, window)

    builder.launch(op.callee.data, [source, target], grid, body)


def reduce_columns(k: KernelBuilder, ref: Value, kind: str, axis: int, at: Sequence[Value]) -> Value:
    """The reduction of ``COLUMNS`` columns that start at ``at``, in chunks of 4096 that join in ascending order."""
    rank = len(at)
    shape = [CHUNK if number == axis else 1 for number in range(rank - 1)] + [COLUMNS]
    squeezed = [number for number in range(rank - 1) if number != axis]
    count = k.dim(ref, axis)
    start = k.splat(k.constant(identity(kind, ref.element_type), ref.element_type), [COLUMNS])
    flags = k.fastmath

    def chunk(index: Value, total: Value) -> Sequence[Value]:
        position = [index * CHUNK if number == axis else place for number, place in enumerate(at)]
        block = k.load(k.window(ref, position, shape, indexing=ELEMENT, squeezed=squeezed))
        k.fastmath = flags
        part = k.reduce(kind, block, axis=0, count=count - index * CHUNK)
        k.fastmath = safe_flags(flags)
        return [k.binary(kind, total, part)]

    return k.for_loop(0, (count + (CHUNK - 1)) // CHUNK, [start], chunk)[0]
