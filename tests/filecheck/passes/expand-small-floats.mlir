// RUN: halfulp-opt %s -p expand-small-floats | filecheck %s

func.func @rounded_after_every_op(%x: tensor<8xbf16>, %y: tensor<8xbf16>, %h: f16) -> (tensor<8xbf16>, f16, tensor<8xbf16>) {
  %p = arith.mulf %x, %y fastmath<nsz> : tensor<8xbf16>
  %s = arith.addf %p, %y : tensor<8xbf16>
  %r = math.sqrt %h : f16
  %e = math.exp %x {halfulp.upper_bounded} : tensor<8xbf16>
  func.return %s, %r, %e : tensor<8xbf16>, f16, tensor<8xbf16>
}

// Exact ops, comparisons, selects and reductions stay; so does fma, which f32 would round twice.
func.func @left_alone(%x: tensor<8xf16>, %m: tensor<8xi1>) {
  %0 = arith.negf %x : tensor<8xf16>
  %1 = arith.maximumf %x, %0 : tensor<8xf16>
  %2 = math.absf %x : tensor<8xf16>
  %3 = math.copysign %x, %0 : tensor<8xf16>
  %4 = math.fma %x, %x, %x : tensor<8xf16>
  %5 = tile.select %m, %x, %0 : tensor<8xi1>, tensor<8xf16>, tensor<8xf16> -> tensor<8xf16>
  %6 = tile.reduce add %x axis 0 lanes 64 : tensor<8xf16> -> f16
  func.return
}

func.func @other_types(%x: f32, %n: i32) {
  %0 = arith.addf %x, %x : f32
  %1 = math.exp %x : f32
  %2 = math.absi %n : i32
  func.return
}

// CHECK-LABEL: func.func @rounded_after_every_op(
// CHECK-NEXT: %0 = tile.cast %x : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: %1 = tile.cast %y : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: %2 = arith.mulf %0, %1 fastmath<nsz> : tensor<8xf32>
// CHECK-NEXT: %p = tile.cast %2 : tensor<8xf32> -> tensor<8xbf16>
// CHECK-NEXT: %3 = tile.cast %p : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: %4 = tile.cast %y : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: %5 = arith.addf %3, %4 : tensor<8xf32>
// CHECK-NEXT: %s = tile.cast %5 : tensor<8xf32> -> tensor<8xbf16>
// CHECK-NEXT: %6 = tile.cast %h : f16 -> f32
// CHECK-NEXT: %7 = math.sqrt %6 : f32
// CHECK-NEXT: %r = tile.cast %7 : f32 -> f16
// CHECK-NEXT: %8 = tile.cast %x : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: %9 = math.exp %8 {halfulp.upper_bounded} : tensor<8xf32>
// CHECK-NEXT: %e = tile.cast %9 : tensor<8xf32> -> tensor<8xbf16>
// CHECK-LABEL: func.func @left_alone(
// CHECK-NEXT: %0 = arith.negf %x : tensor<8xf16>
// CHECK-NEXT: %1 = arith.maximumf %x, %0 : tensor<8xf16>
// CHECK-NEXT: %2 = math.absf %x : tensor<8xf16>
// CHECK-NEXT: %3 = math.copysign %x, %0 : tensor<8xf16>
// CHECK-NEXT: %4 = math.fma %x, %x, %x : tensor<8xf16>
// CHECK-NEXT: %5 = tile.select %m, %x, %0 : tensor<8xi1>, tensor<8xf16>, tensor<8xf16> -> tensor<8xf16>
// CHECK-NEXT: %6 = tile.reduce add %x axis 0 lanes 64 : tensor<8xf16> -> f16
// CHECK-LABEL: func.func @other_types(
// CHECK-NEXT: %0 = arith.addf %x, %x : f32
// CHECK-NEXT: %1 = math.exp %x : f32
// CHECK-NEXT: %2 = math.absi %n : i32
