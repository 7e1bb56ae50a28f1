// RUN: halfulp-opt %s -p deduplicate-kernels | filecheck %s

// @b is @a under another name; @c adds where they multiply.
// CHECK:     tile.kernel @a
// CHECK-NOT: tile.kernel @b
// CHECK:     tile.kernel @c
// CHECK:     tile.launch @a
// CHECK:     tile.launch @a
// CHECK:     tile.launch @c
tile.kernel @a(%x: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %w = tile.window %x[%i] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  %v = tile.load %w : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %r = arith.mulf %v, %v : tensor<8xf32>
  tile.store %r, %w : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}
tile.kernel @b(%x: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %w = tile.window %x[%i] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  %v = tile.load %w : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %r = arith.mulf %v, %v : tensor<8xf32>
  tile.store %r, %w : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}
tile.kernel @c(%x: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %w = tile.window %x[%i] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  %v = tile.load %w : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %r = arith.addf %v, %v : tensor<8xf32>
  tile.store %r, %w : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?], f32, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[?], f32, global>
  tile.launch @a grid(%n) (%x) : !tile.ref<[?], f32, global>
  tile.launch @b grid(%n) (%x) : !tile.ref<[?], f32, global>
  tile.launch @c grid(%n) (%x) : !tile.ref<[?], f32, global>
  func.return
}
