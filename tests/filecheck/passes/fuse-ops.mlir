// RUN: halfulp-opt %s -p fuse-ops | filecheck %s

// A chain of maps is one group.
// CHECK-LABEL: graph.graph @chain
// CHECK:         graph.apply "mul"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 0 : i64}
graph.graph @chain(%x: !graph.tensor<[n], f32, cpu>, %y: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "mul"(%x, %y) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%0, %y) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

// Softmax: two row reductions, their broadcasts and the maps between them are one group.
// CHECK-LABEL: graph.graph @softmax
// CHECK-COUNT-7: attributes {halfulp.group = 0 : i64}
graph.graph @softmax(%x: !graph.tensor<[n, m], f32, cpu>) {
  %0 = graph.apply "max"(%x) {axis = 1 : i64} : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, 1], f32, cpu>
  %1 = graph.apply "broadcast_to"(%0) {shape = [#graph.dim<"n">, #graph.dim<"m">]} : (!graph.tensor<[n, 1], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %2 = graph.apply "sub"(%x, %1) : (!graph.tensor<[n, m], f32, cpu>, !graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %3 = graph.apply "exp"(%2) : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %4 = graph.apply "sum"(%3) {axis = 1 : i64} : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, 1], f32, cpu>
  %5 = graph.apply "broadcast_to"(%4) {shape = [#graph.dim<"n">, #graph.dim<"m">]} : (!graph.tensor<[n, 1], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %6 = graph.apply "div"(%3, %5) : (!graph.tensor<[n, m], f32, cpu>, !graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  graph.output %6 : !graph.tensor<[n, m], f32, cpu>
}

// A reduction along another axis has a kernel of its own.
// CHECK-LABEL: graph.graph @columns
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "sum"
// CHECK-NOT:     halfulp.group
// CHECK:         graph.output
graph.graph @columns(%x: !graph.tensor<[n, m], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %1 = graph.apply "sum"(%0) {axis = 0 : i64} : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[1, m], f32, cpu>
  graph.output %1 : !graph.tensor<[1, m], f32, cpu>
}

// Two chains that meet are one group; different shapes are not.
// CHECK-LABEL: graph.graph @meeting
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 1 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 0 : i64}
graph.graph @meeting(%x: !graph.tensor<[n], f32, cpu>, %y: !graph.tensor<[n], f32, cpu>, %z: !graph.tensor<[k], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "exp"(%y) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %2 = graph.apply "exp"(%z) : (!graph.tensor<[k], f32, cpu>) -> !graph.tensor<[k], f32, cpu>
  %3 = graph.apply "add"(%0, %1) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %2, %3 : !graph.tensor<[k], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// A path out of the group and back into it keeps its ends apart: the column sum needs all of %0 first.
// CHECK-LABEL: graph.graph @path
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "sub"{{.*}} attributes {halfulp.group = 1 : i64}
graph.graph @path(%x: !graph.tensor<[n, m], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %1 = graph.apply "sum"(%0) {axis = 0 : i64} : (!graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[1, m], f32, cpu>
  %2 = graph.apply "broadcast_to"(%1) {shape = [#graph.dim<"n">, #graph.dim<"m">]} : (!graph.tensor<[1, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  %3 = graph.apply "sub"(%0, %2) : (!graph.tensor<[n, m], f32, cpu>, !graph.tensor<[n, m], f32, cpu>) -> !graph.tensor<[n, m], f32, cpu>
  graph.output %3 : !graph.tensor<[n, m], f32, cpu>
}

// Nothing joins the kernel of an op that is marked as a boundary.
// CHECK-LABEL: graph.graph @boundary
// CHECK:         graph.apply "exp"{{.*}}halfulp.group = 0 : i64
// CHECK:         graph.apply "negate"{{.*}} attributes {halfulp.group = 1 : i64}
graph.graph @boundary(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) attributes {halfulp.boundary} : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "negate"(%0) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}
