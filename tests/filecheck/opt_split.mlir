// RUN: halfulp-opt %s --split-input-file | filecheck %s --check-prefix=SPLIT

func.func @first() {
  func.return
}

// SPLIT:      func.func @first
// SPLIT-NOT:  func.func @second

// -----

func.func @second() {
  func.return
}

// SPLIT:      // --{{---}}
// SPLIT-NEXT: builtin.module
// SPLIT-NEXT:   func.func @second
