// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --emit ll --options vector_bits=128 | filecheck %s --check-prefix=LL

llvm.func @ops(%p : !llvm.ptr, %a : vector<16xf32>, %i : vector<16xi64>, %x : i64, %y : i32, %u : vector<16xi32>) -> i64 {
  %c = llvm_ext.fcmp olt %a, %a {fastmathFlags = #llvm.fastmath<nnan>} : vector<16xf32> -> vector<16xi1>
  %r = llvm_ext.select %c, %a, %a {fastmathFlags = #llvm.fastmath<nnan>} : vector<16xi1>, vector<16xf32>
  %q = llvm_ext.uitofp %u : vector<16xi32> to vector<16xf32>
  %h = llvm_ext.fptrunc %a : vector<16xf32> to vector<16xf16>
  %e = llvm_ext.extractelement %a[%x : i64] : vector<16xf32> -> f32
  %po = llvm_ext.poison : vector<16xf32>
  %l = llvm_ext.masked_load %p, %c, %a {alignment = 4 : i64} : !llvm.ptr, vector<16xi1> into vector<16xf32>
  llvm_ext.masked_store %l, %p, %c {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr, vector<16xi1>
  %g = llvm_ext.gather %p[%i], %c, %a {alignment = 4 : i64} : !llvm.ptr, vector<16xi64>, vector<16xi1> into vector<16xf32>
  llvm_ext.scatter %g, %p[%i], %c {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr, vector<16xi64>, vector<16xi1>
  llvm_ext.fence seq_cst
  %o = llvm_ext.atomicrmw add %p, %x acq_rel : !llvm.ptr, i64
  %cx = llvm_ext.cmpxchg %p, %x, %o acq_rel monotonic : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
  llvm_ext.switch %y : i32, ^d [0: ^a, 7: ^d]
^a:
  llvm.return %o : i64
^d:
  llvm.return %x : i64
}

// CHECK-LABEL: llvm.func @ops(%p: !llvm.ptr, %a: vector<16xf32>, %i: vector<16xi64>, %x: i64, %y: i32, %u: vector<16xi32>) -> i64 {
// CHECK-NEXT:     %c = llvm_ext.fcmp olt %a, %a {fastmathFlags = #llvm.fastmath<nnan>} : vector<16xf32> -> vector<16xi1>
// CHECK-NEXT:     %r = llvm_ext.select %c, %a, %a {fastmathFlags = #llvm.fastmath<nnan>} : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:     %q = llvm_ext.uitofp %u : vector<16xi32> to vector<16xf32>
// CHECK-NEXT:     %h = llvm_ext.fptrunc %a : vector<16xf32> to vector<16xf16>
// CHECK-NEXT:     %e = llvm_ext.extractelement %a[%x : i64] : vector<16xf32> -> f32
// CHECK-NEXT:     %po = llvm_ext.poison : vector<16xf32>
// CHECK-NEXT:     %l = llvm_ext.masked_load %p, %c, %a {alignment = 4 : i64} : !llvm.ptr, vector<16xi1> into vector<16xf32>
// CHECK-NEXT:     llvm_ext.masked_store %l, %p, %c {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr, vector<16xi1>
// CHECK-NEXT:     %g = llvm_ext.gather %p[%i], %c, %a {alignment = 4 : i64} : !llvm.ptr, vector<16xi64>, vector<16xi1> into vector<16xf32>
// CHECK-NEXT:     llvm_ext.scatter %g, %p[%i], %c {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr, vector<16xi64>, vector<16xi1>
// CHECK-NEXT:     llvm_ext.fence seq_cst
// CHECK-NEXT:     %o = llvm_ext.atomicrmw add %p, %x acq_rel : !llvm.ptr, i64
// CHECK-NEXT:     %cx = llvm_ext.cmpxchg %p, %x, %o acq_rel monotonic : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
// CHECK-NEXT:     llvm_ext.switch %y : i32, ^d [0: ^a, 7: ^d]
// CHECK-NEXT:   ^a:
// CHECK-NEXT:     llvm.return %o : i64
// CHECK-NEXT:   ^d:
// CHECK-NEXT:     llvm.return %x : i64
// CHECK-NEXT:   }

// LL-LABEL: define i64 @ops(ptr %p, <16 x float> %a, <16 x i64> %i, i64 %x, i32 %y, <16 x i32> %u) "prefer-vector-width"="128" {
// LL-NEXT: entry:
// LL-NEXT:   %c = fcmp nnan olt <16 x float> %a, %a
// LL-NEXT:   %r = select nnan <16 x i1> %c, <16 x float> %a, <16 x float> %a
// LL-NEXT:   %q = uitofp <16 x i32> %u to <16 x float>
// LL-NEXT:   %h = fptrunc <16 x float> %a to <16 x half>
// LL-NEXT:   %e = extractelement <16 x float> %a, i64 %x
// LL-NEXT:   %l = call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %p, <16 x i1> %c, <16 x float> %a)
// LL-NEXT:   call void @llvm.masked.store.v16f32.p0(<16 x float> %l, ptr align 4 %p, <16 x i1> %c)
// LL-NEXT:   %addresses = getelementptr float, ptr %p, <16 x i64> %i
// LL-NEXT:   %g = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %addresses, <16 x i1> %c, <16 x float> %a)
// LL-NEXT:   %addresses.1 = getelementptr float, ptr %p, <16 x i64> %i
// LL-NEXT:   call void @llvm.masked.scatter.v16f32.v16p0(<16 x float> %g, <16 x ptr> align 4 %addresses.1, <16 x i1> %c)
// LL-NEXT:   fence seq_cst
// LL-NEXT:   %o = atomicrmw add ptr %p, i64 %x acq_rel
// LL-NEXT:   %cx = cmpxchg ptr %p, i64 %x, i64 %o acq_rel monotonic
// LL-NEXT:   switch i32 %y, label %d [ i32 0, label %a.1 i32 7, label %d ]
// LL-NEXT: a.1:
// LL-NEXT:   ret i64 %o
// LL-NEXT: d:
// LL-NEXT:   ret i64 %x
// LL-NEXT: }
// LL: declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>)
// LL-NEXT: declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)
// LL-NEXT: declare void @llvm.masked.scatter.v16f32.v16p0(<16 x float>, <16 x ptr>, <16 x i1>)
// LL-NEXT: declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, <16 x i1>)
