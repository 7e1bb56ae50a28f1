// RUN: halfulp-opt %s --emit loops | filecheck %s --check-prefix=LOOPS
// RUN: halfulp-opt %s --emit llvm | filecheck %s --check-prefix=LLVM
// RUN: halfulp-opt %s --emit ll | filecheck %s --check-prefix=LL
// RUN: halfulp-opt %s --emit ll --options "fp_contract=off vector_bits=128" | filecheck %s --check-prefix=OFF
// RUN: halfulp-opt %s --emit asm | filecheck %s --check-prefix=ASM
// RUN: halfulp-opt %s -p convert-loops-to-llvm --emit ll | filecheck %s --check-prefix=BOTH

func.func @axpy(%a: f32, %x: f32, %y: f32) -> f32 {
  %product = arith.mulf %a, %x fastmath<nsz> : f32
  %sum = arith.addf %product, %y : f32
  func.return %sum : f32
}

// LOOPS:     func.func @axpy
// LOOPS:       arith.mulf %a, %x fastmath<nsz> : f32

// LLVM:      llvm.func @axpy
// LLVM:        llvm.fmul %a, %x {fastmathFlags = #llvm.fastmath<nsz>} : f32

// LL:        define float @axpy(float %a, float %x, float %y) {{.*}}"fp-contract"="on"
// LL:          fmul nsz float %a, %x

// OFF:       define float @axpy(float %a, float %x, float %y) {{.*}}"fp-contract"="off" "prefer-vector-width"="128"

// ASM:       .globl axpy
// ASM:       axpy:

// BOTH:      define float @axpy
