// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s

func.func @for(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (f32) {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  func.return %sum : f32
}

func.func @if(%c: i1, %x: f32, %y: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    %z = arith.negf %y : f32
    scf.yield %z : f32
  }
  func.return %r : f32
}

func.func @while(%n: i32) -> i32 {
  %one = arith.constant 1 : i32
  %r = scf.while (%v = %n) : (i32) -> i32 {
    %go = vector_ext.cmpi sgt, %v, %one : i32
    scf.condition(%go) %v : i32
  } do {
  ^body(%w: i32):
    %half = arith.shrsi %w, %one : i32
    scf.yield %half : i32
  }
  func.return %r : i32
}

// CHECK-LABEL: llvm.func @for(%n: i64, %x: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:     %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:     %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:     llvm.br ^for.header(%c0, %x : i64, f32)
// CHECK-NEXT:   ^for.header(%i: i64, %s: f32):
// CHECK-NEXT:     %0 = llvm.icmp "slt" %i, %n : i64
// CHECK-NEXT:     llvm.cond_br %0, ^for.body, ^for.exit
// CHECK-NEXT:   ^for.body:
// CHECK-NEXT:     %t = llvm.fadd %s, %x : f32
// CHECK-NEXT:     %1 = llvm.add %i, %c1 overflow<nsw> : i64
// CHECK-NEXT:     llvm.br ^for.header(%1, %t : i64, f32)
// CHECK-NEXT:   ^for.exit:
// CHECK-NEXT:     llvm.return %s : f32
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @if(%c: i1, %x_1: f32, %y: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:     llvm.cond_br %c, ^if.then, ^if.else
// CHECK-NEXT:   ^if.then:
// CHECK-NEXT:     llvm.br ^if.join(%x_1 : f32)
// CHECK-NEXT:   ^if.else:
// CHECK-NEXT:     %z = llvm.fneg %y : f32
// CHECK-NEXT:     llvm.br ^if.join(%z : f32)
// CHECK-NEXT:   ^if.join(%r: f32):
// CHECK-NEXT:     llvm.return %r : f32
// CHECK-NEXT:   }
// CHECK-LABEL: llvm.func @while(%n_1: i32) -> i32 attributes {no_unwind} {
// CHECK-NEXT:     %one = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     llvm.br ^while.before(%n_1 : i32)
// CHECK-NEXT:   ^while.before(%v: i32):
// CHECK-NEXT:     %go = llvm.icmp "sgt" %v, %one : i32
// CHECK-NEXT:     llvm.cond_br %go, ^while.after(%v : i32), ^while.exit(%v : i32)
// CHECK-NEXT:   ^while.after(%w: i32):
// CHECK-NEXT:     %half = llvm.ashr %w, %one : i32
// CHECK-NEXT:     llvm.br ^while.before(%half : i32)
// CHECK-NEXT:   ^while.exit(%r_1: i32):
// CHECK-NEXT:     llvm.return %r_1 : i32
// CHECK-NEXT:   }
