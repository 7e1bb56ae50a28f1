// RUN: halfulp-opt %s -p expand-math --verify-diagnostics | filecheck %s

// CHECK: expand-math: math.exp has no expansion for tensor<16xf80>; cast to f32 or f64 first
tile.kernel @k(%x: !tile.ref<[16], f80, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f80, global> -> tensor<16xf80>
  %e = math.exp %a : tensor<16xf80>
  tile.store %e, %x : tensor<16xf80>, !tile.ref<[16], f80, global>
  tile.return
}
