// RUN: halfulp-opt %s -p convert-tile-to-loops --split-input-file --verify-diagnostics | filecheck %s
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=100}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=BITS

// BITS: convert-tile-to-loops: vector-bits must be one of (128, 256, 512), not 100

// CHECK: tile.reduce: lanes must be 1 along an axis that is not the last, not 64
tile.kernel @lanes(%x: !tile.ref<[4, 4], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[4, 4], f32, global> -> tensor<4x4xf32>
  %s = tile.reduce add %a axis 0 lanes 64 : tensor<4x4xf32> -> tensor<4xf32>
  tile.return
}

// -----

// CHECK: scf.for: the step must be positive, not -1
tile.kernel @step(%n: index) grid() axes [] {
  %c0 = arith.constant 0 : index
  %step = arith.constant -1 : index
  scf.for %i = %n to %c0 step %step {
  }
  tile.return
}

// -----

// CHECK: tile.kernel @large: its blocks take 80000256 bytes of memory in each thread, but 67108864 is the most; use smaller blocks
tile.kernel @large(%x: !tile.ref<[20000000], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[20000000], f32, global> -> tensor<20000000xf32>
  %b = tile.slice %a from [19999999] step [-1] : tensor<20000000xf32> -> tensor<1xf32>
  tile.return
}

// -----

// CHECK: convert-tile-to-loops: cannot lower scf.index_switch
tile.kernel @switch(%n: index) grid() axes [] {
  scf.index_switch %n
  default {
    scf.yield
  }
  tile.return
}

// -----

// CHECK: tile.launch @k: the kernel takes 1 grid sizes and (!tile.ref<[8], f32, global>), not 0 and (!tile.ref<[?], f32, global>)
tile.kernel @k(%x: !tile.ref<[8], f32, global>) grid(%i of %n) axes [ordered] {
  tile.return
}
func.func @main(%x: !tile.ref<[?], f32, global>) {
  tile.launch @k grid() (%x) : !tile.ref<[?], f32, global>
  func.return
}

// -----

// CHECK: tile.launch @k: arguments 0 and 1 are the same buffer, and the kernel writes to it; pass it once
tile.kernel @k(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %w = tile.window %y[%c0] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  tile.store %zero, %w : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?, 4], f32, global>) {
  %f = tile.flatten %x : !tile.ref<[?, 4], f32, global> -> !tile.ref<[?], f32, global>
  %g = tile.flatten %x : !tile.ref<[?, 4], f32, global> -> !tile.ref<[?], f32, global>
  tile.launch @k grid() (%f, %g) : !tile.ref<[?], f32, global>, !tile.ref<[?], f32, global>
  func.return
}

// -----

// CHECK: tile.launch @k: argument 0 is a window, but a kernel takes whole buffers; take the window inside the kernel
tile.kernel @k(%x: !tile.ref<[8], f32, global>) grid() axes [] {
  tile.return
}
func.func @main(%x: !tile.ref<[?], f32, global>) {
  %c0 = arith.constant 0 : index
  %w = tile.window %x[%c0] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  tile.launch @k grid() (%w) : !tile.ref<[8], f32, global>
  func.return
}

// -----

// CHECK: tile.launch @kernal: the module has no kernel of that name; did you mean 'kernel'?
tile.kernel @kernel() grid() axes [] {
  tile.return
}
func.func @main(%x: !tile.ref<[?], f32, global>) {
  tile.launch @kernal grid() () :
  func.return
}

// -----

// CHECK: tile.store: stands in a kernel, not in the entry function @main; launch a kernel that writes
func.func @main(%x: !tile.ref<[8], f32, global>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  tile.store %zero, %x : tensor<8xf32>, !tile.ref<[8], f32, global>
  func.return
}

// -----

// CHECK: tile.set_dim "n": stands in a branch or a loop of the entry function @main, whose buffers have their sizes before it runs; move it out
func.func @main(%x: !tile.ref<[?], f32, global>, %p: i1) {
  %zero = arith.constant 0 : index
  scf.if %p {
    tile.set_dim "n", %zero
  }
  func.return
}
