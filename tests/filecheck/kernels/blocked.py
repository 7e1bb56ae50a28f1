# RUN: python %s | filecheck %s
"""Blocks become windows that count blocks, and axes along which programs stay apart become parallel."""

from typing import Any

from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit
from halfulp.ops import pallas as pl


def add_one(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + 1.0


block = pl.BlockSpec((2, 4), lambda i, j: (j, i))
call = pl.pallas_call(add_one, pl.ShapeDtypeStruct((8, 8), "float32"), grid=(2, 4), in_specs=[block], out_specs=block)
with Graph("g", input_types=[TensorType(DType.float32, [8, 8])]) as graph:
    graph.output(call(*graph.inputs))

print(emit(graph.module, "tile", CompileOptions()))

# CHECK:       tile.kernel @add_one(%[[X:[0-9]+]]: !tile.ref<[8, 8], f32, global>
# CHECK-SAME:      %[[O:[0-9]+]]: !tile.ref<[8, 8], f32, global>)
# CHECK-SAME:      grid(%[[I:[0-9]+]] of %{{[0-9]+}}, %[[J:[0-9]+]] of %{{[0-9]+}})
# CHECK-SAME:      axes [parallel, parallel] {
# CHECK-NEXT:    %[[IN:[0-9]+]] = tile.window %[[X]][%[[J]], %[[I]]] blocked [2, 4] squeezed []
# CHECK-NEXT:    %[[OUT:[0-9]+]] = tile.window %[[O]][%[[J]], %[[I]]] blocked [2, 4] squeezed []
# CHECK-NEXT:    %[[BLOCK:[0-9]+]] = tile.load %[[IN]] : !tile.ref<[2, 4], f32, global> -> tensor<2x4xf32>
# CHECK:         tile.store %{{[0-9]+}}, %[[OUT]]
# CHECK:       func.func @g(
# CHECK-NOT:     fill
