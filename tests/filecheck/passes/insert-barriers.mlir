// RUN: halfulp-opt %s -p insert-barriers | filecheck %s

// Between a write and a read by other threads; not between two reads.
func.func @write_read(%status: memref<?xi64, 1 : i32>, %y: memref<?xf32, 1 : i32>, %v: f32) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xf32, 3 : i32>
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
  %a = memref.load %slots[%t] : memref<64xf32, 3 : i32>
  %b = memref.load %slots[%t] : memref<64xf32, 3 : i32>
  memref.store %a, %y[%t] : memref<?xf32, 1 : i32>
  func.return
}

// CHECK-LABEL: func.func @write_read
// CHECK:         memref.store %v, %slots[%t]
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    memref.store %a, %y[%t]
// CHECK-NEXT:    func.return

// Before a loop whose threads take different rounds, not inside of it: not all threads would come to it.
func.func @divergent(%status: memref<?xi64, 1 : i32>, %n: index, %v: f32) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xf32, 3 : i32>
  %step = arith.constant 64 : index
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
  scf.for %i = %t to %n step %step {
    %a = memref.load %slots[%i] : memref<64xf32, 3 : i32>
  }
  %first = arith.cmpi eq, %t, %step : index
  scf.if %first {
    memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
  }
  func.return
}

// CHECK-LABEL: func.func @divergent
// CHECK:         memref.store %v, %slots[%t]
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      memref.load
// CHECK-NEXT:    }
// CHECK-NEXT:    %first
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    scf.if %first {
// CHECK-NEXT:      memref.store
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// Around a loop that all threads take alike: what a round reads, the next one overwrites. One barrier in it is enough
// for both ways here; the first round must wait for what stands before.
func.func @rounds(%status: memref<?xi64, 1 : i32>, %n: index, %v: f32) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xf32, 3 : i32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  scf.for %i = %zero to %n step %one {
    memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
    %a = memref.load %slots[%i] : memref<64xf32, 3 : i32>
  }
  func.return
}

// CHECK-LABEL: func.func @rounds
// CHECK:         scf.for
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.load
// CHECK-NEXT:    }

// What rounds do to arguments is their own business if the loop says so; memory of the block is shared by all rounds.
func.func @independent(%status: memref<?xi64, 1 : i32>, %y: memref<?xf32, 1 : i32>, %n: index, %v: f32) attributes {gpu.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  scf.for %i = %zero to %n step %one {
    memref.store %v, %y[%t] : memref<?xf32, 1 : i32>
  } {gpu.independent_rounds}
  scf.for %i = %zero to %n step %one {
    memref.store %v, %y[%t] : memref<?xf32, 1 : i32>
  }
  func.return
}

// CHECK-LABEL: func.func @independent
// CHECK:         scf.for
// CHECK-NEXT:      memref.store
// CHECK-NEXT:    } {gpu.independent_rounds}
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.store

// In a branch that all threads take alike, and after one that only some programs take.
func.func @branches(%status: memref<?xi64, 1 : i32>, %n: index, %c: i1, %v: f32) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xf32, 3 : i32>
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  scf.if %c {
    memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
    %a = memref.load %slots[%n] : memref<64xf32, 3 : i32>
  } else {
    memref.store %v, %slots[%t] : memref<64xf32, 3 : i32>
  }
  %b = memref.load %slots[%n] : memref<64xf32, 3 : i32>
  func.return
}

// CHECK-LABEL: func.func @branches
// CHECK:         scf.if %c {
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.load
// CHECK-NEXT:    } else {
// CHECK-NEXT:      memref.store
// CHECK-NEXT:    }
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    memref.load

// A while loop is left after its test, where the round before it has just been seen.
func.func @while(%status: memref<?xi64, 1 : i32>, %n: index, %v: f32) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xindex, 3 : i32>
  %zero = arith.constant 0 : index
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  scf.while () : () -> () {
    %a = memref.load %slots[%zero] : memref<64xindex, 3 : i32>
    %more = arith.cmpi slt, %a, %n : index
    scf.condition(%more)
  } do {
    memref.store %t, %slots[%t] : memref<64xindex, 3 : i32>
    scf.yield
  }
  memref.store %t, %slots[%t] : memref<64xindex, 3 : i32>
  func.return
}

// CHECK-LABEL: func.func @while
// CHECK:         scf.while
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.load
// CHECK:           scf.condition
// CHECK-NEXT:    } do {
// CHECK-NEXT:      "gpu.barrier"()
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    memref.store

// What is given memory and is no plain load or store counts as a write.
func.func @other_access(%status: memref<?xi64, 1 : i32>, %v: vector<4xf32>, %i: index) attributes {gpu.kernel} {
  %slots = memref.alloca() : memref<64xf32, 3 : i32>
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  vector.store %v, %slots[%t] : memref<64xf32, 3 : i32>, vector<4xf32>
  %a = memref.load %slots[%i] : memref<64xf32, 3 : i32>
  func.return
}

// CHECK-LABEL: func.func @other_access
// CHECK:         vector.store
// CHECK-NEXT:    "gpu.barrier"()
// CHECK-NEXT:    memref.load

// Functions of a CPU are left alone.
func.func @host(%y: memref<?xf32>, %i: index, %v: f32) {
  memref.store %v, %y[%i] : memref<?xf32>
  %a = memref.load %y[%i] : memref<?xf32>
  func.return
}

// CHECK-LABEL: func.func @host
// CHECK:         memref.store
// CHECK-NEXT:    memref.load
