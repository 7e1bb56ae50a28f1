// RUN: halfulp-opt %s -p fuse-ops | filecheck %s

// Groups stay inside their block, and their numbers differ in all of the graph. The sum after the branch could join the
// exp before it, but the branch stands between them: it reads the exp, and the sum reads its result.
// CHECK-LABEL: graph.graph @branch
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.cond
// CHECK:           graph.apply "mul"{{.*}} attributes {halfulp.group = 2 : i64}
// CHECK:           graph.apply "add"{{.*}} attributes {halfulp.group = 2 : i64}
// CHECK:         } else {
// CHECK:           graph.apply "negate"{{.*}} attributes {halfulp.group = 3 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 1 : i64}
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 1 : i64}
graph.graph @branch(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[n], f32, cpu> then {
    %2 = graph.apply "mul"(%0, %x) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    %3 = graph.apply "add"(%2, %x) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %3 : !graph.tensor<[n], f32, cpu>
  } else {
    %4 = graph.apply "negate"(%0) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %4 : !graph.tensor<[n], f32, cpu>
  }
  %5 = graph.apply "add"(%0, %1) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %6 = graph.apply "exp"(%5) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %6 : !graph.tensor<[n], f32, cpu>
}

// Prints come in order: the loop waits for the print of %0, and the sum for the loop, so it cannot join the exp.
// CHECK-LABEL: graph.graph @prints
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.apply "add"{{.*}} attributes {halfulp.group = 1 : i64}
graph.graph @prints(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>, %y: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.print %0, "first" : !graph.tensor<[n], f32, cpu>
  %1 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[n], f32, cpu> then {
    graph.print %y, "second" : !graph.tensor<[n], f32, cpu>
    graph.yield %y : !graph.tensor<[n], f32, cpu>
  } else {
    graph.yield %x : !graph.tensor<[n], f32, cpu>
  }
  %2 = graph.apply "add"(%0, %1) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %2 : !graph.tensor<[n], f32, cpu>
}

// Nothing joins over the border of a loop, in either direction; the two sides of it that do not meet there may join.
// CHECK-LABEL: graph.graph @loop
// CHECK:         graph.apply "exp"{{.*}} attributes {halfulp.group = 0 : i64}
// CHECK:         graph.while
// CHECK:           graph.apply "negate"{{.*}} attributes {halfulp.group = 1 : i64}
// CHECK:         graph.apply "negate"{{.*}} attributes {halfulp.group = 0 : i64}
graph.graph @loop(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>, %y: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1, %2 = graph.while %p, %y : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu> -> !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    %3 = graph.apply "negate"(%v) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %p, %3 : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu>
  }
  %4 = graph.apply "negate"(%0) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %2, %4 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}
