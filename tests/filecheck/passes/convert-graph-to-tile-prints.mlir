// RUN: halfulp-opt %s -p fuse-ops | filecheck %s --check-prefix=FUSED
// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// What is printed gets a buffer after the outputs, under its label. The kernel that computes it writes it there; printed
// again, or where it lies in memory already, it is copied. A print parts no group.

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
// CHECK-SAME:      %2: !tile.ref<[?], f32, global> {halfulp.role = "printed", halfulp.index = 0 : i64, halfulp.name = "between"
// CHECK-SAME:      %3: !tile.ref<[?], f32, global> {halfulp.role = "printed", halfulp.index = 1 : i64, halfulp.name = "x"
// CHECK-SAME:      %4: !tile.ref<[?], f32, global> {halfulp.role = "printed", halfulp.index = 2 : i64, halfulp.name = "y"
// CHECK-NEXT:    %[[X:[0-9]+]] = tile.flatten %0
// CHECK-NEXT:    %[[BETWEEN:[0-9]+]] = tile.flatten %2
// CHECK-NEXT:    %[[OUT:[0-9]+]] = tile.flatten %1
// CHECK:         tile.launch @exp_negate grid(%{{[0-9]+}}) (%[[X]], %[[BETWEEN]], %[[OUT]], %{{[0-9]+}})
// CHECK:         %[[SHOWN:[0-9]+]] = tile.flatten %3
// CHECK:         tile.launch @copy grid(%{{[0-9]+}}) (%{{[0-9]+}}, %[[SHOWN]])
// CHECK:         %[[AGAIN:[0-9]+]] = tile.flatten %4
// CHECK:         tile.launch @copy_2 grid(%{{[0-9]+}}) (%{{[0-9]+}}, %[[AGAIN]])
