# RUN: python %s | filecheck %s
"""Programs that share a block of an output keep their order; so do those of interpret, and all that print."""

from collections.abc import Callable
from typing import Any

from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp


def add_up(x_ref: Any, o_ref: Any) -> None:
    @pl.when(pl.program_id(1) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

    o_ref[...] += x_ref[...]


def printing(x_ref: Any, o_ref: Any) -> None:
    pl.debug_print("{}", pl.program_id(0))
    add_up(x_ref, o_ref)


def total(kernel: Callable[..., None], **keywords: Any) -> pl.PallasCall:
    return pl.pallas_call(
        kernel,
        pl.ShapeDtypeStruct((8,), "float32"),
        grid=(2, 4),
        in_specs=[pl.BlockSpec((4, None), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((4,), lambda i, j: i),
        **keywords,
    )


with Graph("g", input_types=[TensorType(DType.float32, [8, 4])]) as graph:
    (x,) = graph.inputs
    graph.output(
        total(add_up)(x),
        total(add_up, interpret=True, name="step_by_step")(x),
        total(printing)(x),
        total(add_up, compiler_params={"dimension_semantics": ("parallel", "parallel")}, name="promised")(x),
    )

print(emit(graph.module, "tile", CompileOptions()))

# CHECK:       tile.kernel @add_up({{.*}} axes [parallel, ordered] {
# CHECK:         scf.if
# CHECK:       tile.kernel @step_by_step({{.*}} axes [ordered, ordered] attributes {halfulp.sequential}
# CHECK:       tile.kernel @printing({{.*}} axes [ordered, ordered] attributes {halfulp.sequential}
# CHECK:         tile.print "{}" values
# CHECK:       tile.kernel @promised({{.*}} axes [parallel, parallel] {
