// RUN: halfulp-opt %s -p fuse-ops | filecheck %s --check-prefix=FUSED
// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// What is printed has a buffer, from which it is shown in the order of the program. A print parts no group.

// FUSED:       graph.apply "exp"(%x) attributes {halfulp.group = 0 : i64}
// FUSED-NEXT:  graph.print %0, "between"
// FUSED-NEXT:  graph.apply "negate"(%0) attributes {halfulp.group = 0 : i64}

graph.graph @g(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.print %0, "between" : !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "negate"(%0) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.print %x, "x" : !graph.tensor<[n], f32, cpu>
  graph.print %1, "y" : !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

// CHECK:       func.func @g(%0: !tile.ref<[?], f32, global> {halfulp.role = "input"
// CHECK-SAME:      %1: !tile.ref<[?], f32, global> {halfulp.role = "output", halfulp.index = 0 : i64
// CHECK-NEXT:    %2 = tile.buffer ["n"]
// CHECK-NEXT:    %[[X:[0-9]+]] = tile.flatten %0
// CHECK-NEXT:    %[[BETWEEN:[0-9]+]] = tile.flatten %2
// CHECK-NEXT:    %[[OUT:[0-9]+]] = tile.flatten %1
// CHECK:         tile.launch @exp_negate grid(%{{[0-9]+}}) (%[[X]], %[[BETWEEN]], %[[OUT]], %{{[0-9]+}})
// CHECK-NEXT:    tile.print_tensor %2, "between" as "f32"
// CHECK-NEXT:    tile.print_tensor %0, "x" as "f32"
// CHECK-NEXT:    tile.print_tensor %1, "y" as "f32"
// CHECK-NEXT:    func.return
