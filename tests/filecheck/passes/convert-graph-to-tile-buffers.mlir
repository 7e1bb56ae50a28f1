// RUN: halfulp-opt %s -p fuse-ops | filecheck %s --check-prefix=FUSED
// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// A load is a copy, so that later stores do not reach it; a store is one, too. Both stay in order, and what needs the
// new contents joins no kernel that the store waits for: the sum is apart from the exp.

// FUSED:       graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// FUSED:       graph.apply "add"{{.*}} attributes {halfulp.group = 1 : i64}

// CHECK-LABEL: func.func @g(
// CHECK-SAME:      %[[B:[0-9]+]]: !tile.ref<[?], f32, global> {halfulp.role = "input", halfulp.index = 0 : i64, halfulp.name = "b", halfulp.type = !graph.buffer<[n], f32, cpu>}
// CHECK:         tile.flatten %[[B]]
// CHECK:         tile.launch @copy grid
// CHECK:         tile.launch @exp grid
// CHECK:         %[[NEW:[0-9]+]] = tile.flatten %[[B]]
// CHECK:         tile.launch @copy_2 grid(%{{[0-9]+}}) (%{{[0-9]+}}, %[[NEW]])
// CHECK:         tile.launch @copy_3 grid
// CHECK:         tile.launch @add grid
// CHECK-NEXT:    func.return
graph.graph @g(%b: !graph.buffer<[n], f32, cpu>) {
  %0 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "exp"(%0) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.store %1, %b : !graph.tensor<[n], f32, cpu>, !graph.buffer<[n], f32, cpu>
  %2 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  %3 = graph.apply "add"(%1, %2) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %3 : !graph.tensor<[n], f32, cpu>
}
