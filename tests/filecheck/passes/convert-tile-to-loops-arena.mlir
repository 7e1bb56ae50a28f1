// RUN: halfulp-opt %s -p convert-tile-to-loops | filecheck %s
// RUN: halfulp-opt %s --emit ll --options vector_bits=256 | filecheck %s --check-prefix=LL

// A block of 16 KiB or more lies in the arena of the thread that runs the program: it is an argument of the kernel's
// function, and whoever calls it computes the place from word 10 of the status and the number of the thread.

tile.kernel @reversed(%x: !tile.ref<[?, 8192], f32, global>, %y: !tile.ref<[?, 8192], f32, global>)
    grid(%i of %n) axes [parallel] {
  %c0 = arith.constant 0 : index
  %from = tile.window %x[%i, %c0] blocked [1, 8192] squeezed [0] : !tile.ref<[?, 8192], f32, global> -> !tile.ref<[8192], f32, global>
  %to = tile.window %y[%i, %c0] blocked [1, 8192] squeezed [0] : !tile.ref<[?, 8192], f32, global> -> !tile.ref<[8192], f32, global>
  %a = tile.load %from : !tile.ref<[8192], f32, global> -> tensor<8192xf32>
  %b = tile.slice %a from [8191] step [-1] : tensor<8192xf32> -> tensor<8192xf32>
  tile.store %b, %to : tensor<8192xf32>, !tile.ref<[8192], f32, global>
  tile.return
}

// Smaller blocks lie on the stack.

tile.kernel @little(%x: !tile.ref<[64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %b = tile.slice %a from [63] step [-1] : tensor<64xf32> -> tensor<64xf32>
  tile.store %b, %x : tensor<64xf32>, !tile.ref<[64], f32, global>
  tile.return
}

func.func @g(%x: !tile.ref<[?, 8192], f32, global>, %y: !tile.ref<[?, 8192], f32, global>, %z: !tile.ref<[64], f32, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[?, 8192], f32, global>
  tile.launch @reversed grid(%n) (%x, %y) : !tile.ref<[?, 8192], f32, global>, !tile.ref<[?, 8192], f32, global>
  tile.launch @little grid() (%z) : !tile.ref<[64], f32, global>
  func.return
}

// CHECK:       builtin.module attributes {halfulp.thread_arena = 66048 : i64}
// CHECK-LABEL: func.func private @reversed(
// CHECK-SAME:  %[[A:[0-9]+]]: memref<8256xf32>, %[[B:[0-9]+]]: memref<8256xf32>) {
// CHECK-NOT:     memref.alloca
// CHECK:         vector.store %{{[0-9]+}}, %[[A]][
// CHECK:         vector.store %{{[0-9]+}}, %[[B]][
// CHECK-NOT:     memref.alloca
// CHECK-LABEL: func.func private @reversed.launch(
// CHECK:         scf_ext.forall
// CHECK-NEXT:    ^bb{{[0-9]+}}(%{{[0-9]+}}: index, %[[THREAD:[0-9]+]]: index):
// CHECK:           %[[WORD:[0-9]+]] = memref.load %0[
// CHECK-NEXT:      %[[ARENAS:[0-9]+]] = vector_ext.cast %[[WORD]] index_cast : i64 to index
// CHECK-NEXT:      %[[OFFSET:[0-9]+]] = arith.muli %[[THREAD]], %[[BYTES:[0-9]+]] : index
// CHECK-NEXT:      %[[ARENA:[0-9]+]] = arith.addi %[[ARENAS]], %[[OFFSET]] : index
// CHECK-NEXT:      %[[FIRST:[0-9]+]] = vector_ext.memory_at %[[ARENA]] : memref<8256xf32>
// CHECK-NEXT:      %[[AT:[0-9]+]] = arith.addi %[[ARENA]], %{{[0-9]+}} : index
// CHECK-NEXT:      %[[SECOND:[0-9]+]] = vector_ext.memory_at %[[AT]] : memref<8256xf32>
// CHECK-NEXT:      func.call @reversed({{.*}}, %[[FIRST]], %[[SECOND]])
// CHECK-LABEL: func.func private @little(
// CHECK-COUNT-2: memref.alloca
// CHECK-NOT:     vector_ext.memory_at

// LL:          define internal void @reversed({{.*}}, ptr noalias align 4 %{{.*}}, ptr noalias align 4 %{{.*}}) nounwind
