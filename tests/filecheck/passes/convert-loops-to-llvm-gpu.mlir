// RUN: halfulp-opt %s -p "convert-loops-to-llvm{arch=nvptx64}" | filecheck %s

func.func @kernel(%status: memref<?xi64, 1 : i32>, %scratch: memref<?xi8, 1 : i32>, %d: f64, %h: f16) attributes {gpu.kernel, gpu.threads = 64 : i64, gpu.shared_bytes = 256 : i64, gpu.scratch_bytes = 4096 : i64} {
  %slots = memref.alloca() {alignment = 16 : i64} : memref<64xf32, 3 : i32>
  %own = gpu_ext.block_scratch 1024 of %scratch : memref<?xi8, 1 : i32> -> memref<8xf32, 1 : i32>
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  %v = memref.load %slots[%t] : memref<64xf32, 3 : i32>
  "gpu.barrier"() : () -> ()
  %w = gpu_ext.shuffle_down 16 of %v : f32
  %e = gpu_ext.shuffle_down 2 of %d : f64
  %g = gpu_ext.shuffle_down 1 of %h : f16
  %k = arith.constant -1 : i64
  %old = gpu_ext.atomic_umin %status[%t], %k : memref<?xi64, 1 : i32>
  func.return
}

// CHECK:       llvm.mlir.global internal @kernel_shared_0(#ub.poison) {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x f32>
// CHECK:       llvm.func @kernel(%status: !llvm.ptr<1> {llvm.align = 8 : i64}, %scratch: !llvm.ptr<1> {llvm.align = 1 : i64}, %d: f64, %h: f16) attributes {nvvm.kernel, no_unwind}
// CHECK:         llvm.mlir.addressof @kernel_shared_0 : !llvm.ptr<3>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
// CHECK:         llvm.getelementptr inbounds %scratch
// CHECK-SAME:      -> !llvm.ptr<1>, i8
// CHECK:         llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"
// CHECK:         %[[BITS:.*]] = llvm.bitcast %v : f32 to i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.shfl.sync.down.i32"(%{{.*}}, %[[BITS]], %{{.*}}, %{{.*}}) : (i32, i32, i32, i32) -> i32
// CHECK-COUNT-2: llvm.nvvm.shfl.sync.down.i32
// CHECK:         llvm.zext %{{.*}} : i16 to i32
// CHECK:         llvm.nvvm.shfl.sync.down.i32
// CHECK:         llvm_ext.atomicrmw umin %{{.*}}, %{{.*}} monotonic : !llvm.ptr<1>, i64
