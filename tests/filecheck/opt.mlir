// RUN: halfulp-opt %s | filecheck %s --check-prefix=PRETTY
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: halfulp-opt %s -p "cse,dce" | filecheck %s --check-prefix=PASSES
// RUN: halfulp-opt %s -p "dce,cse" --print-between-passes | filecheck %s --check-prefix=BETWEEN

func.func @square(%x: f32) -> (f32, f32) {
  %a = arith.mulf %x, %x fastmath<nnan> : f32
  %b = arith.mulf %x, %x fastmath<nnan> : f32
  func.return %a, %b : f32, f32
}

// PRETTY-LABEL: func.func @square(%x: f32) -> (f32, f32)
// PRETTY-NEXT:    %a = arith.mulf %x, %x fastmath<nnan> : f32
// PRETTY-NEXT:    %b = arith.mulf %x, %x fastmath<nnan> : f32
// PRETTY-NEXT:    func.return %a, %b : f32, f32

// GENERIC: "func.func"() <{sym_name = "square", function_type = (f32) -> (f32, f32)}>
// GENERIC: "arith.mulf"(%x, %x) <{fastmath = #arith.fastmath<nnan>}> : (f32, f32) -> f32

// PASSES-LABEL: func.func @square
// PASSES-NEXT:    %a = arith.mulf %x, %x fastmath<nnan> : f32
// PASSES-NEXT:    func.return %a, %a : f32, f32

// BETWEEN:      IR after dce:
// BETWEEN:        func.return %a, %b
// BETWEEN-NOT:  IR after
// BETWEEN:        func.return %a, %a
