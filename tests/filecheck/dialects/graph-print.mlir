// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: halfulp-opt %s -p cse,canonicalize,dce | filecheck %s

// A print has no result, and neither of two equal ones is removed. Its label is any text, here a quote, a backslash,
// a line break and a letter outside of ASCII. A line of text has no operand.

// CHECK:       graph.graph @prints(
graph.graph @prints(%x: !graph.tensor<[n, 4], f32, cpu>, %b: !graph.tensor<[], bool, cpu>) {
  // CHECK-NEXT:  graph.print %x, "layer 0" : !graph.tensor<[n, 4], f32, cpu>
  // GENERIC:     "graph.print"(%x) <{label = "layer 0"}> : (!graph.tensor<[n, 4], f32, cpu>) -> ()
  graph.print %x, "layer 0" : !graph.tensor<[n, 4], f32, cpu>
  // CHECK-NEXT:  graph.print %x, "layer 0" : !graph.tensor<[n, 4], f32, cpu>
  graph.print %x, "layer 0" : !graph.tensor<[n, 4], f32, cpu>
  // CHECK-NEXT:  graph.print %b, "" {marked} : !graph.tensor<[], bool, cpu>
  graph.print %b, "" {marked} : !graph.tensor<[], bool, cpu>
  // CHECK-NEXT:  graph.print %b, "\22\\\\\\n\\xfc" : !graph.tensor<[], bool, cpu>
  graph.print %b, "\"\\\\\\n\\xfc" : !graph.tensor<[], bool, cpu>
  // CHECK-NEXT:  graph.print_text "a line {} \\xfc"
  // GENERIC:     "graph.print_text"() <{line = "a line {} \\xfc"}> : () -> ()
  graph.print_text "a line {} \\xfc"
  // CHECK-NEXT:  graph.print_text "a line {} \\xfc"
  graph.print_text "a line {} \\xfc"
  // CHECK-NEXT:  graph.output %b
  graph.output %b : !graph.tensor<[], bool, cpu>
}
