// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @distance(%v: f32) {
  %moved = gpu_ext.shuffle_down 32 of %v : f32
  func.return
}

// CHECK: gpu_ext.shuffle_down: the distance must be 1 to 31, not 32

// -----

func.func @vector(%v: vector<2xf32>) {
  %moved = gpu_ext.shuffle_down 1 of %v : vector<2xf32>
  func.return
}

// CHECK: gpu_ext.shuffle_down: moves one number a thread, not vector<2xf32>

// -----

func.func @words(%m: memref<?xi32, 1 : i32>, %at: index, %w: i64) {
  %old = gpu_ext.atomic_umin %m[%at], %w : memref<?xi32, 1 : i32>
  func.return
}

// CHECK: gpu_ext.atomic_umin: the memory holds i64, not memref<?xi32, 1 : i32>
