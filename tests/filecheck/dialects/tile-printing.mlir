// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

tile.kernel @rows(%x: !tile.ref<[8], f32, global>) grid(%i of %n) axes [ordered] {
  %0 = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
  tile.print "here" as []
  tile.print "{}: {} \\u20ac" values %i, %0 : index, tensor<8xf32> as ["i64", "f32"]
  tile.return
}

// CHECK:         tile.print "here" as []
// CHECK-NEXT:    tile.print "{}: {} \\u20ac" values %i, %0 : index, tensor<8xf32> as ["i64", "f32"]

func.func @main(%x: !tile.ref<[?, 8], i32, global>, %y: !tile.ref<[1], bf16, global>) {
  tile.print_tensor %x, "x" as "ui32" : !tile.ref<[?, 8], i32, global>
  tile.print_tensor %y, "y" as "bf16" scalar : !tile.ref<[1], bf16, global>
  func.return
}

// CHECK:         tile.print_tensor %x, "x" as "ui32" : !tile.ref<[?, 8], i32, global>
// CHECK-NEXT:    tile.print_tensor %y, "y" as "bf16" scalar : !tile.ref<[1], bf16, global>

// GENERIC:       "tile.print_tensor"(%y) <{label = "y", dtype = "bf16", scalar}>
