// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @round(%rounds: index, %threads: index) {
  scf_ext.forall %rounds threads %threads {
    scf_ext.yield
  }
  func.return
}

// CHECK: scf_ext.forall: the body takes one index, its round, or two, the thread behind it

// -----

func.func @end(%rounds: index, %threads: index) {
  scf_ext.forall %rounds threads %threads {
  ^bb0(%round: index):
    tile.return
  }
  func.return
}

// CHECK: scf_ext.forall: the body must end in scf_ext.yield

// -----

func.func @word(%m: memref<?xf32>, %i: index) {
  scf_ext.critical %m[%i] : memref<?xf32> {
    scf_ext.yield
  }
  func.return
}

// CHECK: scf_ext.critical: the word lies in flat memory of i64, not memref<?xf32>
