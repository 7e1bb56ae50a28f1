// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Launches stand in branches and loops of the entry function. A loop ends, too, once a check has failed: launches do
// nothing then, and what it waits for would never come. A later segment does not run them again.
tile.kernel @step(%x: !tile.ref<[?], i64, global>, %p: !tile.ref<[1], i1, global>) grid() axes [] {
  tile.return
}
func.func @main(%x: !tile.ref<[?], i64, global>, %p: !tile.ref<[1], i1, global>) {
  %zero = arith.constant 0 : index
  scf.while () : () -> () {
    %block = tile.load %p : !tile.ref<[1], i1, global> -> tensor<1xi1>
    %more = tile.extract %block[%zero] : tensor<1xi1> -> i1
    scf.condition(%more)
  } do {
    %b = tile.buffer ["n"] : !tile.ref<[?], i64, global>
    tile.launch @step grid() (%b, %p) : !tile.ref<[?], i64, global>, !tile.ref<[1], i1, global>
    tile.launch @step grid() (%x, %p) : !tile.ref<[?], i64, global>, !tile.ref<[1], i1, global>
    scf.yield
  }
  %n = tile.dim %x, 0 : !tile.ref<[?], i64, global>
  tile.set_dim "m", %n
  tile.launch @step grid() (%x, %p) : !tile.ref<[?], i64, global>, !tile.ref<[1], i1, global>
  func.return
}

// What decides was written by a kernel, and may be poison for LLVM: it must not see both in one function.
// CHECK-LABEL: func.func private @step.launch(
// CHECK-SAME:      attributes {halfulp.no_inline}
// CHECK-LABEL: func.func private @main.0(%0: memref<?xi64>
// CHECK:         scf.while () : () -> () {
// CHECK:           %[[BYTE:[0-9]+]] = memref.load
// CHECK:           func.call @watch_loop(
// CHECK:           %[[FAILED:[0-9]+]] = memref.load %0[
// CHECK-NEXT:      %[[WELL:[0-9]+]] = vector_ext.cmpi eq, %[[FAILED]]
// CHECK-NEXT:      %[[BOTH:[0-9]+]] = arith.andi %{{[0-9]+}}, %[[WELL]] : i1
// CHECK-NEXT:      scf.condition(%[[BOTH]])
// CHECK-NEXT:    } do {
// CHECK-NEXT:      func.call @step.launch(
// CHECK-NEXT:      func.call @step.launch(
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }

// CHECK-LABEL: func.func private @main.1(
// CHECK-NOT:     scf.while
// CHECK:         func.call @step.launch(
// CHECK-NOT:     func.call
