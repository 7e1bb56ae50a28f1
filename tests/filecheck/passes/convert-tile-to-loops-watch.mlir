// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// A loop of an entry function counts its rounds, and calls back when none is left, if it was told whom.
func.func @entry(%p: !tile.ref<[1], i1, global>) {
  %zero = arith.constant 0 : index
  scf.while () : () -> () {
    %block = tile.load %p : !tile.ref<[1], i1, global> -> tensor<1xi1>
    %more = tile.extract %block[%zero] : tensor<1xi1> -> i1
    scf.condition(%more)
  } do {
    scf.yield
  }
  func.return
}

// CHECK:       func.func private @watch_loop(%[[STATUS:[^:]+]]: memref<?xi64>
// CHECK:         %[[CALLEE:[0-9]+]] = memref.load %[[STATUS]]
// CHECK:         scf.if
// CHECK:           %[[LEFT:[0-9]+]] = arith.subi
// CHECK:           memref.store %[[LEFT]], %[[STATUS]]
// CHECK:           scf.if
// CHECK:             scf_ext.call_address %[[CALLEE]]()
// CHECK:       func.func private @entry.0(
// CHECK:         scf.while
// CHECK:           func.call @watch_loop(
// CHECK:           scf.condition
