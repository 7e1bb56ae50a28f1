// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s
// RUN: halfulp-opt %s -p 'convert-loops-to-llvm{arch=aarch64}' | filecheck %s --check-prefix=ARM

func.func @maximum(%a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xf32> {
  %r = arith.maximumf %a, %b : vector<16xf32>
  func.return %r : vector<16xf32>
}

func.func @maximum_of_numbers(%a: f32, %b: f32) -> f32 {
  %r = arith.maximumf %a, %b fastmath<nnan,nsz> : f32
  func.return %r : f32
}

func.func @minnum(%a: f32, %b: f32) -> f32 {
  %r = arith.minnumf %a, %b : f32
  func.return %r : f32
}

// CHECK-LABEL: llvm.func @maximum(%a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xf32> attributes {no_unwind} {
// CHECK-NEXT:     %0 = llvm_ext.fcmp ogt %a, %b : vector<16xf32> -> vector<16xi1>
// CHECK-NEXT:     %1 = llvm_ext.select %0, %a, %b : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:     %2 = llvm_ext.fcmp ogt %b, %a : vector<16xf32> -> vector<16xi1>
// CHECK-NEXT:     %3 = llvm_ext.select %2, %b, %a : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:     %4 = llvm.bitcast %1 : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:     %5 = llvm.bitcast %3 : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:     %6 = llvm.and %4, %5 : vector<16xi32>
// CHECK-NEXT:     %7 = llvm_ext.fcmp uno %a, %b : vector<16xf32> -> vector<16xi1>
// CHECK-NEXT:     %8 = llvm.mlir.constant(dense<-1> : vector<16xi32>) : vector<16xi32>
// CHECK-NEXT:     %9 = llvm_ext.select %7, %8, %6 : vector<16xi1>, vector<16xi32>
// CHECK-NEXT:     %r = llvm.bitcast %9 : vector<16xi32> to vector<16xf32>
// CHECK-NEXT:     llvm.return %r : vector<16xf32>
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @maximum_of_numbers(%a_1: f32, %b_1: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:     %10 = llvm_ext.fcmp ogt %a_1, %b_1 {fastmathFlags = #llvm.fastmath<nsz>} : f32 -> i1
// CHECK-NEXT:     %r_1 = llvm.select %10, %a_1, %b_1 {fastmathFlags = #llvm.fastmath<nsz>} : i1, f32
// CHECK-NEXT:     llvm.return %r_1 : f32
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @minnum(%a_2: f32, %b_2: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:     %11 = llvm_ext.fcmp olt %a_2, %b_2 : f32 -> i1
// CHECK-NEXT:     %12 = llvm.select %11, %a_2, %b_2 : i1, f32
// CHECK-NEXT:     %13 = llvm_ext.fcmp uno %b_2, %b_2 : f32 -> i1
// CHECK-NEXT:     %r_2 = llvm.select %13, %a_2, %12 : i1, f32
// CHECK-NEXT:     llvm.return %r_2 : f32
// CHECK-NEXT:   }

// ARM-LABEL: llvm.func @maximum(%a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xf32> attributes {no_unwind} {
// ARM-NEXT:     %r = llvm.call_intrinsic "llvm.maximum.v16f32"(%a, %b) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// ARM-NEXT:     llvm.return %r : vector<16xf32>
// ARM-NEXT:   }
// ARM-LABEL: llvm.func @maximum_of_numbers(%a_1: f32, %b_1: f32) -> f32 attributes {no_unwind} {
// ARM-NEXT:     %r_1 = llvm.call_intrinsic "llvm.maximum.f32"(%a_1, %b_1) {fastmathFlags = #llvm.fastmath<nnan,nsz>} : (f32, f32) -> f32
// ARM-NEXT:     llvm.return %r_1 : f32
// ARM-NEXT:   }
// ARM-LABEL: llvm.func @minnum(%a_2: f32, %b_2: f32) -> f32 attributes {no_unwind} {
// ARM-NEXT:     %0 = llvm_ext.fcmp olt %a_2, %b_2 : f32 -> i1
// ARM-NEXT:     %1 = llvm.select %0, %a_2, %b_2 : i1, f32
// ARM-NEXT:     %2 = llvm_ext.fcmp uno %b_2, %b_2 : f32 -> i1
// ARM-NEXT:     %r_2 = llvm.select %2, %a_2, %1 : i1, f32
// ARM-NEXT:     llvm.return %r_2 : f32
// ARM-NEXT:   }
