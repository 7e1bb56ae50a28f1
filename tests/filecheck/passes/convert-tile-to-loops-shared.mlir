// RUN: halfulp-opt %s -p "expand-math,convert-tile-to-loops" | filecheck %s

// A block that two loops want is computed once and stored if that costs much, and twice if it does not.

// CHECK-LABEL:   func.func private @expensive(
// CHECK:           %[[E:[0-9]+]] = memref.alloca
// CHECK:           vector.store %{{[0-9]+}}, %[[E]]
// CHECK:           %[[ONE:[0-9]+]] = vector.load %[[E]]
// CHECK-NEXT:      vector.store %[[ONE]],
// CHECK-NEXT:      %[[TWO:[0-9]+]] = vector.load %[[E]]
// CHECK-NEXT:      vector.store %[[TWO]],
// CHECK-LABEL:   func.func private @cheap(
// CHECK-NOT:       memref.alloca
// CHECK-COUNT-2:   arith.addf {{.*}} : vector<16xf32>
// CHECK:           func.return

tile.kernel @expensive(%x: !tile.ref<[16], f32, global>, %y: !tile.ref<[16], f32, global>, %z: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %e = math.exp %a : tensor<16xf32>
  tile.store %e, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.store %e, %z : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

tile.kernel @cheap(%x: !tile.ref<[16], f32, global>, %y: !tile.ref<[16], f32, global>, %z: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %e = arith.addf %a, %a : tensor<16xf32>
  tile.store %e, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.store %e, %z : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}
