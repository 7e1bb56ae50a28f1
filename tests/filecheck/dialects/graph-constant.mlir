// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: graph.graph @constants()
graph.graph @constants() {
  // Floats: short, special, and where an int stands for a float.
  // CHECK-NEXT: graph.constant dense<[1.0, -0.0, 0.1, 3.0e+10, 1.0e-45, nan, inf, -inf]> : !graph.tensor<[8], f32, cpu>
  // GENERIC:    "graph.constant"() <{value = #graph.dense<"0x0000803F00000080CDCCCC3D7684DF50010000000000C07F0000807F000080FF">}>
  %0 = graph.constant dense<[1, -0.0, 0.1, 3.0e10, 1.0e-45, nan, inf, -inf]> : !graph.tensor<[8], f32, cpu>
  // A scalar, and equal elements as one.
  // CHECK-NEXT: graph.constant dense<2.5> : !graph.tensor<[], f64, cpu>
  %1 = graph.constant dense<2.5> : !graph.tensor<[], f64, cpu>
  // CHECK-NEXT: graph.constant dense<7> : !graph.tensor<[2, 3], ui8, cpu>
  %2 = graph.constant dense<[[7, 7, 7], [7, 7, 7]]> : !graph.tensor<[2, 3], ui8, cpu>
  // CHECK-NEXT: graph.constant dense<[{{\[}}1, 2], [-3, 4]]> : !graph.tensor<[2, 2], i64, cpu>
  %3 = graph.constant dense<[[1, 2], [-3, 4]]> : !graph.tensor<[2, 2], i64, cpu>
  // CHECK-NEXT: graph.constant dense<[18446744073709551615, 0]> : !graph.tensor<[2], ui64, cpu>
  %4 = graph.constant dense<[18446744073709551615, 0]> : !graph.tensor<[2], ui64, cpu>
  // CHECK-NEXT: graph.constant dense<[true, false]> : !graph.tensor<[2], bool, cpu>
  // GENERIC:    #graph.dense<"0x0100">
  %5 = graph.constant dense<[true, false]> : !graph.tensor<[2], bool, cpu>
  // CHECK-NEXT: graph.constant dense<[]> : !graph.tensor<[2, 0], f16, cpu>
  %6 = graph.constant dense<[]> : !graph.tensor<[2, 0], f16, cpu>
  // Rounded once, to the nearest value of the type.
  // CHECK-NEXT: graph.constant dense<[0.10009765625, 3.0]> : !graph.tensor<[2], bf16, cpu>
  %7 = graph.constant dense<[0.1, 3.0]> : !graph.tensor<[2], bf16, cpu>
  // A NaN with a payload has no text, so the bytes stand.
  // CHECK-NEXT: graph.constant dense<"0x010080FF0000803F"> : !graph.tensor<[2], f32, cpu>
  %8 = graph.constant dense<"0x010080ff0000803f"> : !graph.tensor<[2], f32, cpu>
  // Bytes that have a text become text.
  // CHECK-NEXT: graph.constant dense<[1.0, 2.0]> : !graph.tensor<[2], f32, cpu>
  %9 = graph.constant dense<"0x0000803f00000040"> : !graph.tensor<[2], f32, cpu>
  // More than 64 elements: bytes.
  // CHECK-NEXT: graph.constant dense<"0x0100000{{0*}}"> : !graph.tensor<[65], i8, cpu>
  %10 = graph.constant dense<"0x0100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : !graph.tensor<[65], i8, cpu>
  graph.output
}
