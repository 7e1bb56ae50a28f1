"""`show_invocations`: which program of a grid writes which element of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import numpy as jnp
from .call import pallas_call
from .grid import program_id
from .refs import Ref
from .specs import BlockSpec, ShapeDtypeStruct


def show_invocations(
    x_shape: Sequence[int],
    block_shape: Sequence[Any],
    grid: Sequence[int],
    out_index_map: Callable[..., Any] = lambda i, j: (i, j),
) -> None:
    """Prints an array in which each element shows the program that wrote it last.

    The digits are the program id: in ``(1, 2)`` of a grid of two axes it is 12.

    Args:
        x_shape: the shape of the array.
        block_shape: the shape of a block.
        grid: the number of programs along each axis.
        out_index_map: from the program id to the index of its block.
    """
    rank = len(grid)

    def iota_kernel(o_ref: Ref) -> None:
        digits = 0
        for axis in range(rank):
            digits += program_id(axis) * 10 ** (rank - 1 - axis)
        o_ref[...] = jnp.full(o_ref.shape, digits, "int32")

    call = pallas_call(
        iota_kernel,
        ShapeDtypeStruct(x_shape, "int32"),
        grid=tuple(grid),
        in_specs=[],
        out_specs=BlockSpec(block_shape, out_index_map),
        interpret=True,
    )
    print(call())
