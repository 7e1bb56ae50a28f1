// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=ERRORS

func.func @wrong_count(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %x, %y : f32, f32
}

// Only the op at fault is shown, not the whole module.
// ERRORS:      Expected arguments to have the same types as the function output types: expected [f32], got [f32, f32]
// ERRORS-NEXT:     "func.return"(%x, %y) : (f32, f32) -> ()
// ERRORS-NEXT:     ^^^^^^^^^^^^^{{$}}
// ERRORS-NOT:  builtin.module

// -----

func.func @wrong_text(%x: f32) -> f32 {
  func.return %x f32
}

// Lines are those of the file, not of the piece.
// ERRORS:      opt_invalid.mlir:17:18
// ERRORS-NEXT:   func.return %x f32
// ERRORS-NEXT:                  ^^^
