// RUN: halfulp-opt %s -p convert-graph-to-tile | filecheck %s

// The entry takes every buffer with its role: inputs, weights, constants, outputs. A value that is returned is written
// to its output right away; one that lives elsewhere (an input, a weight, a value returned twice) is copied.

graph.graph @g(%x: !graph.tensor<[n, 8], f32, cpu>) {
  %w = graph.weight "scale" : !graph.tensor<[8], f32, cpu>
  %k = graph.constant dense<[1.0, 2.0]> : !graph.tensor<[2], f32, cpu>
  %1 = graph.apply "exp"(%x) : (!graph.tensor<[n, 8], f32, cpu>) -> !graph.tensor<[n, 8], f32, cpu>
  graph.output %1, %w, %1, %k : !graph.tensor<[n, 8], f32, cpu>, !graph.tensor<[8], f32, cpu>, !graph.tensor<[n, 8], f32, cpu>, !graph.tensor<[2], f32, cpu>
}

// CHECK:       tile.kernel @exp(%0: !tile.ref<[?], f32, global>, %1: !tile.ref<[?], f32, global>, {{.*}} axes [parallel] {
// CHECK:         %[[A:[0-9]+]] = tile.load
// CHECK-NEXT:    %[[B:[0-9]+]] = math.exp %[[A]] : tensor<4096xf32>
// CHECK:         tile.store %[[B]],
// CHECK:       tile.kernel @copy(
// CHECK:       tile.kernel @copy_2(
// CHECK:       tile.kernel @copy_3(
// CHECK:       func.func @g(
// CHECK-SAME:      %0: !tile.ref<[?, 8], f32, global> {halfulp.role = "input", halfulp.index = 0 : i64, halfulp.name = "x", halfulp.type = !graph.tensor<[n, 8], f32, cpu>}
// CHECK-SAME:      %1: !tile.ref<[8], f32, global> {halfulp.role = "weight", halfulp.index = 0 : i64, halfulp.name = "scale"
// CHECK-SAME:      %2: !tile.ref<[2], f32, global> {halfulp.role = "constant", halfulp.index = 0 : i64, halfulp.name = "constant_0"
// CHECK-SAME:      %3: !tile.ref<[?, 8], f32, global> {halfulp.role = "output", halfulp.index = 0 : i64
// CHECK-SAME:      %6: !tile.ref<[2], f32, global> {halfulp.role = "output", halfulp.index = 3 : i64
// CHECK-NEXT:    %[[IN:[0-9]+]] = tile.flatten %0
// CHECK-NEXT:    %[[OUT:[0-9]+]] = tile.flatten %3
// CHECK:         tile.launch @exp grid(%{{[0-9]+}}) (%[[IN]], %[[OUT]],
// CHECK-NEXT:    %[[WEIGHT:[0-9]+]] = tile.flatten %1
// CHECK-NEXT:    %[[SECOND:[0-9]+]] = tile.flatten %4
// CHECK:         tile.launch @copy grid(%{{[0-9]+}}) (%[[WEIGHT]], %[[SECOND]])
// CHECK-NEXT:    %[[AGAIN:[0-9]+]] = tile.flatten %3
// CHECK-NEXT:    %[[THIRD:[0-9]+]] = tile.flatten %5
// CHECK:         tile.launch @copy_2 grid(%{{[0-9]+}}) (%[[AGAIN]], %[[THIRD]])

// A scalar is one element along one axis. Kernels of all graphs have different names, which no graph has either.

graph.graph @exp_2(%x: !graph.tensor<[], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[], f32, cpu>) -> !graph.tensor<[], f32, cpu>
  graph.output %0 : !graph.tensor<[], f32, cpu>
}

// CHECK:       tile.kernel @exp_3(
// CHECK:       func.func @exp_2(%0: !tile.ref<[1], f32, global> {halfulp.role = "input"
// CHECK-SAME:      %1: !tile.ref<[1], f32, global> {halfulp.role = "output"
