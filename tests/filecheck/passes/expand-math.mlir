// RUN: halfulp-opt %s -p expand-math | filecheck %s
// RUN: halfulp-opt %s -p 'expand-math{only=log}' | filecheck %s --check-prefix=ONLY
// RUN: halfulp-opt %s -p 'expand-math{scale=true}' | filecheck %s --check-prefix=SCALE

// Elementary functions of blocks and scalars become our own expansions; what is exact or correctly rounded stays.

tile.kernel @functions(%x: !tile.ref<[16], f32, global>, %s: f64) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %e = math.exp %a : tensor<16xf32>
  %r = math.sqrt %e : tensor<16xf32>
  %f = math.floor %r : tensor<16xf32>
  tile.store %f, %x : tensor<16xf32>, !tile.ref<[16], f32, global>
  %l = math.log %s : f64
  tile.return
}

// CHECK-LABEL: tile.kernel @functions
// CHECK-NOT:     math.exp
// CHECK:         math.fma {{.*}} halfulp.expansion = "exp"{{.*}} : tensor<16xf32>
// CHECK-NOT:     math.exp
// CHECK:         math.sqrt %{{[0-9a-z]+}} : tensor<16xf32>
// CHECK-NEXT:    math.floor %{{[0-9a-z]+}} : tensor<16xf32>
// CHECK-NOT:     math.log
// CHECK:         math.fma {{.*}} halfulp.expansion = "log"{{.*}} : f64
// CHECK-NOT:     math.log
// CHECK:         tile.return

// ONLY-LABEL: tile.kernel @functions
// ONLY:         math.exp
// ONLY-NOT:     math.log
// ONLY:         tile.return

// SCALE-LABEL: tile.kernel @functions
// SCALE:         math.fma {{.*}} halfulp.expansion = "exp"{{.*}} : tensor<16xf32>
// SCALE:         tile.scale %{{[0-9a-z]+}}, %{{[0-9a-z]+}} : tensor<16xf32>
// SCALE-NEXT:    math.sqrt
