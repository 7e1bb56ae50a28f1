// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Whoever runs the code is called back, if there is an address in the status words and no check has failed.

// CHECK-LABEL: func.func private @report_print(%0: memref<?xi64> {halfulp.may_alias}, %1: index, %2: memref<?xi64>) {
// CHECK:         %[[CALLEE:[0-9]+]] = memref.load %0[%{{[0-9]+}}] : memref<?xi64>
// CHECK-NEXT:    %[[WANTED:[0-9]+]] = vector_ext.cmpi ne, %[[CALLEE]], %{{[0-9]+}} : i64
// CHECK-NEXT:    %[[FAILED:[0-9]+]] = memref.load %0[%{{[0-9]+}}] : memref<?xi64>
// CHECK-NEXT:    %[[WELL:[0-9]+]] = vector_ext.cmpi eq, %[[FAILED]], %{{[0-9]+}} : i64
// CHECK-NEXT:    %[[BOTH:[0-9]+]] = arith.andi %[[WANTED]], %[[WELL]] : i1
// CHECK-NEXT:    scf.if %[[BOTH]] {
// CHECK-NEXT:      %[[SITE:[0-9]+]] = vector_ext.cast %1 index_cast : index to i64
// CHECK-NEXT:      %[[POINTER:[0-9]+]] = "memref.extract_aligned_pointer_as_index"(%2)
// CHECK-NEXT:      %[[WORDS:[0-9]+]] = vector_ext.cast %[[POINTER]] index_cast : index to i64
// CHECK-NEXT:      scf_ext.call_address %[[CALLEE]](%[[SITE]], %[[WORDS]])
// CHECK-NEXT:    }

// A block goes to memory, and so does a scalar, a bool as a byte; their addresses are the words. (%0 is the status.)

tile.kernel @rows(%x: !tile.ref<[8], f32, global>, %ok: i1) grid(%i of %n) axes [ordered] {
  tile.print "first" as []
  %0 = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
  tile.print "{} {}" values %0, %ok : tensor<8xf32>, i1 as ["f32", "bool"]
  tile.return
}

// CHECK-LABEL: func.func private @rows(
// CHECK-SAME:      %[[X:[0-9]+]]: memref<?xf32>, %{{[0-9]+}}: index, %[[OK:[0-9]+]]: i1)
// CHECK-DAG:     %[[ZERO:[0-9]+]] = arith.constant 0 : index
// CHECK-DAG:     %[[ONE:[0-9]+]] = arith.constant 1 : index
// CHECK:         func.call @report_print(%0, %[[ZERO]], %{{[0-9]+}})
// CHECK:         %[[BLOCK:[0-9]+]] = memref.alloca()
// CHECK:         vector.load %[[X]]
// CHECK:         vector.store %{{[0-9]+}}, %[[BLOCK]]
// CHECK:         "memref.extract_aligned_pointer_as_index"(%[[BLOCK]])
// CHECK:         %[[SCALAR:[0-9]+]] = memref.alloca(){{.*}}memref<1xi8>
// CHECK:         %[[BYTE:[0-9]+]] = vector_ext.cast %[[OK]] extui : i1 to i8
// CHECK-NEXT:    memref.store %[[BYTE]], %[[SCALAR]]
// CHECK:         func.call @report_print(%0, %[[ONE]], %{{[0-9]+}})

// Of a buffer of the entry, the words are its address and its extents.

func.func @main(%y: !tile.ref<[?], f32, global>) {
  tile.print_tensor %y, "y" as "f32" : !tile.ref<[?], f32, global>
  func.return
}

// CHECK-LABEL: func.func private @main.0(
// CHECK:         %[[SIZE:[0-9]+]] = vector_ext.cast %3 index_cast : index to i64
// CHECK-NEXT:    "memref.extract_aligned_pointer_as_index"(%2)
// CHECK:         memref.store %[[SIZE]], %{{[0-9]+}}
// CHECK:         func.call @report_print(%0,
