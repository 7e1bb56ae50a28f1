// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s
// RUN: halfulp-opt %s --emit ll | filecheck %s --check-prefix=LL

func.func private @work(%x : memref<?xf32>, %first : index)

func.func @share(%x : memref<?xf32>, %threads : index, %rounds : index, %lock : memref<?xi64>) {
  %c2 = arith.constant 2 : index
  scf_ext.forall %rounds threads %threads {
  ^bb0(%round: index):
    %first = arith.muli %round, %c2 : index
    func.call @work(%x, %first) : (memref<?xf32>, index) -> ()
    scf_ext.yield
  }
  scf_ext.critical %lock[%c2] : memref<?xi64> {
    func.call @work(%x, %c2) : (memref<?xf32>, index) -> ()
    scf_ext.yield
  }
  func.return
}

// CHECK:        llvm.func @share(
// CHECK:          %[[CONTEXT:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(!llvm.ptr)>
// CHECK:          llvm.store %x, %
// CHECK-NEXT:     %[[BODY:.*]] = llvm.mlir.addressof @share.round.0 : !llvm.ptr
// CHECK-NEXT:     llvm.call @halfulp_parallel_for(%threads, %rounds, %[[BODY]], %[[CONTEXT]])
// CHECK:        ^critical.spin:
// CHECK:          %[[BEFORE:.*]] = llvm_ext.atomicrmw xchg %[[WORD:.*]], %{{.*}} acquire : !llvm.ptr, i64
// CHECK:          llvm.cond_br %{{.*}}, ^critical.inside, ^critical.spin
// CHECK-NEXT:   ^critical.inside:
// CHECK-NEXT:     llvm.call @work
// CHECK:          llvm_ext.atomicrmw xchg %[[WORD]], %{{.*}} release : !llvm.ptr, i64
// CHECK:        llvm.func internal @share.round.0(%context: !llvm.ptr, %round: i64, %thread: i64)
// CHECK:          llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:     llvm.mlir.constant(2) : i64
// CHECK-NEXT:     llvm.mul %round, %
// CHECK-NEXT:     llvm.call @work(
// CHECK:        llvm.func @halfulp_parallel_for(i64, i64, !llvm.ptr, !llvm.ptr)

// LL:           call void @halfulp_parallel_for(i64 %threads, i64 %rounds, ptr @share.round.0, ptr %
// LL:           define internal void @share.round.0(ptr %context, i64 %round, i64 %thread) nounwind "fp-contract"="on"
// LL:           declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
