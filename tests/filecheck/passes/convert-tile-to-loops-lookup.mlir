// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// A lookup is computed where it is used, with the lanes of whoever wants it; of scalars it is one of scalars.

// CHECK-LABEL: func.func private @lookups(
// CHECK:         vector_ext.lookup %{{[0-9a-z]+}} in dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32> : i32 -> f32
// CHECK-NOT:     memref.alloca
// CHECK:         %[[INDEX:[0-9]+]] = vector.load {{.*}} : memref<?xi32>, vector<16xi32>
// CHECK:         %[[ENTRY:[0-9]+]] = vector_ext.lookup %[[INDEX]] in dense<[5.000000e-01, 7.000000e-01, 3.000000e+00, 4.000000e+00]> : tensor<4xf32> : vector<16xi32> -> vector<16xf32>
// CHECK:         arith.mulf %[[ENTRY]], %{{[0-9]+}} : vector<16xf32>
tile.kernel @lookups(%x: !tile.ref<[16], i32, global>, %y: !tile.ref<[16], f32, global>, %n: i32) grid() axes [] {
  %s = tile.lookup %n in dense<[1.0, -2.5]> : tensor<2xf32> : i32 -> f32
  %b = tile.splat %s : f32 -> tensor<16xf32>
  %i = tile.load %x : !tile.ref<[16], i32, global> -> tensor<16xi32>
  %e = tile.lookup %i in dense<[0.5, 0.7, 3.0, 4.0]> : tensor<4xf32> : tensor<16xi32> -> tensor<16xf32>
  %p = arith.mulf %e, %b : tensor<16xf32>
  tile.store %p, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}
