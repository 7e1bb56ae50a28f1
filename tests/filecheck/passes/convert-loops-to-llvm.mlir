// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s

func.func @scale(%x: memref<?xf32>, %y: memref<?xf32> {halfulp.may_alias, llvm.align = 64 : i64}, %n: index) attributes {halfulp.entry, halfulp.fp_contract = "on"} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %k = arith.constant dense<1.500000e+00> : vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %w = arith.mulf %v, %k fastmath<nsz> : vector<16xf32>
    vector.store %w, %y[%i] {alignment = 64 : i64} : memref<?xf32>, vector<16xf32>
  } {halfulp.loop = {unroll = 4 : i64}}
  func.return
}

func.func private @outside(index) -> f32

func.func private @plain(%i: index, %s: f32) -> (f32, index) attributes {halfulp.always_inline} {
  %r = func.call @outside(%i) : (index) -> f32
  %q = arith.addf %r, %s : f32
  func.return %q, %i : f32, index
}

// CHECK-LABEL: llvm.func internal @scale(%x: !llvm.ptr {llvm.noalias, llvm.align = 4 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64}, %n: i64) attributes {no_unwind, passthrough = [["fp-contract", "on"]], no_inline} {
// CHECK-NEXT:     %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %c16 = llvm.mlir.constant(16) : i64
// CHECK-NEXT:     %k = llvm.mlir.constant(dense<1.500000e+00> : vector<16xf32>) : vector<16xf32>
// CHECK-NEXT:     llvm.br ^for.header(%c0 : i64)
// CHECK-NEXT:   ^for.header(%i: i64):
// CHECK-NEXT:     %0 = llvm.icmp "slt" %i, %n : i64
// CHECK-NEXT:     llvm.cond_br %0, ^for.body, ^for.exit
// CHECK-NEXT:   ^for.body:
// CHECK-NEXT:     %1 = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     %v = llvm.load %1 {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK-NEXT:     %w = llvm.fmul %v, %k {fastmathFlags = #llvm.fastmath<nsz>} : vector<16xf32>
// CHECK-NEXT:     %2 = llvm.getelementptr inbounds %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     llvm.store %w, %2 {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr
// CHECK-NEXT:     %3 = llvm.add %i, %c16 overflow<nsw> : i64
// CHECK-NEXT:     llvm.br ^for.header(%3 : i64) {halfulp.loop = {unroll = 4 : i64}}
// CHECK-NEXT:   ^for.exit:
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @scale.call(%buffers: !llvm.ptr, %dims: !llvm.ptr) attributes {no_unwind} {
// CHECK-NEXT:     %4 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:     %5 = llvm.alloca %4 x i32 {alignment = 4 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT:     %6 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:     %7 = llvm.alloca %6 x i32 {alignment = 4 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT:     %8 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %9 = llvm.getelementptr inbounds %buffers[%8] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT:     %10 = llvm.load %9 {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:     %11 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:     %12 = llvm.getelementptr inbounds %buffers[%11] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT:     %13 = llvm.load %12 {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:     %14 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %15 = llvm.getelementptr inbounds %dims[%14] : (!llvm.ptr, i64) -> !llvm.ptr, i64
// CHECK-NEXT:     %16 = llvm.load %15 {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK-NEXT:     llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%5) : (!llvm.ptr) -> ()
// CHECK-NEXT:     %17 = llvm.mlir.constant(8064 : i32) : i32
// CHECK-NEXT:     llvm.store %17, %7 {alignment = 4 : i64} : i32, !llvm.ptr
// CHECK-NEXT:     llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%7) : (!llvm.ptr) -> ()
// CHECK-NEXT:     llvm.call @scale(%10, %13, %16) : (!llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK-NEXT:     llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%5) : (!llvm.ptr) -> ()
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @outside(i64) -> f32 attributes {no_unwind}
// CHECK-LABEL: llvm.func internal @plain(%i_1: i64, %s: f32) -> !llvm.struct<(f32, i64)> attributes {no_unwind, passthrough = ["alwaysinline"]} {
// CHECK-NEXT:     %r = llvm.call @outside(%i_1) : (i64) -> f32
// CHECK-NEXT:     %q = llvm.fadd %r, %s : f32
// CHECK-NEXT:     %18 = llvm_ext.poison : !llvm.struct<(f32, i64)>
// CHECK-NEXT:     %19 = llvm.insertvalue %q, %18[0] : !llvm.struct<(f32, i64)>
// CHECK-NEXT:     %20 = llvm.insertvalue %i_1, %19[1] : !llvm.struct<(f32, i64)>
// CHECK-NEXT:     llvm.return %20 : !llvm.struct<(f32, i64)>
// CHECK-NEXT:   }
