# RUN: python %s | filecheck %s
"""Without a spec a kernel sees the array itself; indices that it computes become windows of it."""

from typing import Any

from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit
from halfulp.ops import pallas as pl


def pick(x_ref: Any, i_ref: Any, o_ref: Any) -> None:
    o_ref[pl.program_id(0)] = x_ref[i_ref[pl.program_id(0)], 1]


call = pl.pallas_call(pick, pl.ShapeDtypeStruct((5,), "float32"), grid=5)
with Graph("g", input_types=[TensorType(DType.float32, [8, 3]), TensorType(DType.int32, [5])]) as graph:
    graph.output(call(*graph.inputs))

print(emit(graph.module, "tile", CompileOptions()))

# Each program writes an element of its own, so the axis is parallel. A row from the data is moved to the nearest one.

# CHECK:       tile.kernel @pick(%[[X:[0-9]+]]: !tile.ref<[8, 3], f32, global>
# CHECK-SAME:      %[[P:[0-9]+]]: !tile.ref<[5], i32, global>, %[[O:[0-9]+]]: !tile.ref<[5], f32, global>)
# CHECK-SAME:      grid(%[[I:[0-9]+]] of %{{[0-9]+}}) axes [parallel] {
# CHECK:         tile.window %[[P]][%[[I]]] element [1] squeezed []
# CHECK:         arith.minsi
# CHECK:         %[[ROW:[0-9]+]] = arith.maxsi
# CHECK:         tile.window %[[X]][%[[ROW]], %{{[0-9]+}}] element [1, 1] squeezed [0]
# CHECK:         tile.window %[[O]][%[[I]]] element [1] squeezed []
