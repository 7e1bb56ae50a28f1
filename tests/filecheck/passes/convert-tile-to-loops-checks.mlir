// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// A check that fails calls @record_failure with the launch, the program, its own number and its values as i64:
// integers are signed, true is 1. (%0 is the status, %1 the launch.)

tile.kernel @rows(%x: !tile.ref<[?], f32, global>) grid(%i of %n) axes [parallel] {
  %c5 = arith.constant 5 : index
  %ok = tile.cmpi slt %i, %c5 : index -> i1
  %narrow = tile.cast %i : index -> i8
  tile.check %ok, "row"
  tile.check %ok, "row {} of {} is {}" values %i, %narrow, %ok : index, i8, i1
  tile.return
}

// CHECK-LABEL: func.func private @record_failure(
// CHECK-LABEL: func.func private @rows(
// CHECK:         scf.for %[[PROGRAM:[0-9]+]] =
// CHECK:           %[[OK:[0-9]+]] = vector_ext.cmpi slt, %[[PROGRAM]],
// CHECK-NEXT:      %[[NARROW:[0-9]+]] = vector_ext.cast %[[PROGRAM]] index_cast : index to i8
// CHECK-NEXT:      %[[FAILED:[0-9]+]] = arith.xori %[[OK]],
// CHECK-NEXT:      scf.if %[[FAILED]] {
// CHECK-NEXT:        func.call @record_failure(%0, %1, %[[PROGRAM]], %{{[0-9]+}},
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[V0:[0-9]+]] = vector_ext.cast %[[PROGRAM]] index_cast : index to i64
// CHECK-NEXT:      %[[V1:[0-9]+]] = vector_ext.cast %[[NARROW]] extsi : i8 to i64
// CHECK-NEXT:      %[[V2:[0-9]+]] = vector_ext.cast %[[OK]] extui : i1 to i64
// CHECK-NEXT:      %[[AGAIN:[0-9]+]] = arith.xori %[[OK]],
// CHECK-NEXT:      scf.if %[[AGAIN]] {
// CHECK-NEXT:        func.call @record_failure(%0, %1, %[[PROGRAM]], %{{[0-9]+}}, %[[V0]], %[[V1]], %[[V2]],

// In the entry a check, and each launch, run only if nothing has failed before. A launch checks the number of its
// programs.

func.func @main(%x: !tile.ref<[?], f32, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[?], f32, global>
  %c9 = arith.constant 9 : index
  %ok = tile.cmpi slt %n, %c9 : index -> i1
  tile.check %ok, "{} rows" values %n : index
  tile.launch @rows grid(%n) (%x) : !tile.ref<[?], f32, global>
  func.return
}

// CHECK-LABEL: func.func private @rows.launch(
// CHECK:         %[[NEXT:[0-9]+]] = memref.load %0
// CHECK-NEXT:    %[[STILL:[0-9]+]] = vector_ext.cmpi eq, %[[NEXT]],
// CHECK-NEXT:    scf.if %[[STILL]] {
// CHECK-NEXT:      %[[SIZE:[0-9]+]] = vector_ext.cast %2 index_cast : index to i64
// CHECK-NEXT:      %[[PROGRAMS:[0-9]+]] = vector_ext.cast %[[SIZE]] sitofp : i64 to f64
// CHECK-NEXT:      %[[FEW:[0-9]+]] = vector_ext.cmpf ole, %[[PROGRAMS]], %{{[0-9]+}} : f64
// CHECK-NEXT:      scf.if %[[FEW]] {
// CHECK:             func.call @rows(

// CHECK-LABEL: func.func private @main.0(
// CHECK:         %[[WORD:[0-9]+]] = memref.load %0
// CHECK-NEXT:    %[[WELL:[0-9]+]] = vector_ext.cmpi eq, %[[WORD]],
// CHECK-NEXT:    scf.if %[[WELL]] {
// CHECK:           func.call @record_failure(%0,
// CHECK:         func.call @rows.launch(%0,
