"""Products of matrices, tile by tile: the last axis of the grid runs over the depth."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

from .program import Run, floats, normal, normal_bfloat16, program
from .reductions import add_up


def tiled(size: int, depth_steps: int) -> dict[str, Any]:
    """Grid and specs for two by two square tiles of the product."""
    tile = (size, size)
    return {
        "grid": (2, 2, depth_steps),
        "in_specs": [
            pl.BlockSpec(tile, lambda row, _, depth: (row, depth)),
            pl.BlockSpec(tile, lambda _, column, depth: (depth, column)),
        ],
        "out_specs": pl.BlockSpec(tile, lambda row, column, _: (row, column)),
    }


def in_place(left: pl.Ref, right: pl.Ref, product: pl.Ref) -> None:
    add_up(product, left[...] @ right[...], pl.program_id(2) == 0)


def depth_of_ten(left: pl.Ref, right: pl.Ref, product: pl.Ref) -> None:
    """The third step has two columns of ``left`` and two rows of ``right`` only."""
    step = pl.program_id(2)
    inside = step * 4 + jnp.arange(4) < 10
    columns = pl.load(left, ..., mask=inside, other=0)
    rows = pl.load(right, ..., mask=jnp.expand_dims(inside, 1), other=0)
    add_up(product, columns @ rows, step == 0)


def rounded_once(left: pl.Ref, right: pl.Ref, product: pl.Ref, exact: pl.Ref) -> None:
    """bfloat16 operands; the sum stays float32 until it is complete."""
    step = pl.program_id(2)
    add_up(exact, jnp.dot(left[...], right[...], preferred_element_type=DType.float32), step == 0)

    @pl.when(step + 1 == pl.num_programs(2))
    def _round() -> None:
        product[...] = exact[...].astype(product.dtype)


PROGRAMS: dict[str, Run] = {
    "edge_matmul_k_masked": program(
        depth_of_ten, floats(8, 8), normal("ek", 8, 10), normal("ek2", 10, 8), **tiled(4, depth_steps=3)
    ),
    "reduce_matmul_k_accumulate": program(
        in_place, floats(32, 32), normal("rm", 32, 64), normal("rm2", 64, 32), **tiled(16, depth_steps=4)
    ),
    "dtype_bf16_matmul_f32_acc": program(
        rounded_once,
        pl.ShapeDtypeStruct((16, 16), "bfloat16"),
        normal_bfloat16("bm1", 16, 32),
        normal_bfloat16("bm2", 32, 16),
        scratch_shapes=[pl.ANY((8, 8), "float32")],
        **tiled(8, depth_steps=4),
    ),
}
