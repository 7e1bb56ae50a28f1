// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Each element is one chain over k that starts at acc. A vector of a row of b is read once for all rows of a band, and
// multiplied by each row's element of a, repeated.

tile.kernel @fused(%x: !tile.ref<[16, 16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16, 16], f32, global> -> tensor<16x16xf32>
  %r = tile.dot %a, %a, %a fused true : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %r, %x : tensor<16x16xf32>, !tile.ref<[16, 16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @fused(
// CHECK:         %[[BLOCK:[0-9]+]] = memref.alloca
// CHECK:         memref.alloca
// CHECK:         scf.for {{.*}} iter_args(%[[SUM:[0-9]+]] = %{{[0-9]+}}
// CHECK:           %[[RIGHT:[0-9]+]] = vector.load %[[BLOCK]]
// CHECK:           %[[ONE:[0-9]+]] = memref.load %[[BLOCK]]
// CHECK:           %[[LEFT:[0-9]+]] = vector.broadcast %[[ONE]] : f32 to vector<16xf32>
// CHECK:           math.fma %[[LEFT]], %[[RIGHT]], %[[SUM]] 
// CHECK:           memref.load %[[BLOCK]]
// CHECK-NOT:       vector.load
// CHECK:           scf.yield

tile.kernel @unfused(%x: !tile.ref<[16, 16], bf16, global>, %y: !tile.ref<[16, 16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16, 16], bf16, global> -> tensor<16x16xbf16>
  %c = tile.load %y : !tile.ref<[16, 16], f32, global> -> tensor<16x16xf32>
  %r = tile.dot %a, %a, %c fused false : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  tile.store %r, %y : tensor<16x16xf32>, !tile.ref<[16, 16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @unfused(
// CHECK:         %[[RIGHT:[0-9]+]] = vector_ext.cast %{{[0-9]+}} extf : vector<16xbf16> to vector<16xf32>
// CHECK:         %[[ONE:[0-9]+]] = vector_ext.cast %{{[0-9]+}} extf : bf16 to f32
// CHECK-NEXT:    %[[LEFT:[0-9]+]] = vector.broadcast %[[ONE]] : f32 to vector<16xf32>
// CHECK-NEXT:    %[[PRODUCT:[0-9]+]] = arith.mulf %[[LEFT]], %[[RIGHT]] : vector<16xf32>
// CHECK-NEXT:    arith.addf %[[PRODUCT]], %{{[0-9]+}} : vector<16xf32>
