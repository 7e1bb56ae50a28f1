// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// Where windows lie, and what keeps their loads inside the buffer.

// Rows of a grid: the row of a program is valid if it is below the extent, compared without a sign.
tile.kernel @row(%x: !tile.ref<[?, 16], f32, global>, %y: !tile.ref<[16], f32, global>) grid(%i of %n) axes [ordered] {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %r = arith.muli %i, %c3 : index
  %w = tile.window %x[%r, %c0] blocked [1, 16] squeezed [0] : !tile.ref<[?, 16], f32, global> -> !tile.ref<[16], f32, global>
  %a = tile.load %w : !tile.ref<[16], f32, global> -> tensor<16xf32>
  tile.store %a, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @row(%0: {{.*}}, %5: memref<?xf32>, %6: index, %7: index, %8: memref<?xf32>,
// CHECK:         scf.for
// CHECK-NEXT:    %[[ROW:[0-9]+]] = arith.muli %{{[0-9]+}},
// CHECK-NEXT:    %[[VALID:[0-9]+]] = vector_ext.cmpi ult, %[[ROW]], %6 : index
// CHECK-NEXT:    %[[OFFSET:[0-9]+]] = arith.muli %[[ROW]],
// CHECK-NEXT:    %[[FULL:[0-9]+]] = vector_ext.select %[[VALID]],
// CHECK-NEXT:    scf.for {{.*}} to %[[FULL]]
// CHECK:           vector.load %5

// An index from data may be anything: the start is compared with 0 as well.
tile.kernel @from_data(%x: !tile.ref<[?], f32, global>, %at: index, %y: !tile.ref<[16], f32, global>) grid() axes [] {
  %w = tile.window %x[%at] blocked [16] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[16], f32, global>
  %a = tile.load %w : !tile.ref<[16], f32, global> -> tensor<16xf32>
  tile.store %a, %y : tensor<16xf32>, !tile.ref<[16], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @from_data(%0: {{.*}}, %4: memref<?xf32>, %5: index, %6: index,
// CHECK-DAG:     %[[ZERO:[0-9]+]] = arith.constant 0 : index
// CHECK:         %[[START:[0-9]+]] = arith.muli %6,
// CHECK-NEXT:    %[[AFTER:[0-9]+]] = vector_ext.cmpi sge, %[[START]], %[[ZERO]] : index
// CHECK-NEXT:    %[[ROOM:[0-9]+]] = arith.subi %5, %[[START]] : index

// A window of a window is valid where both are; its limits never leave 0 .. extent, whatever the indices.
tile.kernel @nested(%x: !tile.ref<[?], f32, global>, %at: index, %y: !tile.ref<[4], f32, global>) grid() axes [] {
  %c1 = arith.constant 1 : index
  %outer = tile.window %x[%at] element [10] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[10], f32, global>
  %inner = tile.window %outer[%c1] blocked [4] squeezed [] : !tile.ref<[10], f32, global> -> !tile.ref<[4], f32, global>
  %a = tile.load %inner : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %a, %y : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @nested(%0: {{.*}}, %4: memref<?xf32>, %5: index, %6: index,
// CHECK-DAG:     %[[ZERO:[0-9]+]] = arith.constant 0 : index
// CHECK-DAG:     %[[TEN:[0-9]+]] = arith.constant 10 : index
// CHECK-DAG:     %[[FOUR:[0-9]+]] = arith.constant 4 : index
// CHECK:         %[[END:[0-9]+]] = arith.addi %6, %[[TEN]] : index
// CHECK-NEXT:    %[[NOT_BEFORE:[0-9]+]] = arith.maxsi %[[ZERO]], %6 : index
// CHECK-NEXT:    %[[LOWER:[0-9]+]] = arith.minsi %[[NOT_BEFORE]], %5 : index
// CHECK-NEXT:    %[[NOT_AFTER:[0-9]+]] = arith.minsi %5, %[[END]] : index
// CHECK-NEXT:    %[[LIMIT:[0-9]+]] = arith.maxsi %[[NOT_AFTER]], %[[LOWER]] : index
// CHECK-NEXT:    %[[START:[0-9]+]] = arith.addi %6, %[[FOUR]] : index

// Columns that lie apart are gathered and scattered.
tile.kernel @column(%x: !tile.ref<[8, 8], f32, global>) grid() axes [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %from = tile.window %x[%c0, %c0] blocked [8, 1] squeezed [1] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[8], f32, global>
  %to = tile.window %x[%c0, %c1] blocked [8, 1] squeezed [1] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[8], f32, global>
  %a = tile.load %from : !tile.ref<[8], f32, global> -> tensor<8xf32>
  tile.store %a, %to : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}

// CHECK-LABEL: func.func private @column(
// CHECK:         vector_ext.gather
// CHECK:         vector_ext.scatter
