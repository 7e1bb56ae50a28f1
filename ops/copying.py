"""Kernels that copy: a tensor into a part of another."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, i8

from halfulp.compiler import Dim
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value

BLOCK = 4096
"""Elements of a program along the last axis."""


def copy_rows(entry: EntryBuilder, name: str, source: Value, target: Value, offsets: Sequence[Value | int]) -> None:
    """Launches ``target[offsets + i] = source[i]`` for every index of ``source``; the ranks are equal."""
    rank = len(source.shape)
    sizes = [entry.dim(source, axis) for axis in range(rank)]
    dynamic = [offset for offset in offsets if isinstance(offset, Value)]

    def body(k: KernelBuilder) -> None:
        read, write, *starts = k.arguments
        given = iter(starts)
        moved = [next(given) if isinstance(offset, Value) else offset for offset in offsets] or [0]
        at = [*k.program_ids[:-1], k.program_ids[-1] * BLOCK]
        shape, squeezed = [1] * (rank - 1) + [BLOCK], range(rank - 1)
        block = k.load(k.window(read, at, shape, indexing="element", squeezed=squeezed))
        # what lies beyond the source's last axis must not overwrite its neighbour
        inside = k.iota([BLOCK], IndexType()) < k.splat(k.dim(read, rank - 1) - at[-1], [BLOCK])
        place = [index + start for index, start in zip(at, moved, strict=True)]
        k.store(block, k.window(write, place, shape, indexing="element", squeezed=squeezed), inside)

    grid = [*sizes[:-1], (sizes[-1] + (BLOCK - 1)) // BLOCK]
    entry.launch(name, [source, target, *dynamic], grid, body)


def copy_steps(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """Launches ``result[..., i, ...] = source[..., start + step * i, ...]``, i along the axis in the parameters.

    A program takes a part of a row; along the last axis, out of a block that holds all between its elements, unless
    they are far apart. First a program checks that all elements lie inside.
    """
    (source,), (target,) = operands, results
    axis, step, start = call.parameters["axis"], call.parameters["step"], call.parameters["start"]
    assert isinstance(axis, int)
    assert isinstance(step, int)
    assert isinstance(start, Dim)
    rank = len(source.shape)
    last = axis == rank - 1
    gap = abs(step) if last else 1
    width = max(BLOCK // gap, 1)
    span = (width - 1) * gap + 1  # elements of the source that a program's part lies in
    # a buffer of no elements carries the start, an expression of symbols and -1 where nothing is taken from the end
    carrier = entry.buffer([str(start + 1), "0"], i8)

    def body(k: KernelBuilder) -> None:
        read, write, first = k.arguments
        target_at = [*k.program_ids[:-1], k.program_ids[-1] * width]
        source_at = list(target_at)
        source_at[axis] = k.dim(first, 0) - 1 + target_at[axis] * step
        if last and step < 0:
            source_at[axis] = source_at[axis] - (span - 1)
        outer, squeezed = [1] * (rank - 1), range(rank - 1)
        block = k.load(k.window(read, source_at, [*outer, span], indexing="element", squeezed=squeezed))
        if last:
            block = k.slice(block, [span - 1 if step < 0 else 0], [width], [step])
        k.store(block, k.window(write, target_at, [*outer, width], indexing="element", squeezed=squeezed))

    def check(k: KernelBuilder) -> None:
        read, write, first = k.arguments
        size, count, begin = k.dim(read, axis), k.dim(write, axis), k.dim(first, 0) - 1
        end = begin + (count - 1) * step
        inside = (begin >= 0) & (begin < size) & (end >= 0) & (end < size)
        message = f"ops.slice_tensor: elements {{}} to {{}} of axis {axis} are wanted, but it has size {{}}"
        k.check((count == 0) | inside, message, begin, end, size)

    entry.launch("check_slice", [source, target, carrier], [entry.index(1)], check)
    sizes = [entry.dim(target, number) for number in range(rank)]
    grid = [*sizes[:-1], (sizes[-1] + (width - 1)) // width]
    entry.launch("strided_slice", [source, target, carrier], grid, body)
