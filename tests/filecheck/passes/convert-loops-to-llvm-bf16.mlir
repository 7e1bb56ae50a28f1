// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s

func.func @round(%x: f32) -> bf16 {
  %r = vector_ext.cast %x truncf : f32 to bf16
  func.return %r : bf16
}

func.func @widen(%x: vector<8xbf16>) -> vector<8xf32> {
  %r = vector_ext.cast %x extf : vector<8xbf16> to vector<8xf32>
  func.return %r : vector<8xf32>
}

func.func @add(%x: bf16, %y: bf16) -> bf16 {
  %r = arith.addf %x, %y fastmath<nnan> : bf16
  func.return %r : bf16
}

// CHECK-LABEL: llvm.func @round(%x: f32) -> i16 attributes {no_unwind} {
// CHECK-NEXT:     %0 = llvm.bitcast %x : f32 to i32
// CHECK-NEXT:     %1 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %2 = llvm.lshr %0, %1 : i32
// CHECK-NEXT:     %3 = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     %4 = llvm.and %2, %3 : i32
// CHECK-NEXT:     %5 = llvm.mlir.constant(32767 : i32) : i32
// CHECK-NEXT:     %6 = llvm.add %0, %5 : i32
// CHECK-NEXT:     %7 = llvm.add %6, %4 : i32
// CHECK-NEXT:     %8 = llvm.lshr %7, %1 : i32
// CHECK-NEXT:     %9 = llvm.mlir.constant(64 : i32) : i32
// CHECK-NEXT:     %10 = llvm.or %2, %9 : i32
// CHECK-NEXT:     %11 = llvm_ext.fcmp uno %x, %x : f32 -> i1
// CHECK-NEXT:     %12 = llvm.select %11, %10, %8 : i1, i32
// CHECK-NEXT:     %r = llvm.trunc %12 : i32 to i16
// CHECK-NEXT:     llvm.return %r : i16
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @widen(%x_1: vector<8xi16>) -> vector<8xf32> attributes {no_unwind} {
// CHECK-NEXT:     %13 = llvm.zext %x_1 : vector<8xi16> to vector<8xi32>
// CHECK-NEXT:     %14 = llvm.mlir.constant(dense<16> : vector<8xi32>) : vector<8xi32>
// CHECK-NEXT:     %15 = llvm.shl %13, %14 : vector<8xi32>
// CHECK-NEXT:     %r_1 = llvm.bitcast %15 : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:     llvm.return %r_1 : vector<8xf32>
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @add(%x_2: i16, %y: i16) -> i16 attributes {no_unwind} {
// CHECK-NEXT:     %16 = llvm.zext %x_2 : i16 to i32
// CHECK-NEXT:     %17 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %18 = llvm.shl %16, %17 : i32
// CHECK-NEXT:     %19 = llvm.bitcast %18 : i32 to f32
// CHECK-NEXT:     %20 = llvm.zext %y : i16 to i32
// CHECK-NEXT:     %21 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %22 = llvm.shl %20, %21 : i32
// CHECK-NEXT:     %23 = llvm.bitcast %22 : i32 to f32
// CHECK-NEXT:     %24 = llvm.fadd %19, %23 {fastmathFlags = #llvm.fastmath<nnan>} : f32
// CHECK-NEXT:     %25 = llvm.bitcast %24 : f32 to i32
// CHECK-NEXT:     %26 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %27 = llvm.lshr %25, %26 : i32
// CHECK-NEXT:     %28 = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     %29 = llvm.and %27, %28 : i32
// CHECK-NEXT:     %30 = llvm.mlir.constant(32767 : i32) : i32
// CHECK-NEXT:     %31 = llvm.add %25, %30 : i32
// CHECK-NEXT:     %32 = llvm.add %31, %29 : i32
// CHECK-NEXT:     %33 = llvm.lshr %32, %26 : i32
// CHECK-NEXT:     %34 = llvm.mlir.constant(64 : i32) : i32
// CHECK-NEXT:     %35 = llvm.or %27, %34 : i32
// CHECK-NEXT:     %36 = llvm_ext.fcmp uno %24, %24 : f32 -> i1
// CHECK-NEXT:     %37 = llvm.select %36, %35, %33 : i1, i32
// CHECK-NEXT:     %r_2 = llvm.trunc %37 : i32 to i16
// CHECK-NEXT:     llvm.return %r_2 : i16
// CHECK-NEXT:   }
