"""Forms of block specs: whole arrays, squeezed axes, blocks at any element, and one spec for each output."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.ops.pallas.tracing import Array

from .program import Call, Run, chunks, copied, doubled, floats, integers, ints, normal, program, rows, tiles


def total_and_number(vector: pl.Ref, matrix: pl.Ref, target: pl.Ref) -> None:
    total = vector[...].sum() + matrix[...].sum() + pl.program_id(0)
    target[...] = jnp.full(target.shape, total)


def doubled_scalar(source: pl.Ref, target: pl.Ref) -> None:
    assert source.shape == target.shape == ()
    doubled(source, target)


def laplacian(halo: pl.Ref, target: pl.Ref) -> None:
    def neighbour(down: int, right: int) -> Array:
        return halo[pl.ds(1 + down, 4), pl.ds(1 + right, 4)]

    vertical = neighbour(-1, 0) + neighbour(1, 0)
    horizontal = neighbour(0, -1) + neighbour(0, 1)
    target[...] = 4 * neighbour(0, 0) - vertical - horizontal


def smoothed(window: pl.Ref, target: pl.Ref) -> None:
    """Weights 1/4, 1/2, 1/4. What the padding holds is not defined, so it is replaced by 0."""
    place = 4 * pl.program_id(0) + jnp.arange(6)
    signal = jnp.where((place >= 1) & (place <= 8), window[...], 0)
    target[...] = signal[1:-1] / 2 + (signal[:-2] + signal[2:]) / 4


def sums_and_signs(source: pl.Ref, sums: pl.Ref, positive: pl.Ref) -> None:
    sums[...] = source[...].sum(axis=1)
    positive[...] = source[...] > 0


def list_of_outputs(call: Call) -> Any:
    result = program(copied, [floats(3)], normal("tl", 3))(call)
    assert type(result) is tuple
    return result


PROGRAMS: dict[str, Run] = {
    "block_whole_array_default": program(
        total_and_number,
        ints(6),
        integers("bw", 0, 9, 4),
        integers("bw2", 0, 9, 3, 3),
        grid=(3,),
        in_specs=[pl.BlockSpec(), None],
        out_specs=chunks(2),
    ),
    "block_all_squeezed": program(
        doubled_scalar,
        floats(3, 2),
        normal("ba", 3, 2),
        grid=(3, 2),
        in_specs=[pl.BlockSpec((None, None), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((pl.squeezed, pl.squeezed), lambda i, j: (i, j)),
    ),
    "block_larger_than_array": program(
        doubled, floats(3, 5), normal("bl", 3, 5), grid=(1,), in_specs=[rows(4, 8)], out_specs=rows(4, 8)
    ),
    "unblocked_2d_halo": program(
        laplacian,
        floats(8, 8),
        normal("uh", 10, 10),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((pl.Element(6), pl.Element(6)), lambda i, j: (4 * i, 4 * j))],
        out_specs=tiles(4, 4),
    ),
    "unblocked_padding_conv": program(
        smoothed,
        floats(8),
        normal("up", 8),
        grid=(2,),
        in_specs=[pl.BlockSpec((6,), lambda i: 4 * i, indexing_mode=pl.Unblocked(((1, 1),)))],
        out_specs=chunks(4),
    ),
    "tree_out_list_becomes_tuple": list_of_outputs,
    "tree_outputs_different_blocks": program(
        sums_and_signs,
        (ints(6), pl.ShapeDtypeStruct((6, 4), np.bool_)),
        integers("tb", -9, 9, 6, 4),
        grid=(3,),
        in_specs=[rows(2, 4)],
        out_specs=(chunks(2), rows(2, 4)),
    ),
}
