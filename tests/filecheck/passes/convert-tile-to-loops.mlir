// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=256}' | filecheck %s --check-prefix=WIDTH256
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=128}' | filecheck %s --check-prefix=WIDTH128

// A block of 80 elements: a round of four vectors as long as both windows are valid, then masked vectors one by one.
// A vector with no valid lane is masked off at the start of the buffer: behind its end there may be no page.

tile.kernel @double(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %wx = tile.window %x[%i] blocked [80] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[80], f32, global>
  %wy = tile.window %y[%i] blocked [80] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[80], f32, global>
  %a = tile.load %wx : !tile.ref<[80], f32, global> -> tensor<80xf32>
  %b = arith.addf %a, %a : tensor<80xf32>
  tile.store %b, %wy : tensor<80xf32>, !tile.ref<[80], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @double(
// CHECK:         scf.for %[[PROGRAM:[0-9]+]] =
// CHECK-NEXT:      %[[X:[0-9]+]] = arith.muli %[[PROGRAM]],
// CHECK-NEXT:      %[[Y:[0-9]+]] = arith.muli %[[PROGRAM]],
// CHECK:           scf.for %[[COLUMN:[0-9]+]] =
// CHECK:             %[[AT:[0-9]+]] = arith.addi %[[X]], %[[COLUMN]] : index
// CHECK-NEXT:        %[[A:[0-9]+]] = vector.load %{{[0-9]+}}[%[[AT]]] : memref<?xf32>, vector<16xf32>
// CHECK-NEXT:        %[[B:[0-9]+]] = arith.addf %[[A]], %[[A]] : vector<16xf32>
// CHECK-NEXT:        %[[TO:[0-9]+]] = arith.addi %[[Y]], %[[COLUMN]] : index
// CHECK-NEXT:        vector.store %[[B]], %{{[0-9]+}}[%[[TO]]] : memref<?xf32>, vector<16xf32>
// CHECK-COUNT-3:     vector.load
// CHECK-NOT:         vector.load
// CHECK:           scf.for
// CHECK:             %[[FROM:[0-9]+]] = vector_ext.select %{{[0-9]+}}, %{{[0-9]+}}, %[[ZERO:[0-9]+]] : i1, index
// CHECK-NEXT:        vector.maskedload %{{[0-9]+}}[%[[FROM]]], {{.*}} : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK:             %[[INTO:[0-9]+]] = vector_ext.select %{{[0-9]+}}, %{{[0-9]+}}, %[[ZERO]] : i1, index
// CHECK-NEXT:        vector.maskedstore %{{[0-9]+}}[%[[INTO]]], {{.*}} : memref<?xf32>, vector<16xi1>, vector<16xf32>
// CHECK-NOT:         vector.maskedload
// CHECK:         func.return

// WIDTH256-LABEL:   func.func private @double(
// WIDTH256-COUNT-4:   vector.load {{.*}} vector<8xf32>
// WIDTH256-NOT:       vector.load
// WIDTH256:           vector.maskedload {{.*}} into vector<8xf32>

// WIDTH128-LABEL:   func.func private @double(
// WIDTH128-COUNT-4:   vector.load {{.*}} vector<4xf32>
// WIDTH128-NOT:       vector.load
// WIDTH128:           vector.maskedload {{.*}} into vector<4xf32>
