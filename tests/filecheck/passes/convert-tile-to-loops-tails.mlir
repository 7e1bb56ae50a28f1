// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Behind the last valid column of a row all elements are what the pad gives. Where that is 0, a lane of the sum that has
// taken it once does not change any more: the loop goes one round of 64 columns beyond the valid ones.

tile.kernel @sum(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [1] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[1], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %b = arith.mulf %a, %a : tensor<4096xf32>
  %s = tile.reduce add %b axis 0 lanes 64 : tensor<4096xf32> -> f32
  %c = tile.splat %s : f32 -> tensor<1xf32>
  tile.store %c, %wy : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @sum(
// CHECK:         %[[VALID:[0-9]+]] = arith.subi
// CHECK:         %[[END:[0-9]+]] = arith.maxsi %[[VALID]], %{{[0-9]+}} : index
// CHECK-NEXT:    %[[TAIL:[0-9]+]] = vector_ext.cmpi slt, %[[END]], %[[SIZE:[0-9]+]] : index
// CHECK-NEXT:    %[[QUIET:[0-9]+]] = scf.if %[[TAIL]] -> (index) {
// CHECK:           %[[LAST:[0-9]+]] = arith.mulf {{.*}} : f32
// CHECK:           %[[SAME:[0-9]+]] = vector_ext.cmpf oeq, %[[LAST]], %{{[0-9]+}} : f32
// CHECK-NEXT:      %[[FROM:[0-9]+]] = vector_ext.select %[[SAME]], %[[END]], %[[SIZE]] : i1, index
// CHECK-NEXT:      scf.yield %[[FROM]] : index
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[SIZE]] : index
// CHECK:         scf.for
// CHECK:         %[[ROUNDS:[0-9]+]] = arith.divui
// CHECK-NEXT:    %[[EVEN:[0-9]+]] = arith.muli %[[ROUNDS]], %[[WIDTH:[0-9]+]] : index
// CHECK-NEXT:    %[[STOP:[0-9]+]] = arith.addi %[[EVEN]], %[[WIDTH]] : index
// CHECK-NEXT:    %[[UPPER:[0-9]+]] = arith.minsi %[[SIZE]], %[[STOP]] : index
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %[[UPPER]]

// Elements that know their column differ behind the end, too.

tile.kernel @places(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [4096] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[4096], f32, global>
  %wy = tile.window %y[%i] blocked [1] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[1], f32, global>
  %a = tile.load %wx : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %k = tile.iota 0 : tensor<4096xi32>
  %f = tile.cast %k : tensor<4096xi32> -> tensor<4096xf32>
  %b = arith.addf %a, %f : tensor<4096xf32>
  %s = tile.reduce add %b axis 0 lanes 64 : tensor<4096xf32> -> f32
  %c = tile.splat %s : f32 -> tensor<1xf32>
  tile.store %c, %wy : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @places(
// CHECK-NOT:     vector_ext.cmpf oeq
// CHECK:         func.return
