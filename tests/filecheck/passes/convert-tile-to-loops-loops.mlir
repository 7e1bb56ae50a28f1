// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Loops whose counter could pass the largest index count their rounds instead.

tile.kernel @by_one(%n: index, %x: !tile.ref<[?], i32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (i32) {
    %t = arith.addi %s, %one : i32
    scf.yield %t : i32
  }
  tile.return
}

// CHECK-LABEL: func.func private @by_one(%0: {{.*}}, %4: index, %5: memref<?xi32>,
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %4 step

tile.kernel @by_three(%n: index, %x: !tile.ref<[?], i32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c3 iter_args(%s = %zero) -> (i32) {
    %t = arith.addi %s, %one : i32
    scf.yield %t : i32
  }
  tile.return
}

// CHECK-LABEL: func.func private @by_three(%0: {{.*}}, %4: index, %5: memref<?xi32>,
// CHECK:         %[[GAP:[0-9]+]] = arith.subi %4,
// CHECK:         arith.divui
// CHECK:         %[[ROUNDS:[0-9]+]] = vector_ext.select
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %[[ROUNDS]] step

// Extents are known to be small enough, also after dividing them up.

tile.kernel @by_block(%x: !tile.ref<[?], i32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = tile.dim %x, 0 : !tile.ref<[?], i32, global>
  %m = arith.addi %n, %c63 : index
  %blocks = tile.int_div floordivs %m, %c64 : index
  %r = scf.for %i = %c0 to %blocks step %c3 iter_args(%s = %zero) -> (i32) {
    %t = arith.addi %s, %one : i32
    scf.yield %t : i32
  }
  tile.return
}

// CHECK-LABEL: func.func private @by_block(
// CHECK:         %[[M:[0-9]+]] = arith.addi
// CHECK-NEXT:    %[[BLOCKS:[0-9]+]] = arith.divui %[[M]],
// CHECK-NEXT:    scf.for %{{[0-9]+}} = %{{[0-9]+}} to %[[BLOCKS]] step
