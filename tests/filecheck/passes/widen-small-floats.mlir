// RUN: halfulp-opt %s -p widen-small-floats | filecheck %s
// RUN: halfulp-opt %s -p widen-small-floats,contract-fma | filecheck %s --check-prefix=CONTRACTED

// Between ops the values are f32; the outputs are rounded. The product is an output too, and that changes nothing
// about the sum.
graph.graph @chain(%a: !graph.tensor<[n], bf16, cpu>, %b: !graph.tensor<[n], bf16, cpu>) {
  %p = graph.apply "mul"(%a, %b) fastmath<nsz> : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  %s = graph.apply "add"(%p, %a) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  graph.output %p, %s : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>
}

// A cast of the user's rounds, once and from f32; one to f32 has nothing left to do.
graph.graph @casts(%a: !graph.tensor<[n], bf16, cpu>) {
  %s = graph.apply "add"(%a, %a) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  %h = graph.apply "cast"(%s) {dtype = #graph.dtype<f16>} : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], f16, cpu>
  %t = graph.apply "add"(%h, %h) : (!graph.tensor<[n], f16, cpu>, !graph.tensor<[n], f16, cpu>) -> !graph.tensor<[n], f16, cpu>
  %w = graph.apply "cast"(%s) {dtype = #graph.dtype<f32>} : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %t, %w : !graph.tensor<[n], f16, cpu>, !graph.tensor<[n], f32, cpu>
}

// Other types are left alone, and an output that is an input is one.
graph.graph @others(%a: !graph.tensor<[n], bf16, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  %s = graph.apply "add"(%x, %x) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %a, %s : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], f32, cpu>
}

// CHECK-LABEL: graph.graph @chain(
// CHECK-NEXT: %0 = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %1 = graph.apply "cast"(%a) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %p = graph.apply "mul"(%1, %0) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %2 = graph.apply "cast"(%p) {dtype = #graph.dtype<bf16>} : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// CHECK-NEXT: %s = graph.apply "add"(%p, %1) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %3 = graph.apply "cast"(%s) {dtype = #graph.dtype<bf16>} : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// CHECK-NEXT: graph.output %2, %3 : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>
// CHECK-LABEL: graph.graph @casts(
// CHECK-NEXT: %0 = graph.apply "cast"(%a) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %s = graph.apply "add"(%0, %0) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %h = graph.apply "cast"(%s) {dtype = #graph.dtype<f16>} : {{.*}} -> !graph.tensor<[n], f16, cpu>
// CHECK-NEXT: %1 = graph.apply "cast"(%h) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %t = graph.apply "add"(%1, %1) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: %2 = graph.apply "cast"(%t) {dtype = #graph.dtype<f16>} : {{.*}} -> !graph.tensor<[n], f16, cpu>
// CHECK-NEXT: graph.output %2, %s : !graph.tensor<[n], f16, cpu>, !graph.tensor<[n], f32, cpu>
// CHECK-LABEL: graph.graph @others(
// CHECK-NEXT: %s = graph.apply "add"(%x, %x) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CHECK-NEXT: graph.output %a, %s : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], f32, cpu>

// CONTRACTED-LABEL: graph.graph @chain(
// CONTRACTED-NEXT: %0 = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %1 = graph.apply "cast"(%a) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %p = graph.apply "mul"(%1, %0) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %2 = graph.apply "cast"(%p) {dtype = #graph.dtype<bf16>} : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// CONTRACTED-NEXT: %s = graph.apply "add"(%p, %1) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %3 = graph.apply "cast"(%s) {dtype = #graph.dtype<bf16>} : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// CONTRACTED-NEXT: graph.output %2, %3 : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>
// CONTRACTED-LABEL: graph.graph @casts(
// CONTRACTED-NEXT: %0 = graph.apply "cast"(%a) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %s = graph.apply "add"(%0, %0) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %h = graph.apply "cast"(%s) {dtype = #graph.dtype<f16>} : {{.*}} -> !graph.tensor<[n], f16, cpu>
// CONTRACTED-NEXT: %1 = graph.apply "cast"(%h) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %t = graph.apply "add"(%1, %1) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: %2 = graph.apply "cast"(%t) {dtype = #graph.dtype<f16>} : {{.*}} -> !graph.tensor<[n], f16, cpu>
// CONTRACTED-NEXT: graph.output %2, %s : !graph.tensor<[n], f16, cpu>, !graph.tensor<[n], f32, cpu>
// CONTRACTED-LABEL: graph.graph @others(
// CONTRACTED-NEXT: %s = graph.apply "add"(%x, %x) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// CONTRACTED-NEXT: graph.output %a, %s : !graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], f32, cpu>
