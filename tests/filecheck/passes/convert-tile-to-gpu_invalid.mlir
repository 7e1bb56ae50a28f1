// RUN: halfulp-opt %s -p convert-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s

tile.kernel @shows(%x: !tile.ref<[8], f32, global>) grid(%i of %n) axes [ordered] {
  tile.print "program {}" values %i : index as ["i64"]
  tile.return
}

// CHECK: tile.print: kernel @shows prints, which it cannot do on a GPU; run it on the CPU

// -----

tile.kernel @large(%x: !tile.ref<[6000000, 2], f32, global>, %y: !tile.ref<[2, 6000000], f32, global>, %z: !tile.ref<[2, 2], f32, global>) grid() axes [] {
  %a = tile.load %y : !tile.ref<[2, 6000000], f32, global> -> tensor<2x6000000xf32>
  %b = tile.load %x : !tile.ref<[6000000, 2], f32, global> -> tensor<6000000x2xf32>
  %zero = arith.constant 0.0 : f32
  %acc = tile.splat %zero : f32 -> tensor<2x2xf32>
  %c = tile.dot %a, %b, %acc fused true : tensor<2x6000000xf32>, tensor<6000000x2xf32> -> tensor<2x2xf32>
  tile.store %c, %z : tensor<2x2xf32>, !tile.ref<[2, 2], f32, global>
  tile.return
}

// CHECK: tile.kernel @large: its blocks take 96000000 bytes of memory, but 67108864 is the most; use smaller blocks

// -----

tile.kernel @outer(%x: !tile.ref<[4, 8], f32, global>, %y: !tile.ref<[8], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[4, 8], f32, global> -> tensor<4x8xf32>
  %b = tile.reduce add %a axis 0 lanes 4 : tensor<4x8xf32> -> tensor<8xf32>
  tile.store %b, %y : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}

// CHECK: tile.reduce: lanes must be 1 along an axis that is not the last, not 4
