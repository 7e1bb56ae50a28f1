// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s

func.func @saturate(%x: vector<8xf32>) -> vector<8xi32> {
  %r = vector_ext.cast %x fptosi_sat : vector<8xf32> to vector<8xi32>
  func.return %r : vector<8xi32>
}

func.func @saturate_narrow(%x: f32) -> i8 {
  %r = vector_ext.cast %x fptoui_sat : f32 to i8
  func.return %r : i8
}

func.func @from_f64(%x: f64) -> f16 {
  %r = vector_ext.cast %x truncf : f64 to f16
  func.return %r : f16
}

func.func @index(%i: index) -> i32 {
  %r = arith.index_cast %i : index to i32
  func.return %r : i32
}

// CHECK-LABEL: llvm.func @saturate(%x: vector<8xf32>) -> vector<8xi32> attributes {no_unwind} {
// CHECK-NEXT:     %0 = llvm.mlir.constant(dense<0> : vector<8xi32>) : vector<8xi32>
// CHECK-NEXT:     %1 = llvm_ext.fptosi %x : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:     %2 = llvm.mlir.constant(dense<2.14748365e+09> : vector<8xf32>) : vector<8xf32>
// CHECK-NEXT:     %3 = llvm_ext.fcmp oge %x, %2 : vector<8xf32> -> vector<8xi1>
// CHECK-NEXT:     %4 = llvm.mlir.constant(dense<2147483647> : vector<8xi32>) : vector<8xi32>
// CHECK-NEXT:     %5 = llvm_ext.select %3, %4, %1 : vector<8xi1>, vector<8xi32>
// CHECK-NEXT:     %6 = llvm.mlir.constant(dense<-2.14748365e+09> : vector<8xf32>) : vector<8xf32>
// CHECK-NEXT:     %7 = llvm_ext.fcmp ole %x, %6 : vector<8xf32> -> vector<8xi1>
// CHECK-NEXT:     %8 = llvm.mlir.constant(dense<-2147483648> : vector<8xi32>) : vector<8xi32>
// CHECK-NEXT:     %9 = llvm_ext.select %7, %8, %5 : vector<8xi1>, vector<8xi32>
// CHECK-NEXT:     %10 = llvm_ext.fcmp uno %x, %x : vector<8xf32> -> vector<8xi1>
// CHECK-NEXT:     %r = llvm_ext.select %10, %0, %9 : vector<8xi1>, vector<8xi32>
// CHECK-NEXT:     llvm.return %r : vector<8xi32>
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @saturate_narrow(%x_1: f32) -> i8 attributes {no_unwind} {
// CHECK-NEXT:     %11 = llvm.mlir.constant(0.000000e+00 : f32) : f32
// CHECK-NEXT:     %12 = llvm.mlir.constant(2.550000e+02 : f32) : f32
// CHECK-NEXT:     %13 = llvm_ext.fcmp ogt %x_1, %11 : f32 -> i1
// CHECK-NEXT:     %14 = llvm.select %13, %x_1, %11 : i1, f32
// CHECK-NEXT:     %15 = llvm_ext.fcmp olt %14, %12 : f32 -> i1
// CHECK-NEXT:     %16 = llvm.select %15, %14, %12 : i1, f32
// CHECK-NEXT:     %17 = llvm_ext.fptosi %16 : f32 to i32
// CHECK-NEXT:     %r_1 = llvm.trunc %17 : i32 to i8
// CHECK-NEXT:     llvm.return %r_1 : i8
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @from_f64(%x_2: f64) -> f16 attributes {no_unwind} {
// CHECK-NEXT:     %18 = llvm_ext.fptrunc %x_2 : f64 to f32
// CHECK-NEXT:     %19 = llvm_ext.fpext %18 : f32 to f64
// CHECK-NEXT:     %20 = llvm.bitcast %18 : f32 to i32
// CHECK-NEXT:     %21 = llvm.call_intrinsic "llvm.fabs.f64"(%19) : (f64) -> f64
// CHECK-NEXT:     %22 = llvm.call_intrinsic "llvm.fabs.f64"(%x_2) : (f64) -> f64
// CHECK-NEXT:     %23 = llvm_ext.fcmp ogt %21, %22 : f64 -> i1
// CHECK-NEXT:     %24 = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     %25 = llvm.sub %20, %24 : i32
// CHECK-NEXT:     %26 = llvm.select %23, %25, %20 : i1, i32
// CHECK-NEXT:     %27 = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     %28 = llvm.or %26, %27 : i32
// CHECK-NEXT:     %29 = llvm_ext.fcmp one %19, %x_2 : f64 -> i1
// CHECK-NEXT:     %30 = llvm.select %29, %28, %20 : i1, i32
// CHECK-NEXT:     %31 = llvm.bitcast %30 : i32 to f32
// CHECK-NEXT:     %r_2 = llvm_ext.fptrunc %31 : f32 to f16
// CHECK-NEXT:     llvm.return %r_2 : f16
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @index(%i: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:     %r_3 = llvm.trunc %i : i64 to i32
// CHECK-NEXT:     llvm.return %r_3 : i32
// CHECK-NEXT:   }
