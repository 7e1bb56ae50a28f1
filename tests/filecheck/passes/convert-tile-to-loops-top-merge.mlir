// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// A round first looks whether any candidate reaches the last entry; only then does it find which, and where
// they belong: a few entries stay in registers, and no branch asks.

tile.kernel @top(%x: !tile.ref<[16], f32, global>, %v: !tile.ref<[4], f32, global>, %i: !tile.ref<[4], i32, global>) grid() axes [] {
  %least = arith.constant dense<0xFF800000> : tensor<4xf32>
  %none = arith.constant dense<-1> : tensor<4xi32>
  %a = tile.load %x : !tile.ref<[16], f32, global> -> tensor<16xf32>
  %n = tile.iota 0 : tensor<16xi32>
  %tv, %ti = tile.top_merge %least, %none with %a, %n : tensor<4xf32>, tensor<4xi32>, tensor<16xf32>, tensor<16xi32> -> tensor<4xf32>, tensor<4xi32>
  tile.store %tv, %v : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.store %ti, %i : tensor<4xi32>, !tile.ref<[4], i32, global>
  tile.return
}

// CHECK-LABEL: func.func private @top(
// CHECK:         %[[HIT:[0-9]+]] = vector_ext.cmpf oge, {{.*}} : vector<16xf32>
// CHECK-NEXT:    %[[BITS:[0-9]+]] = vector_ext.bitmask %[[HIT]] : vector<16xi1>
// CHECK:         scf.if
// CHECK:           vector_ext.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK:           vector_ext.cmpf oeq, {{.*}} : vector<16xf32>
// CHECK:           vector_ext.cmpi slt, {{.*}} : vector<16xi32>
// CHECK:           scf.while
// CHECK:             math.cttz
// CHECK:             vector.shuffle {{.*}} [0, 4, 5, 6] : vector<4xf32>
// CHECK:             vector_ext.select {{.*}} : vector<4xi1>, vector<4xi32>
// CHECK-NOT:         scf.while
// CHECK:           vector.store {{.*}} vector<4xf32>
// CHECK-NEXT:      vector.store {{.*}} vector<4xi32>

// More entries than registers hold move one by one.

tile.kernel @many(%x: !tile.ref<[64], f32, global>, %v: !tile.ref<[17], f32, global>, %i: !tile.ref<[17], i32, global>) grid() axes [] {
  %least = arith.constant dense<0xFF800000> : tensor<17xf32>
  %none = arith.constant dense<-1> : tensor<17xi32>
  %a = tile.load %x : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %n = tile.iota 0 : tensor<64xi32>
  %tv, %ti = tile.top_merge %least, %none with %a, %n : tensor<17xf32>, tensor<17xi32>, tensor<64xf32>, tensor<64xi32> -> tensor<17xf32>, tensor<17xi32>
  tile.store %tv, %v : tensor<17xf32>, !tile.ref<[17], f32, global>
  tile.store %ti, %i : tensor<17xi32>, !tile.ref<[17], i32, global>
  tile.return
}

// CHECK-LABEL: func.func private @many(
// CHECK:           scf.while
// CHECK:             math.cttz
// CHECK-NOT:         vector.shuffle
// CHECK:             scf.while
