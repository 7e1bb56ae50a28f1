"""Sums and extremes of a row at once, and over several programs that see the same output."""

from __future__ import annotations

from typing import Any

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

from .program import Run, chunks, floats, integers, ints, normal, program, rows, tiles


def add_up(total: pl.Ref, part: Any, first: Any) -> None:
    """Adds ``part`` to ``total``, which counts as 0 where this program is the ``first`` one to see it."""

    @pl.when(first)
    def _clear() -> None:
        total[...] = jnp.zeros(total.shape, total.dtype)

    total[...] += part


def row_sums(block: pl.Ref, sums: pl.Ref) -> None:
    sums[...] = block[...].sum(axis=1)


def largest_so_far(block: pl.Ref, largest: pl.Ref, column: pl.Ref) -> None:
    step = pl.program_id(1)

    @pl.when(step == 0)
    def _nothing_seen() -> None:
        largest[...] = jnp.full(largest.shape, -jnp.inf, largest.dtype)

    found = block[...].max(axis=1)
    pl.store(column, ..., 8 * step + jnp.argmax(block[...], axis=1), mask=found > largest[...])
    largest[...] = jnp.maximum(found, largest[...])


def normalised(block: pl.Ref, scale: pl.Ref, shift: pl.Ref, target: pl.Ref) -> None:
    centred = block[...] - block[...].mean(axis=1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), axis=1, keepdims=True)
    target[...] = centred * jnp.rsqrt(variance + 1e-5) * scale[...] + shift[...]


def alternating_sum(part: pl.Ref, total: pl.Ref) -> None:
    add_up(total, part[...], pl.program_id(0) < 2)


PROGRAMS: dict[str, Run] = {
    "reduce_row_sum": program(
        row_sums, floats(8), normal("rr", 8, 32), grid=(4,), in_specs=[rows(2, 32)], out_specs=chunks(2)
    ),
    "reduce_running_max_argmax": program(
        largest_so_far,
        (floats(8), ints(8)),
        normal("ra", 8, 32),
        grid=(2, 4),
        in_specs=[tiles(4, 8)],
        out_specs=(pl.BlockSpec((4,), lambda i, _: i), pl.BlockSpec((4,), lambda i, _: i)),
    ),
    "reduce_layernorm": program(
        normalised,
        floats(6, 24),
        normal("ln", 6, 24),
        normal("lg", 24),
        normal("lb", 24),
        grid=(2,),
        in_specs=[rows(3, 24), None, None],
        out_specs=rows(3, 24),
    ),
    # The programs that share a block of the output do not follow one another.
    "reduce_non_consecutive_revisit": program(
        alternating_sum,
        ints(4),
        integers("nc", 0, 9, 12),
        grid=(6,),
        in_specs=[chunks(2)],
        out_specs=pl.BlockSpec((2,), lambda i: i % 2),
    ),
}
