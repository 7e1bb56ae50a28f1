// RUN: halfulp-opt %s -p convert-tile-to-gpu | filecheck %s

// Blocks of threads take programs in turn; in each, a thread takes every 256th element.
tile.kernel @double(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %b = arith.addf %a, %a : tensor<4096xf32>
  tile.store %b, %wy : tensor<4096xf32>, !tile.ref<[4096], f32, global>
  tile.return
}

// CHECK:       func.func @kernel_double(%[[STATUS:[0-9]+]]: memref<?xi64, 1 : i32>, %[[SCRATCH:[0-9]+]]: memref<?xi8, 1 : i32>, %[[N:[0-9]+]]: index, %[[X:[0-9]+]]: memref<?xf32, 1 : i32>, %[[XN:[0-9]+]]: index, %[[Y:[0-9]+]]: memref<?xf32, 1 : i32>, %[[YN:[0-9]+]]: index) attributes {gpu.kernel, gpu.threads = 256 : i64, gpu.shared_bytes = 0 : i64, gpu.scratch_bytes = 0 : i64} {
// CHECK:         %[[THREAD:[0-9]+]] = "gpu.thread_id"()
// CHECK:         %[[BLOCK:[0-9]+]] = "gpu.block_id"()
// CHECK:         %[[BLOCKS:[0-9]+]] = "gpu.grid_dim"()
// CHECK:         scf.for %{{.*}} = %[[BLOCK]] to %{{.*}} step %[[BLOCKS]] {
// CHECK:           scf.for %{{.*}} = %[[THREAD]] to %{{.*}} step %{{.*}} {
// CHECK:             memref.load %[[X]]
// CHECK:             arith.addf
// CHECK:             memref.store %{{.*}}, %[[Y]]
// CHECK:         } {gpu.independent_rounds}
// CHECK-NEXT:    func.return

// Axes behind the first ordered one are loops inside of a block of threads.
tile.kernel @sums.of_rows(%x: !tile.ref<[8, 64], f32, global>, %y: !tile.ref<[8], f32, global>) grid(%i of %n, %j of %m) axes [parallel, ordered] {
  %wx = tile.window %x[%i, %j] blocked [1, 64] squeezed [0] : !tile.ref<[8, 64], f32, global> -> !tile.ref<[64], f32, global>
  %a = tile.load %wx : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %s = tile.reduce add %a axis 0 lanes 64 : tensor<64xf32> -> f32
  %b = tile.splat %s : f32 -> tensor<1xf32>
  %wy = tile.window %y[%i] blocked [1] squeezed [] : !tile.ref<[8], f32, global> -> !tile.ref<[1], f32, global>
  tile.store %b, %wy : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// A name as PTX has them. The lanes meet in shared memory first, then in the warp.
// CHECK:       func.func @kernel_sums_of_rows(
// CHECK-SAME:    gpu.threads = 64 : i64
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[SLOTS:[0-9]+]] = memref.alloca() {alignment = 16 : i64} : memref<64xf32, 3 : i32>
// CHECK:             %[[LANE:[0-9]+]] = scf.for {{.*}} iter_args
// CHECK:             memref.store %[[LANE]], %[[SLOTS]]
// CHECK:             %[[LOW:[0-9]+]] = memref.load %[[SLOTS]]
// CHECK:             %[[HIGH:[0-9]+]] = memref.load %[[SLOTS]]
// CHECK-NEXT:        %[[SUM:[0-9]+]] = arith.addf %[[LOW]], %[[HIGH]] : f32
// CHECK-NEXT:        %[[MOVED:[0-9]+]] = gpu_ext.shuffle_down 16 of %[[SUM]] : f32
// CHECK-NEXT:        %[[NEXT:[0-9]+]] = arith.addf %[[SUM]], %[[MOVED]] : f32
// CHECK-NEXT:        gpu_ext.shuffle_down 8 of %[[NEXT]] : f32

// A product: operands and result in memory of the block, the sums as one chain. What is too large for shared memory is
// global memory of the block.
tile.kernel @product(%x: !tile.ref<[64, 128], f32, global>, %y: !tile.ref<[128, 64], f32, global>, %z: !tile.ref<[64, 64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[64, 128], f32, global> -> tensor<64x128xf32>
  %b = tile.load %y : !tile.ref<[128, 64], f32, global> -> tensor<128x64xf32>
  %zero = arith.constant 0.0 : f32
  %acc = tile.splat %zero : f32 -> tensor<64x64xf32>
  %c = tile.dot %a, %b, %acc fused true : tensor<64x128xf32>, tensor<128x64xf32> -> tensor<64x64xf32>
  tile.store %c, %z : tensor<64x64xf32>, !tile.ref<[64, 64], f32, global>
  tile.return
}

// CHECK:       func.func @kernel_product(
// CHECK-SAME:    gpu.shared_bytes = 49152 : i64, gpu.scratch_bytes = 32768 : i64
// CHECK:         %[[A:[0-9]+]] = memref.alloca() {alignment = 16 : i64} : memref<8192xf32, 3 : i32>
// CHECK:         %[[B:[0-9]+]] = gpu_ext.block_scratch 0 of %{{.*}} : memref<?xi8, 1 : i32> -> memref<8192xf32, 1 : i32>
// CHECK:         memref.alloca() {alignment = 16 : i64} : memref<4096xf32, 3 : i32>
// CHECK:           scf.for {{.*}} iter_args
// CHECK:             memref.load %[[B]]
// CHECK:             memref.load %[[A]]
// CHECK:             math.fma
