// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: halfulp-opt %s -p verify-graph | filecheck %s

// A branch with results, one without, a loop; regions see the values around them.

// CHECK:       graph.graph @control(
graph.graph @control(%p: !graph.tensor<[1], bool, cpu>, %n: !graph.tensor<[], i64, cpu>, %x: !graph.tensor<[m], f32, cpu>) {
  // CHECK-NEXT:  %y, %z = graph.cond %p : !graph.tensor<[1], bool, cpu> -> !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu> then {
  // CHECK-NEXT:    graph.yield %x, %n : !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu>
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    %0 = graph.apply "negate"(%x) : (!graph.tensor<[m], f32, cpu>) -> !graph.tensor<[m], f32, cpu>
  // CHECK-NEXT:    graph.yield %0, %n : !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu>
  // CHECK-NEXT:  } {marked}
  // GENERIC:     "graph.cond"(%p) ({
  // GENERIC-NEXT:  "graph.yield"(%x, %n) : (!graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu>) -> ()
  // GENERIC-NEXT: }, {
  %y, %z = graph.cond %p : !graph.tensor<[1], bool, cpu> -> !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu> then {
    graph.yield %x, %n : !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu>
  } else {
    %0 = graph.apply "negate"(%x) : (!graph.tensor<[m], f32, cpu>) -> !graph.tensor<[m], f32, cpu>
    graph.yield %0, %n : !graph.tensor<[m], f32, cpu>, !graph.tensor<[], i64, cpu>
  } {marked}
  // CHECK-NEXT:  graph.cond %p : !graph.tensor<[1], bool, cpu> then {
  // CHECK-NEXT:    graph.print %x, "only here" : !graph.tensor<[m], f32, cpu>
  // CHECK-NEXT:    graph.yield
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    graph.yield
  // CHECK-NEXT:  }
  graph.cond %p : !graph.tensor<[1], bool, cpu> then {
    graph.print %x, "only here" : !graph.tensor<[m], f32, cpu>
    graph.yield
  } else {
    graph.yield
  }
  // CHECK-NEXT:  %last, %w = graph.while %n, %y : !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu> -> !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu> predicate {
  // CHECK-NEXT:  ^bb0(%i: !graph.tensor<[], i64, cpu>, %v: !graph.tensor<[m], f32, cpu>):
  // CHECK-NEXT:    %1 = graph.apply "greater"(%i, %z)
  // CHECK-NEXT:    graph.yield %1 : !graph.tensor<[], bool, cpu>
  // CHECK-NEXT:  } body {
  // CHECK-NEXT:  ^bb0(%i_1: !graph.tensor<[], i64, cpu>, %v_1: !graph.tensor<[m], f32, cpu>):
  // CHECK-NEXT:    %2 = graph.apply "mul"(%v_1, %x)
  // CHECK-NEXT:    graph.yield %z, %2 : !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu>
  // CHECK-NEXT:  }
  %last, %w = graph.while %n, %y : !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu> -> !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu> predicate {
  ^bb0(%i: !graph.tensor<[], i64, cpu>, %v: !graph.tensor<[m], f32, cpu>):
    %1 = graph.apply "greater"(%i, %z) : (!graph.tensor<[], i64, cpu>, !graph.tensor<[], i64, cpu>) -> !graph.tensor<[], bool, cpu>
    graph.yield %1 : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%i: !graph.tensor<[], i64, cpu>, %v: !graph.tensor<[m], f32, cpu>):
    %2 = graph.apply "mul"(%v, %x) : (!graph.tensor<[m], f32, cpu>, !graph.tensor<[m], f32, cpu>) -> !graph.tensor<[m], f32, cpu>
    graph.yield %z, %2 : !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu>
  }
  // CHECK-NEXT:  graph.output %last, %w
  graph.output %last, %w : !graph.tensor<[], i64, cpu>, !graph.tensor<[m], f32, cpu>
}
