"""Outputs that start as a copy of an input."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl

from .program import Run, integers, ints, program

SECOND_PAIR = pl.BlockSpec((2,), lambda i: i + 1)
ONE_EACH = pl.BlockSpec((None,), lambda i: i)


def tenfold(_: pl.Ref, values: pl.Ref) -> None:
    values[...] *= 10


def posted(account: pl.Ref, amount: pl.Ref, _: pl.Ref, balances: pl.Ref) -> None:
    """Several programs post to the same account: right only if one runs after another."""
    balances[account[...]] += amount[...]


PROGRAMS: dict[str, Run] = {
    "alias_partial_write": program(
        tenfold,
        ints(8),
        integers("ap", 0, 9, 8),
        grid=(1,),
        in_specs=[SECOND_PAIR],
        out_specs=SECOND_PAIR,
        input_output_aliases={0: 0},
    ),
    "alias_scatter_add_serial": program(
        posted,
        ints(5),
        np.array([0, 2, 2, 4, 0, 2, 1, 4], np.int32),
        integers("sa", 1, 9, 8),
        np.zeros(5, np.int32),
        grid=(8,),
        in_specs=[ONE_EACH, ONE_EACH, None],
        input_output_aliases={2: 0},
    ),
}
