// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @fcmp_integers(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.fcmp olt %i, %i : vector<4xi32> -> vector<4xi1>
  func.return
}

// CHECK: llvm_ext.fcmp: compares floats, not vector<4xi32>

// -----

func.func @fcmp_result(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.fcmp olt %a, %a : vector<4xf32> -> i1
  func.return
}

// CHECK: llvm_ext.fcmp: result must be vector<4xi1>, not i1

// -----

func.func @select_condition(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.select %c, %x, %x : vector<4xi1>, f32
  func.return
}

// CHECK: llvm_ext.select: condition must be i1 or i1, not vector<4xi1>

// -----

func.func @cast(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.uitofp %a : vector<4xf32> to vector<4xf64>
  func.return
}

// CHECK: llvm_ext.uitofp: cannot cast vector<4xf32> to vector<4xf64>

// -----

func.func @cast_lanes(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.fptosi %a : vector<4xf32> to vector<8xi32>
  func.return
}

// CHECK: llvm_ext.fptosi: cannot cast vector<4xf32> to vector<8xi32>

// -----

func.func @extract(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.extractelement %a[%n : i32] : vector<4xf32> -> f64
  func.return
}

// CHECK: llvm_ext.extractelement: result must be f32, not f64

// -----

func.func @masked(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32, %d: vector<8xi1>) {
  %r = llvm_ext.masked_load %p, %d, %a {alignment = 4 : i64} : !llvm.ptr, vector<8xi1> into vector<4xf32>
  func.return
}

// CHECK: llvm_ext.masked_load: needs a vector and a mask of its length, not vector<4xf32> and vector<8xi1>

// -----

func.func @fence(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  llvm_ext.fence monotonic
  func.return
}

// CHECK: llvm_ext.fence: ordering must be acquire or stronger, not monotonic

// -----

func.func @atomicrmw(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.atomicrmw fadd %p, %n acq_rel : !llvm.ptr, i32
  func.return
}

// CHECK: llvm_ext.atomicrmw: fadd does not take i32

// -----

func.func @cmpxchg_result(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.cmpxchg %p, %n, %n acq_rel acquire : !llvm.ptr, i32 -> !llvm.struct<(i64, i1)>
  func.return
}

// CHECK: llvm_ext.cmpxchg: result must be !llvm.struct<(i32, i1)>, not !llvm.struct<(i64, i1)>

// -----

func.func @cmpxchg_failure(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %p: !llvm.ptr, %n: i32) {
  %r = llvm_ext.cmpxchg %p, %n, %n acq_rel release : !llvm.ptr, i32 -> !llvm.struct<(i32, i1)>
  func.return
}

// CHECK: llvm_ext.cmpxchg: failure ordering must not release, but is release

// -----

llvm.func @switch_values(%n: i32) {
  llvm_ext.switch %n : i32, ^d [1: ^a, 1: ^b]
^a:
  llvm.return
^b:
  llvm.return
^d:
  llvm.return
}

// CHECK: llvm_ext.switch: needs one distinct value per case block, not [1, 1] for 2 blocks

// -----

llvm.func @switch_arguments(%n: i32) {
  llvm_ext.switch %n : i32, ^d [1: ^a]
^a(%x: i32):
  llvm.return
^d:
  llvm.return
}

// CHECK: llvm_ext.switch: its blocks must take no arguments
