"""How often a kernel runs, what its program ids are, and which block an index map picks."""

from __future__ import annotations

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

from .program import Kernel, Run, chunks, copied, floats, integers, ints, normal, program, tiles


def own_number(numbers: pl.Ref) -> None:
    numbers[pl.program_id(0)] = pl.program_id(0)


def one_more(_: pl.Ref, count: pl.Ref) -> None:
    count[...] += 1


def cleared(_: pl.Ref, target: pl.Ref) -> None:
    target[...] = jnp.zeros(target.shape)


def transposed(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = source[...].T


def program_digits(*axes: int) -> Kernel:
    """Fills the block with the program ids along ``axes``, as the digits of a decimal number."""

    def kernel(block: pl.Ref) -> None:
        number = pl.program_id(axes[0])
        for axis in axes[1:]:
            number = 10 * number + pl.program_id(axis)
        block[...] = jnp.full(block.shape, number)

    return kernel


def from_the_end(_: int) -> object:
    return pl.num_programs(0) - pl.program_id(0) - 1


PROGRAMS: dict[str, Run] = {
    "grid_iota": program(own_number, ints(8), grid=(8,)),
    # In place, so that a second run would show.
    "grid_default_runs_once": program(one_more, floats(5, 7), normal("gd", 5, 7), input_output_aliases={0: 0}),
    "grid_show_invocations_2d": program(program_digits(0, 1), ints(8, 6), grid=(4, 2), out_specs=tiles(2, 3)),
    "grid_show_invocations_edge": program(program_digits(0, 1), ints(7, 5), grid=(4, 2), out_specs=tiles(2, 3)),
    "grid_negative_axis": program(program_digits(-2, -1), ints(2, 3), grid=(2, 3), out_specs=tiles(1, 1)),
    "grid_zero_size_runs_nothing": program(
        cleared, floats(4), normal("gz", 4), grid=(2, 0), input_output_aliases={0: 0}
    ),
    "imap_reverse": program(
        copied,
        floats(12),
        normal("ir", 12),
        grid=(4,),
        in_specs=[pl.BlockSpec((3,), lambda i: 3 - i)],
        out_specs=chunks(3),
    ),
    "imap_block_transpose": program(
        transposed,
        floats(12, 8),
        normal("it", 8, 12),
        grid=(2, 3),
        in_specs=[tiles(4, 4)],
        out_specs=pl.BlockSpec((4, 4), lambda i, j: (j, i)),
    ),
    "imap_modulo_rotate": program(
        copied,
        ints(10, 2),
        integers("im", -9, 9, 10, 2),
        grid=(5,),
        in_specs=[pl.BlockSpec((2, 2), lambda i: ((i + 1) % 5, 0))],
        out_specs=pl.BlockSpec((2, 2), lambda i: (i, 0)),
    ),
    "imap_every_other_block": program(
        copied,
        floats(6),
        normal("ie", 12),
        grid=(3,),
        in_specs=[pl.BlockSpec((2,), lambda i: i + i)],
        out_specs=chunks(2),
    ),
    "imap_program_id_inside": program(
        copied,
        floats(8),
        normal("ip", 8),
        grid=(4,),
        in_specs=[pl.BlockSpec((2,), from_the_end)],
        out_specs=chunks(2),
    ),
}
