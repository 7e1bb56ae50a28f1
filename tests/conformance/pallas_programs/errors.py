"""Calls that are refused; every program here raises."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl

from .program import Run, chunks, copied, floats, program

X = np.zeros(8, np.float32)


def without_output(source: pl.Ref) -> None:
    source[...]


def idle(source: pl.Ref, target: pl.Ref) -> None:
    """Wrong in nothing."""


def scalar_for_all(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = source[0]


def two_indices(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = source[0, 0]


def python_branch(source: pl.Ref, target: pl.Ref) -> None:
    if pl.program_id(0) == 0:
        copied(source, target)


PROGRAMS: dict[str, Run] = {
    "err_block_rank_mismatch": program(
        copied, floats(8), X, grid=(4,), in_specs=[pl.BlockSpec((2, 2), lambda i: (i, 0))]
    ),
    "err_index_map_arity": program(
        copied, floats(8), X, grid=(4,), in_specs=[pl.BlockSpec((2,), lambda row, column: row)]
    ),
    "err_in_specs_not_sequence": program(copied, floats(8), X, in_specs=pl.BlockSpec((8,), lambda: 0)),
    "err_out_specs_structure": program(copied, floats(8), X, grid=(4,), in_specs=[chunks(2)], out_specs=[chunks(2)]),
    "err_kernel_arity": program(without_output, floats(8), X),
    "err_program_id_outside_kernel": lambda _: pl.program_id(0),
    "err_alias_shape": program(idle, floats(4), X, input_output_aliases={0: 0}),
    "err_store_shape": program(scalar_for_all, floats(8), X),
    "err_too_many_indices": program(two_indices, floats(), X),
    "err_python_if_on_program_id": program(python_branch, floats(8), X, grid=(2,)),
}
