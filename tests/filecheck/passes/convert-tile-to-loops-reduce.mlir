// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=256}' | filecheck %s --check-prefix=WIDTH256
// RUN: halfulp-opt %s -p 'convert-tile-to-loops{vector_bits=128}' | filecheck %s --check-prefix=WIDTH128

// The 64 lanes of order R are 4, 8 or 16 vectors that start at -0.0; pairs of vectors meet first, then halves of one.

tile.kernel @sum(%x: !tile.ref<[128], f32, global>, %y: !tile.ref<[1], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[128], f32, global> -> tensor<128xf32>
  %s = tile.reduce add %a axis 0 lanes 64 : tensor<128xf32> -> f32
  %b = tile.splat %s : f32 -> tensor<1xf32>
  tile.store %b, %y : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK-LABEL:   func.func private @sum(
// CHECK:           %[[START:[0-9]+]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK:           %[[A:[0-9]+]], %[[B:[0-9]+]], %[[C:[0-9]+]], %[[D:[0-9]+]] = scf.for {{.*}} = %[[START]], {{.*}} = %[[START]], {{.*}} = %[[START]], {{.*}} = %[[START]])
// CHECK-COUNT-4:     arith.addf {{.*}} : vector<16xf32>
// CHECK:             scf.yield
// CHECK:           %[[P:[0-9]+]] = arith.addf %[[A]], %[[C]] : vector<16xf32>
// CHECK-NEXT:      %[[Q:[0-9]+]] = arith.addf %[[B]], %[[D]] : vector<16xf32>
// CHECK-NEXT:      %[[V:[0-9]+]] = arith.addf %[[P]], %[[Q]] : vector<16xf32>
// CHECK-NEXT:      %[[LOW:[0-9]+]] = vector.shuffle %[[V]], %[[V]] [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
// CHECK-NEXT:      %[[HIGH:[0-9]+]] = vector.shuffle %[[V]], %[[V]] [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
// CHECK-NEXT:      arith.addf %[[LOW]], %[[HIGH]] : vector<8xf32>

// WIDTH256-LABEL:   func.func private @sum(
// WIDTH256:           scf.for
// WIDTH256:           scf.for
// WIDTH256-COUNT-8:     arith.addf {{.*}} : vector<8xf32>
// WIDTH256-NOT:         arith.addf
// WIDTH256:             scf.yield

// WIDTH128-LABEL:    func.func private @sum(
// WIDTH128:            scf.for
// WIDTH128:            scf.for
// WIDTH128-COUNT-16:     arith.addf {{.*}} : vector<4xf32>
// WIDTH128-NOT:          arith.addf
// WIDTH128:              scf.yield

// Above 4096 elements an outer loop joins the results of chunks; lanes that start at an infinity cannot have ninf.

tile.kernel @chunks(%x: !tile.ref<[5000], f32, global>, %y: !tile.ref<[1], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[5000], f32, global> -> tensor<5000xf32>
  %s = tile.reduce maximum %a axis 0 lanes 64 fastmath<nnan,ninf,nsz> : tensor<5000xf32> -> f32
  %b = tile.splat %s : f32 -> tensor<1xf32>
  tile.store %b, %y : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @chunks(
// CHECK-DAG:     %[[SIZE:[0-9]+]] = arith.constant 5000 : index
// CHECK-DAG:     %[[CHUNK:[0-9]+]] = arith.constant 4096 : index
// CHECK-DAG:     %[[LEAST:[0-9]+]] = arith.constant 0xff800000 : f32
// CHECK:         scf.for {{.*}} to %[[SIZE]] step %[[CHUNK]] iter_args(%[[TOTAL:[0-9]+]] = %[[LEAST]])
// CHECK:           arith.maximumf {{.*}} fastmath<nsz> : vector<16xf32>
// CHECK:           %[[PART:[0-9]+]] = arith.maximumf {{.*}} fastmath<nsz> : f32
// CHECK-NEXT:      %[[NEXT:[0-9]+]] = arith.maximumf %[[TOTAL]], %[[PART]] fastmath<nsz> : f32
// CHECK-NEXT:      scf.yield %[[NEXT]] : f32

// Along another axis than the last: a vector of columns, one row after the other.

tile.kernel @rows(%x: !tile.ref<[3, 16], f32, global>, %y: !tile.ref<[16], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[3, 16], f32, global> -> tensor<3x16xf32>
  %s = tile.reduce add %a axis 0 lanes 1 : tensor<3x16xf32> -> tensor<16xf32>
  tile.store %s, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @rows(
// CHECK:         %[[S:[0-9]+]] = scf.for %[[K:[0-9]+]] = {{.*}} iter_args(%[[ACC:[0-9]+]] =
// CHECK:           %[[ROW:[0-9]+]] = arith.muli %[[K]],
// CHECK:           arith.addf %[[ACC]], %{{[0-9]+}} : vector<16xf32>
// CHECK:         vector.store %[[S]], %[[OUT:[0-9]+]][
// CHECK:         vector.load %[[OUT]]
