// RUN: halfulp-opt %s -p widen-small-floats | filecheck %s

// What goes into a region or out of one is rounded; between the ops inside, values are f32. A value from around the
// region is converted where it is defined, so that every use may have it.
// CHECK-LABEL: graph.graph @regions(
// CHECK-NEXT:    %0 = graph.apply "cast"(%a) {dtype = #graph.dtype<f32>} : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT:    %1, %2 = graph.while %p, %a : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], bf16, cpu> -> !graph.tensor<[], bool, cpu>, !graph.tensor<[n], bf16, cpu> predicate {
// CHECK:         } body {
// CHECK-NEXT:    ^bb0(%{{.*}}: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], bf16, cpu>):
// CHECK-NEXT:      %[[V:.*]] = graph.apply "cast"(%v) {dtype = #graph.dtype<f32>}
// CHECK-NEXT:      %[[M:.*]] = graph.apply "mul"(%[[V]], %0) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT:      %[[S:.*]] = graph.apply "add"(%[[M]], %[[V]]) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT:      %[[R:.*]] = graph.apply "cast"(%[[S]]) {dtype = #graph.dtype<bf16>}
// CHECK-NEXT:      graph.yield %{{.*}}, %[[R]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[W:.*]] = graph.apply "cast"(%2) {dtype = #graph.dtype<f32>}
// CHECK-NEXT:    graph.apply "negate"(%[[W]])
graph.graph @regions(%p: !graph.tensor<[], bool, cpu>, %a: !graph.tensor<[n], bf16, cpu>) {
  %1, %2 = graph.while %p, %a : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], bf16, cpu> -> !graph.tensor<[], bool, cpu>, !graph.tensor<[n], bf16, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %u: !graph.tensor<[n], bf16, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], bf16, cpu>):
    %3 = graph.apply "mul"(%v, %a) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
    %4 = graph.apply "add"(%3, %v) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
    graph.yield %q, %4 : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], bf16, cpu>
  }
  %5 = graph.apply "negate"(%2) : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  graph.output %5 : !graph.tensor<[n], bf16, cpu>
}
