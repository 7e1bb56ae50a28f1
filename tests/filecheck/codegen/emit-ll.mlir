// RUN: halfulp-opt %s --emit ll --options vector_bits=128 | filecheck %s

llvm.mlir.global internal constant @table(dense<[1.0, 2.0]> : tensor<2xf32>) {alignment = 8 : i64} : !llvm.array<2 x f32>

llvm.func internal fastcc @pick(%c: i1, %x: f32, %y: f32) -> f32 attributes {no_unwind, passthrough = ["alwaysinline", ["fp-contract", "off"]]} {
  llvm.cond_br %c, ^join(%x : f32), ^join(%y : f32)
^join(%r: f32):
  %k = llvm.mlir.constant(1.000000e-01 : f32) : f32
  %s = llvm.fmul %r, %k {fastmathFlags = #llvm.fastmath<contract>} : f32
  %f = llvm.intr.fma(%s, %r, %k) {fastmathFlags = #llvm.fastmath<fast>} : (f32, f32, f32) -> f32
  llvm.return %f : f32
}

llvm.func @loop(%p: !llvm.ptr {llvm.noalias, llvm.align = 64 : i64}, %n: i64) {
  %c0 = llvm.mlir.constant(0) : i64
  %c1 = llvm.mlir.constant(1) : i64
  %t = llvm.mlir.addressof @table : !llvm.ptr
  llvm.br ^header(%c0 : i64)
^header(%i: i64):
  %in = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %in, ^body, ^exit
^body:
  %v = llvm.load %t {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
  %a = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %v, %a {alignment = 4 : i64, nontemporal} : vector<2xf32>, !llvm.ptr
  %next = llvm.add %i, %c1 overflow<nsw> : i64
  llvm.br ^header(%next : i64) {halfulp.loop = {unroll = false}}
^exit:
  llvm.return
}

// CHECK: @table = internal constant [2 x float] [float 1.000000e+00, float 2.000000e+00], align 8
// CHECK-LABEL: define internal fastcc float @pick(i1 %c, float %x, float %y) nounwind alwaysinline "fp-contract"="off" "prefer-vector-width"="128" {
// CHECK-NEXT: entry:
// CHECK-NEXT:   br i1 %c, label %join, label %entry.else
// CHECK-NEXT: entry.else:
// CHECK-NEXT:   br label %join
// CHECK-NEXT: join:
// CHECK-NEXT:   %r = phi float [ %x, %entry ], [ %y, %entry.else ]
// CHECK-NEXT:   %s = fmul contract float %r, 0x3FB99999A0000000
// CHECK-NEXT:   %f = call fast float @llvm.fma.f32(float %s, float %r, float 0x3FB99999A0000000)
// CHECK-NEXT:   ret float %f
// CHECK-NEXT: }
// CHECK-LABEL: define void @loop(ptr noalias align 64 %p, i64 %n) "prefer-vector-width"="128" {
// CHECK-NEXT: entry:
// CHECK-NEXT:   br label %header
// CHECK-NEXT: header:
// CHECK-NEXT:   %i = phi i64 [ 0, %entry ], [ %next, %body ]
// CHECK-NEXT:   %in = icmp slt i64 %i, %n
// CHECK-NEXT:   br i1 %in, label %body, label %exit
// CHECK-NEXT: body:
// CHECK-NEXT:   %v = load <2 x float>, ptr @table, align 8
// CHECK-NEXT:   %a = getelementptr inbounds float, ptr %p, i64 %i
// CHECK-NEXT:   store <2 x float> %v, ptr %a, align 4, !nontemporal !0
// CHECK-NEXT:   %next = add nsw i64 %i, 1
// CHECK-NEXT:   br label %header, !llvm.loop !2
// CHECK-NEXT: exit:
// CHECK-NEXT:   ret void
// CHECK-NEXT: }
// CHECK: declare float @llvm.fma.f32(float, float, float)
// CHECK-NEXT: !0 = !{i32 1}
// CHECK-NEXT: !1 = !{!"llvm.loop.unroll.disable"}
// CHECK-NEXT: !2 = distinct !{!2, !1}
