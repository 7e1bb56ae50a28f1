// RUN: halfulp-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @holes(%i: i32) {
  tile.print "{} {}" values %i : i32 as ["i32"]
  func.return
}

// CHECK: tile.print: the text has 2 holes for 1 values of 1 types

// -----

func.func @type(%i: i32) {
  tile.print "{}" values %i : i32 as ["f32"]
  func.return
}

// CHECK: tile.print: a value of i32 cannot be shown as f32

// -----

func.func @unknown(%i: i32) {
  tile.print "{}" values %i : i32 as ["int"]
  func.return
}

// CHECK: tile.print: 'int' is not an element type; known:

// -----

tile.kernel @parallel() grid(%i of %n) axes [parallel] {
  tile.print "here" as []
  tile.return
}

// CHECK: tile.kernel @parallel: it prints, so its programs run in order; make all axes 'ordered'

// -----

func.func @window(%x: !tile.ref<[8], f32, global>, %i: index) {
  %0 = tile.window %x[%i] blocked [4] squeezed [] : !tile.ref<[8], f32, global> -> !tile.ref<[4], f32, global>
  tile.print_tensor %0, "part" as "f32" : !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.print_tensor: shows a whole buffer, not a window of one

// -----

func.func @scalar(%x: !tile.ref<[8], f32, global>) {
  tile.print_tensor %x, "x" as "f32" scalar : !tile.ref<[8], f32, global>
  func.return
}

// CHECK: tile.print_tensor: a scalar is one element along one axis, not !tile.ref<[8], f32, global>
