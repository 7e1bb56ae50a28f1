// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Each element is one chain over k that starts at acc. Few rows: the right operand is read where it is, eight rows and
// two vectors at a time, and those rows that come next are fetched; the sums stay in memory.

tile.kernel @few(%x: !tile.ref<[2, 16], f32, global>, %w: !tile.ref<[16, 64], f32, global>,
                 %y: !tile.ref<[2, 64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[2, 16], f32, global> -> tensor<2x16xf32>
  %b = tile.load %w : !tile.ref<[16, 64], f32, global> -> tensor<16x64xf32>
  %c = tile.load %y : !tile.ref<[2, 64], f32, global> -> tensor<2x64xf32>
  %r = tile.dot %a, %b, %c fused true : tensor<2x16xf32>, tensor<16x64xf32> -> tensor<2x64xf32>
  tile.store %r, %y : tensor<2x64xf32>, !tile.ref<[2, 64], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @few(
// CHECK-SAME:    memref<?xf32>, %{{[0-9]+}}: index, %{{[0-9]+}}: index, %[[W:[0-9]+]]: memref<?xf32>,
// CHECK:         %[[SUMS:[0-9]+]] = memref.alloca() {{.*}} : memref<192xf32>
// CHECK:         %[[LEFT:[0-9]+]] = memref.alloca()
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %{{[0-9]+}} step %[[EIGHT:[0-9]+]] {
// CHECK:           scf.for
// CHECK-COUNT-16:    vector.load %[[W]][
// CHECK-COUNT-16:    vector_ext.prefetch %[[W]][
// CHECK:             scf.for
// CHECK-COUNT-8:       memref.load %[[LEFT]][
// CHECK:               vector.load %[[SUMS]][
// CHECK-COUNT-8:       math.fma
// CHECK:               vector.store %{{[0-9]+}}, %[[SUMS]][
// CHECK:               vector.load %[[SUMS]][
// CHECK-COUNT-8:       math.fma
// CHECK:               vector.store %{{[0-9]+}}, %[[SUMS]][

// Many rows: bands of 14 rows, panels of two vectors of columns. The right operand is packed once, a band of the left
// one when its turn comes; 28 sums stay in registers over the whole chain.

tile.kernel @many(%x: !tile.ref<[28, 16], bf16, global>, %w: !tile.ref<[16, 64], bf16, global>,
                  %y: !tile.ref<[28, 64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[28, 16], bf16, global> -> tensor<28x16xbf16>
  %b = tile.load %w : !tile.ref<[16, 64], bf16, global> -> tensor<16x64xbf16>
  %c = tile.load %y : !tile.ref<[28, 64], f32, global> -> tensor<28x64xf32>
  %r = tile.dot %a, %b, %c fused false : tensor<28x16xbf16>, tensor<16x64xbf16> -> tensor<28x64xf32>
  tile.store %r, %y : tensor<28x64xf32>, !tile.ref<[28, 64], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @many(
// CHECK:         %[[SUMS:[0-9]+]] = memref.alloca()
// CHECK:         %[[LEFT:[0-9]+]] = memref.alloca()
// CHECK:         %[[PANELS:[0-9]+]] = memref.alloca()
// CHECK:         %[[WIDE:[0-9]+]] = vector_ext.cast %{{[0-9]+}} extf : vector<16xbf16> to vector<16xf32>
// CHECK:         vector.store %[[WIDE]], %[[PANELS]][
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %{{[0-9]+}} step %[[FOURTEEN:[0-9]+]] {
// CHECK:           vector_ext.cast %{{[0-9]+}} extf : vector<16xbf16> to vector<16xf32>
// CHECK:           vector.store %{{[0-9]+}}, %[[LEFT]][
// CHECK:           scf.for
// CHECK-COUNT-28:    vector.load %[[SUMS]][
// CHECK:             scf.for {{.*}} iter_args(%[[SUM:[0-9]+]] =
// CHECK-COUNT-2:       vector.load %[[PANELS]][
// CHECK-NOT:           vector.load
// CHECK:               %[[ONE:[0-9]+]] = memref.load %[[LEFT]][
// CHECK-NEXT:          %[[REPEATED:[0-9]+]] = vector.broadcast %[[ONE]] : f32 to vector<16xf32>
// CHECK-NEXT:          %[[PRODUCT:[0-9]+]] = arith.mulf %[[REPEATED]], %{{[0-9]+}} : vector<16xf32>
// CHECK-NEXT:          arith.addf %[[PRODUCT]], %[[SUM]] : vector<16xf32>
// CHECK:               scf.yield
// CHECK-COUNT-28:    vector.store %{{[0-9]+}}, %[[SUMS]][

// With counts, only so many rows, columns and k take part. Sums that a loop carries stay where they are, and of a last
// band those rows are stored that exist.

tile.kernel @counted(%x: !tile.ref<[28, 16], f32, global>, %w: !tile.ref<[16, 64], f32, global>,
                     %y: !tile.ref<[28, 64], f32, global>, %m: index, %n: index, %k: index) grid() axes [] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %start = arith.constant 0.0 : f32
  %sums = tile.splat %start : f32 -> tensor<28x64xf32>
  %a = tile.load %x : !tile.ref<[28, 16], f32, global> -> tensor<28x16xf32>
  %b = tile.load %w : !tile.ref<[16, 64], f32, global> -> tensor<16x64xf32>
  %r = scf.for %i = %zero to %two step %one iter_args(%acc = %sums) -> (tensor<28x64xf32>) {
    %next = tile.dot %a, %b, %acc counts(%m, %n, %k) fused true : tensor<28x16xf32>, tensor<16x64xf32> -> tensor<28x64xf32>
    scf.yield %next : tensor<28x64xf32>
  }
  tile.store %r, %y : tensor<28x64xf32>, !tile.ref<[28, 64], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @counted(
// CHECK-SAME:    %[[M:[0-9]+]]: index, %[[N:[0-9]+]]: index, %[[K:[0-9]+]]: index)
// CHECK:         %[[SUMS:[0-9]+]] = memref.alloca()
// CHECK:         arith.minsi %[[M]],
// CHECK:         arith.minsi %[[N]],
// CHECK:         arith.minsi %[[K]],
// CHECK-COUNT-2: memref.alloca
// CHECK-NOT:     memref.alloca
// CHECK:         vector.load %[[SUMS]][
// CHECK:         math.fma
// CHECK:         vector.store %{{[0-9]+}}, %[[SUMS]][
// CHECK:         vector_ext.cmpi slt
// CHECK:         scf.if
// CHECK:           vector.store %{{[0-9]+}}, %[[SUMS]][
