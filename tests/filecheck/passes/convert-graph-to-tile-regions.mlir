// RUN: halfulp-opt %s -p fuse-ops,convert-graph-to-tile | filecheck %s

// Both branches write the result's buffer: the one by its kernel, the other by a copy. The predicate is read as a
// scalar. What is printed inside is printed there.
graph.graph @branch(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[n], f32, cpu> then {
    %1 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.print %1, "inside" : !graph.tensor<[n], f32, cpu>
    graph.yield %1 : !graph.tensor<[n], f32, cpu>
  } else {
    graph.yield %x : !graph.tensor<[n], f32, cpu>
  }
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// CHECK-LABEL: func.func @branch(
// CHECK:         %[[READ:[0-9]+]] = tile.load
// CHECK:         %[[P:[0-9]+]] = tile.extract %[[READ]]
// CHECK-NEXT:    scf.if %[[P]] {
// CHECK:           %[[OUT:[0-9]+]] = tile.flatten %2
// CHECK:           tile.launch @exp grid(%{{[0-9]+}}) (%{{[0-9]+}}, %[[OUT]], %{{[0-9]+}})
// CHECK-NEXT:      tile.print_tensor %2, "inside" as "f32"
// CHECK-NEXT:    } else {
// CHECK:           tile.launch @copy
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// The initial value is computed where the loop carries it, and that is the output. Each round computes the next value
// into a buffer of its own, which stands inside the loop, and copies it. Of two that change places one is set aside, too.
graph.graph @loop(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1, %2, %3 = graph.while %p, %0, %x : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu> -> !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %u: !graph.tensor<[n], f32, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %u: !graph.tensor<[n], f32, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    %4 = graph.apply "negate"(%u) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %q, %v, %4 : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
  }
  graph.output %2 : !graph.tensor<[n], f32, cpu>
}

// CHECK-LABEL: func.func @loop(
// CHECK-SAME:      %[[P:[0-9]+]]: !tile.ref<[1], i1, global> {halfulp.role = "input"
// CHECK-SAME:      %[[X:[0-9]+]]: !tile.ref<[?], f32, global> {halfulp.role = "input"
// CHECK-SAME:      %[[U:[0-9]+]]: !tile.ref<[?], f32, global> {halfulp.role = "output"
// CHECK:         %[[TO:[0-9]+]] = tile.flatten %[[U]]
// CHECK:         tile.launch @exp_2 grid(%{{[0-9]+}}) (%{{[0-9]+}}, %[[TO]], %{{[0-9]+}})
// CHECK-NEXT:    %[[Q:[0-9]+]] = tile.buffer ["1"]
// CHECK-NEXT:    %[[V:[0-9]+]] = tile.buffer ["n"]
// CHECK:         tile.launch @copy_2
// CHECK:         tile.launch @copy_3
// CHECK-NEXT:    scf.while () : () -> () {
// CHECK:           tile.window %[[Q]]
// CHECK:           scf.condition(%{{[0-9]+}})
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[NEXT:[0-9]+]] = tile.buffer ["n"]
// CHECK:           tile.launch @negate
// CHECK-NEXT:      %[[ASIDE:[0-9]+]] = tile.buffer ["n"]
// CHECK-NEXT:      tile.flatten %[[V]]
// CHECK-NEXT:      tile.flatten %[[ASIDE]]
// CHECK:           tile.launch @copy_4
// CHECK-NEXT:      tile.flatten %[[ASIDE]]
// CHECK-NEXT:      tile.flatten %[[U]]
// CHECK:           tile.launch @copy_5
// CHECK-NEXT:      tile.flatten %[[NEXT]]
// CHECK-NEXT:      tile.flatten %[[V]]
// CHECK:           tile.launch @copy_6
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
