// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

func.func @f(%status: memref<?xi64, 1 : i32>, %scratch: memref<?xi8, 1 : i32>, %at: index, %v: f32, %w: i64) {
  %moved = gpu_ext.shuffle_down 16 of %v : f32
  %old = gpu_ext.atomic_umin %status[%at], %w : memref<?xi64, 1 : i32>
  %own = gpu_ext.block_scratch 1024 of %scratch : memref<?xi8, 1 : i32> -> memref<8xf32, 1 : i32>
  func.return
}

// CHECK:       %moved = gpu_ext.shuffle_down 16 of %v : f32
// CHECK-NEXT:  %old = gpu_ext.atomic_umin %status[%at], %w : memref<?xi64, 1 : i32>
// CHECK-NEXT:  %own = gpu_ext.block_scratch 1024 of %scratch : memref<?xi8, 1 : i32> -> memref<8xf32, 1 : i32>

// GENERIC:     "gpu_ext.shuffle_down"(%v) <{distance = 16 : i64}> : (f32) -> f32
// GENERIC:     "gpu_ext.atomic_umin"(%status, %at, %w) : (memref<?xi64, 1 : i32>, index, i64) -> i64
