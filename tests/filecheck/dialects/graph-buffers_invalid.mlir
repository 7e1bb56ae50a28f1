// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: graph.load: the result must be float32 [n] on cpu
graph.graph @load(%b: !graph.buffer<[n], f32, cpu>) {
  %0 = graph.load %b : !graph.buffer<[n], f32, cpu> -> !graph.tensor<[n], f64, cpu>
  graph.output
}

// -----

// CHECK: graph.store: the value must be float32 [n] on cpu
graph.graph @store(%b: !graph.buffer<[n], f32, cpu>, %x: !graph.tensor<[n], f64, cpu>) {
  graph.store %x, %b : !graph.tensor<[n], f64, cpu>, !graph.buffer<[n], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.apply "exp": takes tensors, but is given a buffer; load it with graph.load
graph.graph @apply(%b: !graph.buffer<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%b) : (!graph.buffer<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.graph @input: input 'x' must be a !graph.tensor or a !graph.buffer, not i32
graph.graph @input(%x: i32) {
  graph.output
}
