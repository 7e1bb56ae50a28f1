// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s

func.func @bools(%x: memref<?xi1>, %y: memref<?xi1>, %i: index) {
  %v = vector.load %x[%i] : memref<?xi1>, vector<16xi1>
  vector.store %v, %y[%i] : memref<?xi1>, vector<16xi1>
  func.return
}

func.func @masked(%x: memref<?xf32>, %n: index, %p: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %m = vector.create_mask %n : vector<16xi1>
  %v = vector.maskedload %x[%c0], %m, %p : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.maskedstore %x[%c0], %m, %v : memref<?xf32>, vector<16xi1>, vector<16xf32>
  func.return
}

func.func @indexed(%x: memref<?xf32>, %at: vector<8xi64>, %m: vector<8xi1>, %p: vector<8xf32>) {
  %v = vector_ext.gather %x[%at], %m, %p : memref<?xf32>, vector<8xi64>, vector<8xi1> into vector<8xf32>
  vector_ext.scatter %v, %x[%at], %m : vector<8xf32>, memref<?xf32>, vector<8xi64>, vector<8xi1>
  func.return
}

func.func @stack(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
    memref.store %one, %b[%c0] : memref<64xf32>
  }
  func.return
}

// CHECK-LABEL: llvm.func @bools(%x: !llvm.ptr {llvm.noalias, llvm.align = 1 : i64}, %y: !llvm.ptr {llvm.noalias, llvm.align = 1 : i64}, %i: i64) attributes {no_unwind} {
// CHECK-NEXT:     %0 = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:     %1 = llvm.load %0 {alignment = 1 : i64} : !llvm.ptr -> vector<16xi8>
// CHECK-NEXT:     %2 = llvm.mlir.constant(dense<0> : vector<16xi8>) : vector<16xi8>
// CHECK-NEXT:     %v = llvm.icmp "ne" %1, %2 : vector<16xi8>
// CHECK-NEXT:     %3 = llvm.getelementptr inbounds %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:     %4 = llvm.zext %v : vector<16xi1> to vector<16xi8>
// CHECK-NEXT:     llvm.store %4, %3 {alignment = 1 : i64} : vector<16xi8>, !llvm.ptr
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @masked(%x_1: !llvm.ptr {llvm.noalias, llvm.align = 4 : i64}, %n: i64, %p: vector<16xf32>) attributes {no_unwind} {
// CHECK-NEXT:     %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %5 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %6 = llvm.call_intrinsic "llvm.smax.i64"(%n, %5) : (i64, i64) -> i64
// CHECK-NEXT:     %7 = llvm.mlir.constant(16) : i64
// CHECK-NEXT:     %8 = llvm.call_intrinsic "llvm.smin.i64"(%6, %7) : (i64, i64) -> i64
// CHECK-NEXT:     %9 = llvm.trunc %8 : i64 to i32
// CHECK-NEXT:     %10 = llvm_ext.poison : vector<16xi32>
// CHECK-NEXT:     %11 = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:     %12 = llvm.insertelement %9, %10[%11 : i32] : vector<16xi32>
// CHECK-NEXT:     %13 = llvm.shufflevector %12, %10 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xi32>
// CHECK-NEXT:     %14 = llvm.mlir.constant(dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>) : vector<16xi32>
// CHECK-NEXT:     %m = llvm.icmp "ult" %14, %13 : vector<16xi32>
// CHECK-NEXT:     %15 = llvm.getelementptr %x_1[%c0] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     %v_1 = llvm_ext.masked_load %15, %m, %p {alignment = 4 : i64} : !llvm.ptr, vector<16xi1> into vector<16xf32>
// CHECK-NEXT:     %16 = llvm.getelementptr %x_1[%c0] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     llvm_ext.masked_store %v_1, %16, %m {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr, vector<16xi1>
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @indexed(%x_2: !llvm.ptr {llvm.noalias, llvm.align = 4 : i64}, %at: vector<8xi64>, %m_1: vector<8xi1>, %p_1: vector<8xf32>) attributes {no_unwind} {
// CHECK-NEXT:     %v_2 = llvm_ext.gather %x_2[%at], %m_1, %p_1 {alignment = 4 : i64} : !llvm.ptr, vector<8xi64>, vector<8xi1> into vector<8xf32>
// CHECK-NEXT:     llvm_ext.scatter %v_2, %x_2[%at], %m_1 {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr, vector<8xi64>, vector<8xi1>
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @stack(%n_1: i64) attributes {no_unwind} {
// CHECK-NEXT:     %17 = llvm.mlir.constant(64) : i64
// CHECK-NEXT:     %b = llvm.alloca %17 x f32 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT:     %c0_1 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:     %one = llvm.mlir.constant(1.000000e+00 : f32) : f32
// CHECK-NEXT:     llvm.br ^for.header(%c0_1 : i64)
// CHECK-NEXT:   ^for.header(%i_1: i64):
// CHECK-NEXT:     %18 = llvm.icmp "slt" %i_1, %n_1 : i64
// CHECK-NEXT:     llvm.cond_br %18, ^for.body, ^for.exit
// CHECK-NEXT:   ^for.body:
// CHECK-NEXT:     %19 = llvm.getelementptr inbounds %b[%c0_1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     llvm.store %one, %19 {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:     %20 = llvm.add %i_1, %c1 overflow<nsw> : i64
// CHECK-NEXT:     llvm.br ^for.header(%20 : i64)
// CHECK-NEXT:   ^for.exit:
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }

// A prefetch promises nothing of its address, which may lie outside of the buffer.

func.func @ahead(%x: memref<?xf32>, %i: index) {
  vector_ext.prefetch %x[%i] : memref<?xf32>
  func.return
}

// CHECK-LABEL:  llvm.func @ahead(
// CHECK:          %[[AT:[0-9a-z_]+]] = llvm.getelementptr %
// CHECK-SAME:     (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:          llvm.call_intrinsic "llvm.prefetch.p0"(%[[AT]], {{.*}}) : (!llvm.ptr, i32, i32, i32)

// A scaling fills a register: 2 lanes are widened, and so is one.

func.func @scaling(%a: vector<16xf32>, %b: vector<2xf32>, %c: f32) -> (f32) {
  %r = vector_ext.scale %a, %a : vector<16xf32>
  %s = vector_ext.scale %b, %b : vector<2xf32>
  %t = vector_ext.scale %c, %c : f32
  func.return %t : f32
}

// CHECK-LABEL:  llvm.func @scaling(
// CHECK:          llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({{.*}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>, i16, i32) -> vector<16xf32>
// CHECK-COUNT-2:  llvm.shufflevector
// CHECK:          llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.128"({{.*}}) : (vector<4xf32>, vector<4xf32>, vector<4xf32>, i8) -> vector<4xf32>
// CHECK:          llvm.shufflevector
// CHECK-COUNT-2:  llvm.insertelement
// CHECK:          llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.128"(
// CHECK:          llvm_ext.extractelement
