// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// The programs of a launch are shared among threads along its leading parallel axes; an ordered axis behind them stays
// with its task. Word 7 of the status (%0) is the number of threads, %2 and %3 are the grid's sizes.

tile.kernel @double(%x: !tile.ref<[?, 4096], f32, global>, %y: !tile.ref<[?, 4096], f32, global>)
    grid(%i of %m, %j of %n) axes [parallel, ordered] {
  %xw = tile.window %x[%i, %j] blocked [1, 4096] squeezed [0] : !tile.ref<[?, 4096], f32, global> -> !tile.ref<[4096], f32, global>
  %yw = tile.window %y[%i, %j] blocked [1, 4096] squeezed [0] : !tile.ref<[?, 4096], f32, global> -> !tile.ref<[4096], f32, global>
  %a = tile.load %xw : !tile.ref<[4096], f32, global> -> tensor<4096xf32>
  %b = arith.addf %a, %a : tensor<4096xf32>
  tile.store %b, %yw : tensor<4096xf32>, !tile.ref<[4096], f32, global>
  tile.return
}

func.func @g(%x: !tile.ref<[?, 4096], f32, global>, %y: !tile.ref<[?, 4096], f32, global>) {
  %m = tile.dim %x, 0 : !tile.ref<[?, 4096], f32, global>
  %c3 = arith.constant 3 : index
  tile.launch @double grid(%m, %c3) (%x, %y) : !tile.ref<[?, 4096], f32, global>, !tile.ref<[?, 4096], f32, global>
  func.return
}

// CHECK-LABEL: func.func private @double.launch(
// CHECK:         %[[ELEMENTS:[0-9]+]] = arith.muli %5, %{{[0-9]+}} : index
// CHECK:         %[[PROGRAMS:[0-9]+]] = arith.muli %2, %3 : index
// CHECK-NEXT:    %[[WORD:[0-9]+]] = memref.load %0[
// CHECK-NEXT:    %[[THREADS:[0-9]+]] = vector_ext.cast %[[WORD]] index_cast : i64 to index
// CHECK:         %[[ENOUGH:[0-9]+]] = vector_ext.cmpi sge, %{{[0-9]+}}, %{{[0-9]+}} : index
// CHECK-NEXT:    %[[SEVERAL:[0-9]+]] = vector_ext.cmpi sgt, %[[THREADS]], %
// CHECK-NEXT:    %[[SHARED:[0-9]+]] = arith.andi %[[ENOUGH]], %[[SEVERAL]] : i1
// CHECK-NEXT:    scf.if %[[SHARED]] {
// CHECK:           %[[EVEN:[0-9]+]] = arith.divui
// CHECK-NEXT:      %[[LENGTH:[0-9]+]] = arith.maxsi %[[EVEN]],
// CHECK:           %[[ROUNDS:[0-9]+]] = arith.divui %{{[0-9]+}}, %[[LENGTH]] : index
// CHECK-NEXT:      scf_ext.forall %[[ROUNDS]] threads %[[THREADS]] {
// CHECK-NEXT:      ^bb{{[0-9]+}}(%[[ROUND:[0-9]+]]: index):
// CHECK-NEXT:        %[[FIRST:[0-9]+]] = arith.muli %[[ROUND]], %[[LENGTH]] : index
// CHECK-NEXT:        %[[END:[0-9]+]] = arith.addi %[[FIRST]], %[[LENGTH]] : index
// CHECK-NEXT:        %[[LAST:[0-9]+]] = arith.minsi %[[END]], %2 : index
// CHECK-NEXT:        %[[FROM:[0-9]+]] = arith.muli %[[FIRST]], %3 : index
// CHECK-NEXT:        %[[TO:[0-9]+]] = arith.muli %[[LAST]], %3 : index
// CHECK-NEXT:        func.call @double(%0, %1, %[[FROM]], %[[TO]], %2, %3, %4,
// CHECK-NEXT:        scf_ext.yield
// CHECK:         } else {
// CHECK-NEXT:      func.call @double(%0, %1, %{{[0-9]+}}, %[[PROGRAMS]], %2, %3, %4,
// CHECK-LABEL: func.func private @g.0(
// CHECK-NOT:     scf.if
// CHECK:         func.call @double.launch(%0,

// No axis of this one is parallel in front: one thread runs it.

tile.kernel @ordered(%x: !tile.ref<[?, 4096], f32, global>) grid(%i of %m, %j of %n) axes [ordered, parallel] {
  tile.return
}

// CHECK-LABEL: func.func private @ordered.launch(
// CHECK-NOT:     scf_ext.forall
// CHECK:         func.call @ordered(%0, %1,
