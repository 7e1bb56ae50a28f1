"""Arithmetic of the element types: rounding, overflow, division, casts and the special numbers."""

from __future__ import annotations

import numpy as np

from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

from .program import Run, chunks, floats, ints, normal_bfloat16, program

INT32 = np.iinfo(np.int32)


def added(first: pl.Ref, second: pl.Ref, target: pl.Ref) -> None:
    target[...] = first[...] + second[...]


def integer_arithmetic(x: pl.Ref, y: pl.Ref, scrambled: pl.Ref, quotient: pl.Ref, remainder: pl.Ref) -> None:
    """``scrambled`` is one step of a congruential generator, modulo 2**32."""
    scrambled[...] = 12345 + 1103515245 * x[...]
    quotient[...] = jnp.floor_divide(x[...], y[...])
    remainder[...] = jnp.mod(x[...], y[...])


def casts(x: pl.Ref, n: pl.Ref, whole: pl.Ref, halves: pl.Ref, is_not_zero: pl.Ref) -> None:
    whole[...] = x[...].astype(whole.dtype)
    halves[...] = n[...].astype(halves.dtype) / 2
    is_not_zero[...] = n[...].astype(jnp.bool_).astype(is_not_zero.dtype)


def special_numbers(x_ref: pl.Ref, table: pl.Ref) -> None:
    x = x_ref[...]
    results = [jnp.exp(x), jnp.log(x), 0 * x, jnp.maximum(0, x), jnp.where(jnp.isnan(x), -1, x)]
    table[...] = jnp.stack(results)


PROGRAMS: dict[str, Run] = {
    "dtype_bf16_add": program(
        added,
        pl.ShapeDtypeStruct((24,), "bfloat16"),
        normal_bfloat16("b1", 24),
        normal_bfloat16("b2", 24),
        grid=(3,),
        in_specs=[chunks(8), chunks(8)],
        out_specs=chunks(8),
    ),
    "dtype_int32_wrap_and_divmod": program(
        integer_arithmetic,
        (ints(8), ints(8), ints(8)),
        np.array([7, -7, 7, -7, INT32.max, INT32.min, 0, 123456789], np.int32),
        np.array([2, 2, -2, -2, 3, 7, 5, -1000], np.int32),
    ),
    "dtype_casts": program(
        casts,
        (ints(6), floats(6), ints(6)),
        np.array([1.9, -1.9, 0.5, -0.5, 1e6, -0.0], np.float32),
        np.array([0, 1, -1, 7, 256, -256], np.int32),
    ),
    "dtype_float_specials": program(
        special_numbers, floats(5, 8), np.array([0, -1, 1, np.inf, -np.inf, np.nan, 100, -100], np.float32)
    ),
}
