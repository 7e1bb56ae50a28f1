// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: halfulp-opt %s -p cse,canonicalize,dce | filecheck %s

// A buffer is an input. Two loads of one with a store between are not the same; no op on a buffer is dropped.

// CHECK:       graph.graph @buffers(%b: !graph.buffer<[n], f32, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
// GENERIC:     ^bb0(%b: !graph.buffer<[n], f32, cpu>, %x: !graph.tensor<[n], f32, cpu>):
graph.graph @buffers(%b: !graph.buffer<[n], f32, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  // CHECK-NEXT:  %0 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  // GENERIC:     %0 = "graph.load"(%b) : (!graph.buffer<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  // CHECK-NEXT:  graph.store %x, %b {marked} : !graph.tensor<[n], f32, cpu>, !graph.buffer<[n], f32, cpu>
  // GENERIC:     "graph.store"(%x, %b) {marked} : (!graph.tensor<[n], f32, cpu>, !graph.buffer<[n], f32, cpu>) -> ()
  graph.store %x, %b {marked} : !graph.tensor<[n], f32, cpu>, !graph.buffer<[n], f32, cpu>
  // CHECK-NEXT:  %1 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  %1 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f32, cpu>
  // CHECK-NEXT:  graph.inplace_custom "append"(%b, %x) on cpu {at = 2 : i64} : (!graph.buffer<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> ()
  graph.inplace_custom "append"(%b, %x) on cpu {at = 2 : i64} : (!graph.buffer<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> ()
  // CHECK-NEXT:  graph.output %0, %1
  graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}
