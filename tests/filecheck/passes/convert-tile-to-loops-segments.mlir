// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s

// An entry is cut after the sizes that it sets, since the buffers after them can be made only then. The next segment
// reads such a size back: the memory that it came from may serve another buffer by then. (%1 holds the sizes, %2 is the buffer.)

tile.kernel @fill(%x: !tile.ref<[?], i32, global>, %n: index) grid() axes [] {
  tile.return
}

func.func @main(%x: !tile.ref<[1], i64, global>) {
  %c0 = arith.constant 0 : index
  %block = tile.load %x : !tile.ref<[1], i64, global> -> tensor<1xi64>
  %wide = tile.extract %block[%c0] : tensor<1xi64> -> i64
  %n = tile.cast %wide : i64 -> index
  tile.set_dim "n", %n
  %b = tile.buffer ["n"] : !tile.ref<[?], i32, global>
  tile.launch @fill grid() (%b, %n) : !tile.ref<[?], i32, global>, index
  func.return
}

// CHECK-LABEL: func.func private @main.0(
// CHECK:         %[[WIDE:[0-9]+]] = memref.load %2
// CHECK-NEXT:    %[[N:[0-9]+]] = vector_ext.cast %[[WIDE]] index_cast : i64 to index
// CHECK-NEXT:    %[[WORD:[0-9]+]] = vector_ext.cast %[[N]] index_cast : index to i64
// CHECK-NEXT:    memref.store %[[WORD]], %1
// CHECK-NEXT:    func.return

// CHECK-LABEL: func.func private @main.1(
// CHECK:         %[[WORD:[0-9]+]] = memref.load %1
// CHECK-NEXT:    %[[N:[0-9]+]] = vector_ext.cast %[[WORD]] index_cast : i64 to index
// CHECK:         func.call @fill.launch({{.*}}, %[[N]]) :
