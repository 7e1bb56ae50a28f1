// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=256}' | filecheck %s --check-prefix=WIDTH256
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=128}' | filecheck %s --check-prefix=WIDTH128

// Two loops read a block of 4096 elements: the second one fetches the block behind it, each line of 64 bytes once.
// Only whole vectors do, not the masked ones.

tile.kernel @twice(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %m = tile.reduce maximum %a axis 0 lanes 64 : tensor<4096xf32> -> f32
  %s = tile.splat %m : f32 -> tensor<4096xf32>
  %d = arith.subf %a, %s : tensor<4096xf32>
  tile.store %d, %wy : tensor<4096xf32>, !tile.ref<[4096], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @twice(
// CHECK:         %[[DISTANCE:[0-9]+]] = arith.constant 4096 : index
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         arith.maximumf
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         %[[AHEAD:[0-9]+]] = arith.addi %[[AT:[0-9]+]], %[[DISTANCE]] : index
// CHECK-NEXT:    vector_ext.prefetch %[[X:[0-9]+]][%[[AHEAD]]] : memref<?xf32>
// CHECK-NEXT:    vector.load %[[X]][%[[AT]]] : memref<?xf32>, vector<16xf32>
// CHECK-COUNT-3: vector_ext.prefetch
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return

// WIDTH256-LABEL:   func.func private @twice(
// WIDTH256-COUNT-2:   vector_ext.prefetch
// WIDTH256-NOT:       vector_ext.prefetch
// WIDTH256:           func.return

// WIDTH128-LABEL:   func.func private @twice(
// WIDTH128-COUNT-1:   vector_ext.prefetch
// WIDTH128-NOT:       vector_ext.prefetch
// WIDTH128:           func.return

// A block that one loop reads: the CPU itself runs ahead of it.

tile.kernel @once(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %d = arith.addf %a, %a : tensor<4096xf32>
  tile.store %d, %wy : tensor<4096xf32>, !tile.ref<[4096], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @once(
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return

// A small block is over before memory answers.

tile.kernel @small(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [512] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[512], f32, global>
  %wy = tile.window %y[%i] blocked [512] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[512], f32, global>
  %a = tile.load %wx : !tile.ref<[512], f32, global> -> tensor<512xf32>
  %m = tile.reduce maximum %a axis 0 lanes 64 : tensor<512xf32> -> f32
  %s = tile.splat %m : f32 -> tensor<512xf32>
  %d = arith.subf %a, %s : tensor<512xf32>
  tile.store %d, %wy : tensor<512xf32>, !tile.ref<[512], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @small(
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return

// Two of so large a block do not stay in the second cache.

tile.kernel @large(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [65536] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[65536], f32, global>
  %wy = tile.window %y[%i] blocked [65536] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[65536], f32, global>
  %a = tile.load %wx : !tile.ref<[65536], f32, global> -> tensor<65536xf32>
  %m = tile.reduce maximum %a axis 0 lanes 64 : tensor<65536xf32> -> f32
  %s = tile.splat %m : f32 -> tensor<65536xf32>
  %d = arith.subf %a, %s : tensor<65536xf32>
  tile.store %d, %wy : tensor<65536xf32>, !tile.ref<[65536], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @large(
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return

// All programs read the same block: what is behind it is not read.

tile.kernel @fixed(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %c0 = arith.constant 0 : index
  %wx = tile.window %x[%c0] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %m = tile.reduce maximum %a axis 0 lanes 64 : tensor<4096xf32> -> f32
  %s = tile.splat %m : f32 -> tensor<4096xf32>
  %d = arith.subf %a, %s : tensor<4096xf32>
  tile.store %d, %wy : tensor<4096xf32>, !tile.ref<[4096], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @fixed(
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return

// Chunks of one row in a loop: the place of the next one follows from the loop's counter, however it is computed.

tile.kernel @chunks(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : i32
  %n = tile.dim %y, 0 : !tile.ref<[?], f32, global>
  scf.for %i = %c0 to %n step %c1 {
    %narrow = tile.cast %i : index -> i32
    %first = arith.muli %narrow, %c4096 : i32
    %at = tile.cast %first : i32 -> index
    %wx = tile.window %x[%at] element [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
    %wy = tile.window %y[%i] blocked [1] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[1], f32, global>
    %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
    %m = tile.reduce maximum %a axis 0 lanes 64 : tensor<4096xf32> -> f32
    %s = tile.splat %m : f32 -> tensor<4096xf32>
    %d = arith.subf %a, %s : tensor<4096xf32>
    %t = tile.reduce add %d axis 0 lanes 64 : tensor<4096xf32> -> f32
    %b = tile.splat %t : f32 -> tensor<1xf32>
    tile.store %b, %wy : tensor<1xf32>, !tile.ref<[1], f32, global>
  }
  tile.return
}

// CHECK-LABEL: func.func private @chunks(
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         arith.maximumf
// CHECK-COUNT-4: vector_ext.prefetch
// CHECK-NOT:     vector_ext.prefetch
// CHECK:         func.return
