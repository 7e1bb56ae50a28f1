// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// A load is a snapshot. It is copied where a store may change what it read before its last use, and only there.

// CHECK-LABEL: func.func private @same_place(
// CHECK-NOT:     memref.alloca
// CHECK:         %[[A:[0-9]+]] = vector.load
// CHECK-NEXT:    %[[B:[0-9]+]] = arith.addf %[[A]], %[[A]]
// CHECK-NEXT:    vector.store %[[B]]
tile.kernel @same_place(%x: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %b = arith.addf %a, %a : tensor<16xf32>
  tile.store %b, %x : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @other_buffer(
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
tile.kernel @other_buffer(%x: !tile.ref<[16], f32, global>, %y: !tile.ref<[16], f32, global>, %z: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  tile.store %a, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.store %a, %z : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @used_later(
// CHECK:         %[[COPY:[0-9]+]] = memref.alloca
// CHECK-NEXT:    %[[A:[0-9]+]] = vector.load
// CHECK-NEXT:    vector.store %[[A]], %[[COPY]]
// CHECK:         vector.load %[[COPY]]
// CHECK:         vector.load %[[COPY]]
tile.kernel @used_later(%x: !tile.ref<[16], f32, global>, %y: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %b = arith.addf %a, %a : tensor<16xf32>
  tile.store %b, %x : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.store %a, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @shifted(
// CHECK:         memref.alloca
tile.kernel @shifted(%x: !tile.ref<[40], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %from = tile.window %x[%c0] element [32] squeezed [] : !tile.ref<[40], f32, global> -> !tile.ref<[32], f32, global>
  %to = tile.window %x[%c1] element [32] squeezed [] : !tile.ref<[40], f32, global> -> !tile.ref<[32], f32, global>
  %a = tile.load %from : !tile.ref<[32], f32, global> -> tensor<32xf32>
  tile.store %a, %to : tensor<32xf32>, !tile.ref<[32], f32, global>
  tile.return
}

// The condition of a while loop runs again after the store in its body.

// CHECK-LABEL: func.func private @around(
// CHECK:         memref.alloca
// CHECK:         scf.while
tile.kernel @around(%x: !tile.ref<[16], f32, global>, %y: !tile.ref<[16], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %n = scf.while (%i = %c0) : (index) -> index {
    tile.store %a, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
    %more = tile.cmpi slt %i, %c3 : index -> i1
    scf.condition(%more) %i : index
  } do {
  ^bb0(%j: index):
    tile.store %zero, %x : tensor<16xf32>, !tile.ref<[16], f32, global>
    %k = arith.addi %j, %c1 : index
    scf.yield %k : index
  }
  tile.return
}
