// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// A block of the product is finished before it is stored: a row of the bias serves all rows of the block. The product
// itself has no buffer.
graph.graph @g(%x: !graph.tensor<[32, 8], f32, cpu>, %w: !graph.tensor<[8, 64], f32, cpu>, %b: !graph.tensor<[64], f32, cpu>) {
  %0 = graph.apply "matmul"(%x, %w) : (!graph.tensor<[32, 8], f32, cpu>, !graph.tensor<[8, 64], f32, cpu>) -> !graph.tensor<[32, 64], f32, cpu>
  %1 = graph.apply "broadcast_to"(%b) {shape = [32, 64]} : (!graph.tensor<[64], f32, cpu>) -> !graph.tensor<[32, 64], f32, cpu>
  %2 = graph.apply "add"(%0, %1) : (!graph.tensor<[32, 64], f32, cpu>, !graph.tensor<[32, 64], f32, cpu>) -> !graph.tensor<[32, 64], f32, cpu>
  graph.output %2 : !graph.tensor<[32, 64], f32, cpu>
}

// CHECK:       tile.kernel @matmul_add(%0: !tile.ref<[32, 8], {{.*}}, %2: !tile.ref<[64], f32, global>, %3: !tile.ref<[32, 64], f32, global>)
// CHECK:         %[[PRODUCT:[0-9]+]] = scf.for
// CHECK:           tile.dot
// CHECK:         %[[BIAS:[0-9]+]] = tile.load {{.*}} -> tensor<64xf32>
// CHECK-NEXT:    %[[ROW:[0-9]+]] = tile.reshape %[[BIAS]] : tensor<64xf32> -> tensor<1x64xf32>
// CHECK-NEXT:    %[[ALL:[0-9]+]] = tile.broadcast %[[ROW]] : tensor<1x64xf32> -> tensor<32x64xf32>
// CHECK-NEXT:    %[[SUM:[0-9]+]] = arith.addf %[[PRODUCT]], %[[ALL]] : tensor<32x64xf32>
// CHECK-NEXT:    tile.store %[[SUM]],
// CHECK:       func.func @g
// CHECK-NOT:     tile.buffer
// CHECK:         tile.launch @matmul_add
