// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// A line of text keeps its place among all that is printed, in a branch too. Braces in it are text.

graph.graph @g(%x: !graph.tensor<[n], f32, cpu>, %p: !graph.tensor<[], bool, cpu>) {
  graph.print_text "first {}"
  graph.print %x, "x" : !graph.tensor<[n], f32, cpu>
  graph.cond %p : !graph.tensor<[], bool, cpu> then {
    graph.print_text "yes"
    graph.yield
  } else {
    graph.print_text "no"
    graph.yield
  }
  graph.print_text "last"
  graph.output
}

// CHECK:       func.func @g(
// CHECK:         tile.print "first {}" as []
// CHECK:         tile.print_tensor %{{[0-9]+}}, "x" as "f32"
// CHECK:         scf.if
// CHECK:           tile.print "yes" as []
// CHECK:         } else {
// CHECK:           tile.print "no" as []
// CHECK:         tile.print "last" as []
