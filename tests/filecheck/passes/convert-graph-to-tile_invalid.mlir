// RUN: halfulp-opt %s -p convert-graph-to-tile --split-input-file --verify-diagnostics | filecheck %s

// CHECK: graph.apply "expp": no op is registered under that name; did you mean 'exp'? Import the module that registers it, such as halfulp.ops
graph.graph @g(%x: !graph.tensor<[8], f32, cpu>) {
  %0 = graph.apply "expp"(%x) : (!graph.tensor<[8], f32, cpu>) -> !graph.tensor<[8], f32, cpu>
  graph.output %0 : !graph.tensor<[8], f32, cpu>
}

// -----

// CHECK: graph.custom "nothing": no kernel is registered under that name.
graph.graph @g(%x: !graph.tensor<[8], f32, cpu>) {
  %0 = graph.custom "nothing"(%x) on cpu : (!graph.tensor<[8], f32, cpu>) -> !graph.tensor<[8], f32, cpu>
  graph.output %0 : !graph.tensor<[8], f32, cpu>
}
