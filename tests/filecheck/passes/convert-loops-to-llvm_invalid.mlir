// RUN: halfulp-opt %s -p convert-loops-to-llvm --split-input-file --verify-diagnostics | filecheck %s

func.func @not_expanded(%x: f32) {
  %r = math.tanh %x : f32
  func.return
}

// CHECK: convert-loops-to-llvm: math.tanh in function @not_expanded is not in the loops subset; run expand-math first

// -----

func.func @two_dimensions(%m: memref<?x?xf32>, %i: index) {
  %r = memref.load %m[%i, %i] : memref<?x?xf32>
  func.return
}

// CHECK: convert-loops-to-llvm: memrefs must be flat (rank 1, contiguous, in default memory), not memref<?x?xf32>

// -----

func.func @other_type(%x: f80) {
  
  func.return
}

// CHECK: convert-loops-to-llvm: type f80 is not in the loops subset (index, i1 to i64, f16, bf16, f32, f64, their 1-D vectors, and flat memrefs)

// -----

func.func @dynamic_stack(%n: index) {
  %b = memref.alloca(%n) : memref<?xf32>
  func.return
}

// CHECK: convert-loops-to-llvm: memref.alloca in function @dynamic_stack needs a static size, not memref<?xf32>; use an argument for buffers of dynamic size

// -----

func.func @big_stack() {
  %b = memref.alloca() : memref<300000xf32>
  func.return
}

// CHECK: convert-loops-to-llvm: memref.alloca in function @big_stack brings the stack buffers to 1200000 bytes of 1048576 allowed; use an argument instead
