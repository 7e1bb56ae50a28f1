"""Loops and branches whose course only the run decides."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.ops.pallas.tracing import Array

from .program import Run, chunks, floats, integers, ints, normal, program, rows, tiles

Three = tuple[Array, Array, Array]


def running_sum(source: pl.Ref, sums: pl.Ref) -> None:
    """Program n takes n rounds; the first one none."""
    last = pl.program_id(0)
    sums[last] = pl.fori_loop(1, last + 1, lambda at, total: source[at] + total, source[0])


def greatest_common_divisor(pair: pl.Ref, divisor: pl.Ref) -> None:
    def euclid(numbers: tuple[Array, Array]) -> tuple[Array, Array]:
        larger, smaller = numbers
        return smaller, larger % smaller

    divisor[...], _ = pl.while_loop(lambda numbers: numbers[1] > 0, euclid, (pair[0], pair[1]))


def odd_blocks_negated(source: pl.Ref, target: pl.Ref) -> None:
    is_odd = pl.program_id(0) % 2 == 1
    target[...] = pl.cond(is_odd, jnp.negative, lambda block: block + block, source[...])


def thousand_more_inside(source: pl.Ref, target: pl.Ref) -> None:
    number = pl.program_id(0)

    @pl.when(True)
    def _always() -> None:
        target[...] = source[...]

    @pl.when(False)
    def _never() -> None:
        target[...] = -source[...]

    @pl.when(number > 0)
    def _not_the_first() -> None:
        @pl.when(number < pl.num_programs(0) - 1)
        def _nor_the_last() -> None:
            target[...] += 1000


def escape_times(real: pl.Ref, imaginary: pl.Ref, rounds: pl.Ref) -> None:
    """How many of twelve rounds of z**2 + c leave z within 2 of the origin. c is below 2: what is out stays out."""

    def squared(_: Array, state: Three) -> Three:
        x, y, count = state
        near = x * x + y * y <= 4
        following = (x * x - y * y + real[...], (x + x) * y + imaginary[...])
        return jnp.where(near, following[0], x), jnp.where(near, following[1], y), count + near.astype(count.dtype)

    origin = jnp.zeros(rounds.shape)
    *_, rounds[...] = pl.fori_loop(0, 12, squared, (origin, origin, jnp.zeros(rounds.shape, rounds.dtype)))


EIGHTHS = np.arange(16, dtype=np.float32) / 8

PROGRAMS: dict[str, Run] = {
    "ctl_fori_dynamic_bound": program(running_sum, ints(6), integers("fb", -9, 9, 6), grid=(6,)),
    "ctl_while_gcd": program(
        greatest_common_divisor,
        ints(5),
        np.array([[12, 18], [100, 75], [17, 5], [0, 9], [270, 192]], np.int32),
        grid=(5,),
        in_specs=[rows(None, 2)],
        out_specs=pl.BlockSpec((None,), lambda i: i),
    ),
    "ctl_cond_value": program(
        odd_blocks_negated, floats(12), normal("cv", 12), grid=(4,), in_specs=[chunks(3)], out_specs=chunks(3)
    ),
    "ctl_when_python_bool": program(
        thousand_more_inside, ints(8), integers("wb", 0, 9, 8), grid=(4,), in_specs=[chunks(2)], out_specs=chunks(2)
    ),
    "ctl_mandelbrot": program(
        escape_times,
        ints(16, 16),
        EIGHTHS[None, :] - np.float32(1.5),
        EIGHTHS[:, None] - np.float32(1),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((1, 8), lambda _, j: (0, j)), pl.BlockSpec((8, 1), lambda i, _: (i, 0))],
        out_specs=tiles(8, 8),
    ),
}
