"""Parts of references: by number, slice and index block, and as references of their own."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl

from .program import Run, floats, integers, ints, normal, program, rows


def looked_up(number: pl.Ref, table: pl.Ref, row: pl.Ref) -> None:
    row[...] = table[number[...]]


def pieces(source: pl.Ref, target: pl.Ref) -> None:
    target[:2] = source[2:-1]
    target[-2, ...] = source[-1]
    target[-1, :3] = source[0, -3:]
    target[-1, -3:] = source[1, :-3]


def scattered(source: pl.Ref, places: pl.Ref, target: pl.Ref) -> None:
    target[places[...]] = source[...]


def through_views(source: pl.Ref, target: pl.Ref) -> None:
    middle, head, tail = source.at[2:8], target.at[:4], target.at[pl.ds(4, 4)]
    head[...] = 2 * middle[pl.ds(1, 4)]
    tail[...] = middle.at[:4][...]


PROGRAMS: dict[str, Run] = {
    "index_embedding_lookup": program(
        looked_up,
        floats(6, 5),
        integers("el", 0, 9, 6),
        normal("et", 9, 5),
        grid=(6,),
        in_specs=[pl.BlockSpec((None,), lambda i: i), None],
        out_specs=rows(None, 5),
    ),
    "index_static_slices": program(pieces, ints(4, 6), integers("ss", 0, 100, 5, 6)),
    "index_vector_scatter": program(
        scattered, floats(8), normal("vs", 8), np.array([2, 0, 7, 3, 1, 6, 5, 4], np.int32)
    ),
    "index_ref_at_views": program(through_views, floats(8), normal("ra2", 10)),
}
