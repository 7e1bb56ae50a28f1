// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s
// RUN: halfulp-opt %s --emit ll | filecheck %s --check-prefix=LL

// A function that is known by its address only, and an address to give it.

func.func @show(%x: memref<?xf32>, %address: i64, %site: i64) {
  %pointer = "memref.extract_aligned_pointer_as_index"(%x) : (memref<?xf32>) -> index
  %word = vector_ext.cast %pointer index_cast : index to i64
  scf_ext.call_address %address(%site, %word)
  func.return
}

// CHECK-LABEL: llvm.func @show(
// CHECK-NEXT:    %pointer = llvm.ptrtoint %x : !llvm.ptr to i64
// CHECK-NEXT:    %[[CALLEE:[0-9]+]] = llvm.inttoptr %address : i64 to !llvm.ptr
// CHECK-NEXT:    llvm.call %[[CALLEE]](%site, %pointer)

// LL:            %[[CALLEE:.*]] = inttoptr i64 %address to ptr
// LL-NEXT:       call void %[[CALLEE]](i64 %site, i64 %pointer)
