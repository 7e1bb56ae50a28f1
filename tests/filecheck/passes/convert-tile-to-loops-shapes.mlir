// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Broadcasts, slices and most reshapes only change where the operand is read. What breaks rows up goes through memory.

// CHECK-LABEL: func.func private @read_elsewhere(
// CHECK-NOT:     memref.alloca
// CHECK:         memref.load
// CHECK:         vector.broadcast %{{[0-9]+}} : f32 to vector<8xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
tile.kernel @read_elsewhere(%x: !tile.ref<[4, 16], f32, global>, %y: !tile.ref<[2, 8], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[4, 16], f32, global> -> tensor<4x16xf32>
  %s = tile.slice %a from [1, 8] step [1, 1] : tensor<4x16xf32> -> tensor<1x8xf32>
  %b = tile.broadcast %s : tensor<1x8xf32> -> tensor<2x8xf32>
  %c = tile.slice %a from [0, 3] step [2, 1] : tensor<4x16xf32> -> tensor<2x1xf32>
  %d = tile.broadcast %c : tensor<2x1xf32> -> tensor<2x8xf32>
  %e = arith.addf %d, %b : tensor<2x8xf32>
  tile.store %e, %y : tensor<2x8xf32>, !tile.ref<[2, 8], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @transposed(
// CHECK:         %[[A:[0-9]+]] = memref.alloca() {alignment = 64 : i64} : memref<128xf32>
// CHECK:         vector.store %{{[0-9]+}}, %[[A]]
// CHECK:         %[[T:[0-9]+]] = memref.alloca()
// CHECK:         %[[ELEMENT:[0-9]+]] = memref.load %[[A]]
// CHECK:         memref.store %[[ELEMENT]], %[[T]]
tile.kernel @transposed(%x: !tile.ref<[4, 16], f32, global>, %y: !tile.ref<[16, 4], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[4, 16], f32, global> -> tensor<4x16xf32>
  %t = tile.transpose %a [1, 0] : tensor<4x16xf32> -> tensor<16x4xf32>
  tile.store %t, %y : tensor<16x4xf32>, !tile.ref<[16, 4], f32, global>
  tile.return
}

// A reshape that regroups rows sees the operand's memory under another shape: one block in memory, not two.

// CHECK-LABEL:   func.func private @regrouped(
// CHECK-COUNT-1:   memref.alloca
// CHECK-NOT:       memref.alloca
// CHECK:           func.return
tile.kernel @regrouped(%x: !tile.ref<[4, 6], f32, global>, %y: !tile.ref<[3, 8], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[4, 6], f32, global> -> tensor<4x6xf32>
  %r = tile.reshape %a : tensor<4x6xf32> -> tensor<3x8xf32>
  tile.store %r, %y : tensor<3x8xf32>, !tile.ref<[3, 8], f32, global>
  tile.return
}

// A bool is a byte in memory and a lane of i1 in a vector.

// CHECK-LABEL: func.func private @bools(%0: {{.*}}, %4: memref<?xi8>,
// CHECK:         %[[BYTES:[0-9]+]] = vector.load %4{{.*}} : memref<?xi8>, vector<16xi8>
// CHECK-NEXT:    %[[BITS:[0-9]+]] = vector_ext.cmpi ne, %[[BYTES]], %{{[0-9]+}} : vector<16xi8>
// CHECK-NEXT:    %[[OTHERS:[0-9]+]] = arith.xori %[[BITS]], %{{[0-9]+}} : vector<16xi1>
// CHECK-NEXT:    %[[STORED:[0-9]+]] = vector_ext.cast %[[OTHERS]] extui : vector<16xi1> to vector<16xi8>
// CHECK-NEXT:    vector.store %[[STORED]], %4
tile.kernel @bools(%x: !tile.ref<[16], i1, global>) grid() axes [] {
  %true = arith.constant dense<true> : tensor<16xi1>
  %a = tile.load %x : !tile.ref<[16], i1, global> -> tensor<16xi1>
  %b = arith.xori %a, %true : tensor<16xi1>
  tile.store %b, %x : tensor<16xi1>, !tile.ref<[16], i1, global>
  tile.return
}

// Small steps along a row: vectors are shuffled out of the one or two that hold their elements; the rest goes one by one.

tile.kernel @every_second(%x: !tile.ref<[80], f32, global>, %y: !tile.ref<[40], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[80], f32, global> -> tensor<80xf32>
  %b = tile.slice %a from [79] step [-2] : tensor<80xf32> -> tensor<40xf32>
  tile.store %b, %y : tensor<40xf32>, !tile.ref<[40], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @every_second(
// CHECK:         vector.shuffle %{{[0-9]+}}, %{{[0-9]+}} [30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0]
// CHECK:         memref.load
// CHECK:         memref.store
