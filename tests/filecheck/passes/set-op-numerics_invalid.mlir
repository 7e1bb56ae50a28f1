// RUN: halfulp-opt %s -p 'set-op-numerics{ops=0,2}' --verify-diagnostics | filecheck %s

// CHECK: set-op-numerics: there is no op number 2; the ops of the module are numbered 0 to 0
graph.graph @g(%a: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "negate"(%a) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}
