# RUN: python %s | filecheck %s
"""Where blocks need not lie inside, loads have the pad; a grid that covers a symbolic size leaves nothing to fill."""

from typing import Any

from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit
from halfulp.ops import pallas as pl


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


block = pl.BlockSpec((4,), lambda i: i)
with Graph("g", input_types=[TensorType(DType.float32, ["n"]), TensorType(DType.int8, [10])]) as graph:
    x, y = graph.inputs
    (n,) = x.shape
    of_n = pl.pallas_call(
        copy, pl.ShapeDtypeStruct((n,), x.dtype), grid=pl.cdiv(n, 4), in_specs=[block], out_specs=block, name="of_n"
    )
    of_10 = pl.pallas_call(
        copy, pl.ShapeDtypeStruct((10,), "int8"), grid=2, in_specs=[block], out_specs=block, name="of_10"
    )
    graph.output(of_n(x), of_10(y))

print(emit(graph.module, "tile", CompileOptions()))

# CHECK:       tile.kernel @of_n(
# CHECK:         %[[NAN:[0-9]+]] = arith.constant 0x7fc00000 : f32
# CHECK-NEXT:    tile.load %{{[0-9]+}} other %[[NAN]] : f32 : !tile.ref<[4], f32, global> -> tensor<4xf32>

# Two blocks of 4 do not cover 10 elements, so the rest starts as the pad.

# CHECK:       tile.kernel @fill(
# CHECK:         arith.constant -128 : i8
# CHECK:       tile.kernel @of_10(
# CHECK-NOT:     other
# CHECK:       func.func @g(
# CHECK:         tile.launch @of_n
# CHECK:         tile.launch @fill
# CHECK:         tile.launch @of_10
