// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: halfulp-opt %s --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// Everything an op can carry: parameters of each kind, flags, defined symbols, attributes that passes add.

// CHECK:      graph.graph @scaled_sum(%x: !graph.tensor<[batch, 8], f32, cpu>, %y: !graph.tensor<[batch, 8], f32, gpu:1>) attributes {"fp-contract" = "on"} {
// GENERIC:    "graph.graph"() <{sym_name = "scaled_sum", input_names = ["x", "y"]}> ({
// GENERIC-NEXT: ^bb0(%x: !graph.tensor<[batch, 8], f32, cpu>, %y: !graph.tensor<[batch, 8], f32, gpu:1>):
// LOCATIONS:  graph.graph @scaled_sum(%x: !graph.tensor<[batch, 8], f32, cpu> loc("model.py":3:0), %y: !graph.tensor<[batch, 8], f32, gpu:1> loc(unknown))
graph.graph @scaled_sum(%x: !graph.tensor<[batch, 8], f32, cpu> loc("model.py":3:0), %y: !graph.tensor<[batch, 8], f32, gpu:1>) attributes {"fp-contract" = "on"} {
  // CHECK-NEXT: %w = graph.weight "layers.0.scale" : !graph.tensor<[8], f32, cpu>
  // GENERIC:    %w = "graph.weight"() <{weight_name = "layers.0.scale"}> : () -> !graph.tensor<[8], f32, cpu>
  // LOCATIONS:  graph.weight "layers.0.scale" : !graph.tensor<[8], f32, cpu> loc("model.py":4:2)
  %w = graph.weight "layers.0.scale" : !graph.tensor<[8], f32, cpu> loc("model.py":4:2)
  // CHECK-NEXT: %0 = graph.apply "mul"(%x, %w) : (!graph.tensor<[batch, 8], f32, cpu>, !graph.tensor<[8], f32, cpu>) -> !graph.tensor<[batch, 8], f32, cpu>
  %0 = graph.apply "mul"(%x, %w) : (!graph.tensor<[batch, 8], f32, cpu>, !graph.tensor<[8], f32, cpu>) -> !graph.tensor<[batch, 8], f32, cpu>
  // CHECK-NEXT: %1 = graph.apply "add"(%0, %0) fastmath<nsz,contract> : (
  // GENERIC:    "graph.apply"(%0, %0) <{callee = "add", parameters = {}, fastmath = #arith.fastmath<nsz,contract>}>
  %1 = graph.apply "add"(%0, %0) fastmath<contract, nsz> : (!graph.tensor<[batch, 8], f32, cpu>, !graph.tensor<[batch, 8], f32, cpu>) -> !graph.tensor<[batch, 8], f32, cpu>
  // No flags at all is a statement of its own: it overrides the options.
  // CHECK-NEXT: %2 = graph.apply "exp"(%1) fastmath<none> attributes {rounding = "exact"} : (
  %2 = graph.apply "exp"(%1) fastmath<none> attributes {rounding = "exact"} : (!graph.tensor<[batch, 8], f32, cpu>) -> !graph.tensor<[batch, 8], f32, cpu>
  // CHECK-NEXT: %3 = graph.apply "everything"() {b = true, d = #graph.dim<"2*batch + 1">, f = 1.000000e-01 : f64, i = -1 : i64, l = [1 : i64, none, [2 : i64]], s = "two words", t = #graph.dtype<ui8>} : () -> !graph.tensor<["2*batch + 1"], i64, cpu>
  %3 = graph.apply "everything"() {b = true, d = #graph.dim<"batch + 1 + batch">, f = 1.000000e-01 : f64, i = -1 : i64, l = [1 : i64, none, [2 : i64]], s = "two words", t = #graph.dtype<ui8>} : () -> !graph.tensor<["2*batch + 1"], i64, cpu>
  // CHECK-NEXT: %4, %5 = graph.custom "split"(%2) on gpu:0 {levels = 3 : i64} defines [rows, cols] : (!graph.tensor<[batch, 8], f32, cpu>) -> (!graph.tensor<[rows, cols], f32, cpu>, !graph.tensor<["batch + 2*rows"], ui32, cpu>)
  %4, %5 = graph.custom "split"(%2) on gpu:0 {levels = 3 : i64} defines [rows, cols] : (!graph.tensor<[batch, 8], f32, cpu>) -> (!graph.tensor<[rows, cols], f32, cpu>, !graph.tensor<["2*rows + batch"], ui32, cpu>)
  // CHECK-NEXT: graph.output %4, %5, %x : !graph.tensor<[rows, cols], f32, cpu>, !graph.tensor<["batch + 2*rows"], ui32, cpu>, !graph.tensor<[batch, 8], f32, cpu>
  graph.output %4, %5, %x : !graph.tensor<[rows, cols], f32, cpu>, !graph.tensor<["2*rows + batch"], ui32, cpu>, !graph.tensor<[batch, 8], f32, cpu>
}

// Element types, scalars, sizes of 0, and expressions in canonical form.

// CHECK-LABEL: graph.graph @types(
// CHECK-SAME:    %a: !graph.tensor<[], bool, cpu>, %b: !graph.tensor<[0], i8, cpu>, %c: !graph.tensor<[n], bf16, gpu:0>
graph.graph @types(%a: !graph.tensor<[], bool, cpu>, %b: !graph.tensor<[0], i8, cpu>, %c: !graph.tensor<[n], bf16, gpu:0>) {
  // CHECK-NEXT: -> !graph.tensor<["(n + 127) // 128", n, "n*n - 1"], f64, cpu>
  %0 = graph.apply "x"() : () -> !graph.tensor<["-(-n // 128)", "n * 4 // 4", "(n + 1)*(n - 1)"], f64, cpu>
  // CHECK-NEXT: graph.output{{$}}
  graph.output
}

// An input keeps its name where a value cannot have it: xDSL drops a number at the end of a value's name.

// CHECK-LABEL: graph.graph @names(%x as "x_1": !graph.tensor<[2], f16, cpu>, %x_1 as "x_2": !graph.tensor<[2], f16, cpu>)
// GENERIC:     "graph.graph"() <{sym_name = "names", input_names = ["x_1", "x_2"]}> ({
graph.graph @names(%x_1: !graph.tensor<[2], f16, cpu>, %n as "x_2": !graph.tensor<[2], f16, cpu>) {
  // CHECK-NEXT: graph.output %x_1 : !graph.tensor<[2], f16, cpu>
  graph.output %n : !graph.tensor<[2], f16, cpu>
}
