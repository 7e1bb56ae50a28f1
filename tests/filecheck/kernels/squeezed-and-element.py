# RUN: python %s | filecheck %s
"""A squeezed axis is not in the reference; an axis that counts elements starts before its padding."""

from typing import Any

from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit
from halfulp.ops import pallas as pl


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


spec = pl.BlockSpec((None, pl.Element(4, (1, 2))), lambda i, j: (i, 2 * j))
own = pl.BlockSpec((None, None, 4), lambda i, j: (i, j, 0))
call = pl.pallas_call(copy, pl.ShapeDtypeStruct((3, 4, 4), "float32"), grid=(3, 4), in_specs=[spec], out_specs=own)
with Graph("g", input_types=[TensorType(DType.float32, [3, 6])]) as graph:
    graph.output(call(*graph.inputs))

print(emit(graph.module, "tile", CompileOptions()))

# CHECK:       tile.kernel @copy(%[[X:[0-9]+]]: !tile.ref<[3, 6], f32, global>
# CHECK-SAME:      %[[O:[0-9]+]]: !tile.ref<[3, 4, 4], f32, global>)
# CHECK-SAME:      grid(%[[I:[0-9]+]] of %{{[0-9]+}}, %[[J:[0-9]+]] of %{{[0-9]+}})
# CHECK-SAME:      axes [parallel, parallel] {
# CHECK:         %[[TWICE:[0-9]+]] = arith.muli %{{[0-9]+}}, %{{[0-9]+}} : index
# CHECK:         %[[START:[0-9]+]] = arith.subi %[[TWICE]], %{{[0-9]+}} : index
# CHECK-NEXT:    tile.window %[[X]][%[[I]], %[[START]]] element [1, 4] squeezed [0]
# CHECK-SAME:      -> !tile.ref<[4], f32, global>
# CHECK:         tile.window %[[O]][%[[I]], %[[J]], %{{[0-9]+}}] blocked [1, 1, 4] squeezed [0, 1]
# CHECK-SAME:      -> !tile.ref<[4], f32, global>
