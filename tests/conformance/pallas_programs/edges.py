"""Blocks that reach over the end of their array, and masks."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

from .program import Run, chunks, floats, ints, normal, program
from .reductions import add_up


def exponential(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = jnp.exp(source[...])


def sum_of_ten(chunk: pl.Ref, total: pl.Ref) -> None:
    step = pl.program_id(0)
    inside = 4 * step + jnp.arange(4) < 10
    add_up(total, pl.load(chunk, ..., mask=inside, other=0).sum(), step == 0)


def both_copied(numbers: pl.Ref, truths: pl.Ref, numbers_out: pl.Ref, truths_out: pl.Ref) -> None:
    truths_out[...] = truths[...]
    numbers_out[...] = numbers[...]


def nines_at_odd_places(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = jnp.full(target.shape, 9, target.dtype)
    pl.store(target, ..., source[...], mask=jnp.arange(8) % 2 == 0)


def softmax_of_eleven(logits: pl.Ref, probabilities: pl.Ref) -> None:
    column = jnp.arange(pl.next_power_of_2(11))
    place, real = (pl.program_id(0), column), column < 11
    row = pl.load(logits, place, mask=real, other=-jnp.inf)
    weights = jnp.exp(row - row.max())
    pl.store(probabilities, place, weights / weights.sum(), mask=real)


PROGRAMS: dict[str, Run] = {
    "edge_elementwise_1d": program(
        exponential, floats(10), normal("e1", 10), grid=(pl.cdiv(10, 4),), in_specs=[chunks(4)], out_specs=chunks(4)
    ),
    "edge_masked_sum": program(
        sum_of_ten,
        floats(1),
        normal("es", 10),
        grid=(3,),
        in_specs=[chunks(4)],
        out_specs=pl.BlockSpec((None,), lambda _: 0),
    ),
    # The sixth element is read from outside: the least integer, False.
    "edge_read_pad_int_min": program(
        both_copied,
        (ints(6), pl.ShapeDtypeStruct((6,), np.bool_)),
        np.ones(5, np.int32),
        np.ones(5, np.bool_),
        grid=(2,),
        in_specs=[chunks(3), chunks(3)],
        out_specs=(chunks(3), chunks(3)),
    ),
    "mask_store_keeps_old": program(nines_at_odd_places, floats(8), normal("ms", 8)),
    "mask_softmax_padded_row": program(softmax_of_eleven, floats(3, 11), normal("mp", 3, 11), grid=(3,)),
}
