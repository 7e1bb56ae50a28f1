// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Blocks are carried in memory. Swapped ones are copied before either is overwritten; scalars are carried as values.

tile.kernel @swap(%x: !tile.ref<[2, 16], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %w0 = tile.window %x[%c0, %c0] blocked [1, 16] squeezed [0] : !tile.ref<[2, 16], f32, global> -> !tile.ref<[16], f32, global>
  %w1 = tile.window %x[%c1, %c0] blocked [1, 16] squeezed [0] : !tile.ref<[2, 16], f32, global> -> !tile.ref<[16], f32, global>
  %a = tile.load %w0 : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %b = tile.load %w1 : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %b, %n = %zero) -> (tensor<16xf32>, tensor<16xf32>, i32) {
    %m = arith.addi %n, %one : i32
    scf.yield %q, %p, %m : tensor<16xf32>, tensor<16xf32>, i32
  }
  tile.store %r#0, %w0 : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @swap(
// CHECK:         %[[P:[0-9]+]] = memref.alloca() {alignment = 64 : i64} : memref<80xf32>
// CHECK-NEXT:    %[[Q:[0-9]+]] = memref.alloca() {alignment = 64 : i64} : memref<80xf32>
// CHECK:         vector.store %{{[0-9]+}}, %[[P]]
// CHECK:         vector.store %{{[0-9]+}}, %[[Q]]
// CHECK-NEXT:    %{{[0-9]+}} = scf.for {{.*}} iter_args(%[[N:[0-9]+]] = %{{[0-9]+}}) -> (i32)
// CHECK-NEXT:      %[[M:[0-9]+]] = arith.addi %[[N]],
// CHECK-NEXT:      %[[OLDQ:[0-9]+]] = memref.alloca()
// CHECK-NEXT:      %[[V0:[0-9]+]] = vector.load %[[Q]]
// CHECK-NEXT:      vector.store %[[V0]], %[[OLDQ]]
// CHECK-NEXT:      %[[OLDP:[0-9]+]] = memref.alloca()
// CHECK-NEXT:      %[[V1:[0-9]+]] = vector.load %[[P]]
// CHECK-NEXT:      vector.store %[[V1]], %[[OLDP]]
// CHECK-NEXT:      %[[V2:[0-9]+]] = vector.load %[[OLDQ]]
// CHECK-NEXT:      vector.store %[[V2]], %[[P]]
// CHECK-NEXT:      %[[V3:[0-9]+]] = vector.load %[[OLDP]]
// CHECK-NEXT:      vector.store %[[V3]], %[[Q]]
// CHECK-NEXT:      scf.yield %[[M]] : i32

// A block computed from its old contents is computed beside them: what spills past a row must not reach the next one
// before it is read.

tile.kernel @accumulate(%x: !tile.ref<[16], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a) -> (tensor<16xf32>) {
    %q = arith.addf %p, %p : tensor<16xf32>
    scf.yield %q : tensor<16xf32>
  }
  tile.store %r, %x : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @accumulate(
// CHECK:         %[[P:[0-9]+]] = memref.alloca()
// CHECK:         vector.store %{{[0-9]+}}, %[[P]]
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %[[NEW:[0-9]+]] = memref.alloca()
// CHECK-NEXT:      %[[OLD:[0-9]+]] = vector.load %[[P]]
// CHECK-NEXT:      %[[SUM:[0-9]+]] = arith.addf %[[OLD]], %[[OLD]] : vector<16xf32>
// CHECK-NEXT:      vector.store %[[SUM]], %[[NEW]]
// CHECK-NEXT:      %[[DONE:[0-9]+]] = vector.load %[[NEW]]
// CHECK-NEXT:      vector.store %[[DONE]], %[[P]]
