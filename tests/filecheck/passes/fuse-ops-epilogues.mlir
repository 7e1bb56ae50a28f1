// RUN: halfulp-opt %s -p fuse-ops | filecheck %s

// The maps behind a product of matrices join it, those of their other operands, too.
// CHECK-LABEL: graph.graph @behind
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "matmul"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 0 : i64}
graph.graph @behind(%x: !graph.tensor<[m, k], f32, cpu>, %w: !graph.tensor<[k, n], f32, cpu>, %y: !graph.tensor<[m, n], f32, cpu>) {
  %0 = graph.apply "exp"(%y) : (!graph.tensor<[m, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  %1 = graph.apply "matmul"(%x, %w) : (!graph.tensor<[m, k], f32, cpu>, !graph.tensor<[k, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  %2 = graph.apply "add"(%1, %0) : (!graph.tensor<[m, n], f32, cpu>, !graph.tensor<[m, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  graph.output %2 : !graph.tensor<[m, n], f32, cpu>
}

// What a product reads lies in memory, of whatever shape it is.
// CHECK-LABEL: graph.graph @before
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "matmul"(%x, %0) :
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 0 : i64}
graph.graph @before(%x: !graph.tensor<[n, n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n, n], f32, cpu>) -> !graph.tensor<[n, n], f32, cpu>
  %1 = graph.apply "matmul"(%x, %0) : (!graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>) -> !graph.tensor<[n, n], f32, cpu>
  %2 = graph.apply "add"(%x, %0) : (!graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>) -> !graph.tensor<[n, n], f32, cpu>
  graph.output %1, %2 : !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>
}

// A group has one product, and no reduction with it; a product alone is no group.
// CHECK-LABEL: graph.graph @two
// CHECK:         graph.apply "matmul"(%x, %w) :
// CHECK:         graph.apply "matmul"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "sum"{{.*}} attributes {halfulp.group = 1 : i64}
graph.graph @two(%x: !graph.tensor<[m, k], f32, cpu>, %w: !graph.tensor<[k, n], f32, cpu>) {
  %0 = graph.apply "matmul"(%x, %w) : (!graph.tensor<[m, k], f32, cpu>, !graph.tensor<[k, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  %1 = graph.apply "matmul"(%x, %w) : (!graph.tensor<[m, k], f32, cpu>, !graph.tensor<[k, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  %2 = graph.apply "add"(%0, %1) : (!graph.tensor<[m, n], f32, cpu>, !graph.tensor<[m, n], f32, cpu>) -> !graph.tensor<[m, n], f32, cpu>
  %3 = graph.apply "sum"(%2) {axis = 1 : i64} : (!graph.tensor<[m, n], f32, cpu>) -> !graph.tensor<[m, 1], f32, cpu>
  graph.output %3 : !graph.tensor<[m, 1], f32, cpu>
}
