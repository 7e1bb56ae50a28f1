// RUN: halfulp-opt %s --emit ptx --options "fp_contract=off" | filecheck %s --check-prefix=OFF
// RUN: halfulp-opt %s --emit ptx --arch sm_80 | filecheck %s --check-prefix=SM80
// RUN: halfulp-opt %s --emit ptx --arch sm_100 | filecheck %s --check-prefix=SM100
// RUN: halfulp-opt %s --emit sass --arch sm_90 | filecheck %s --check-prefix=SASS

// Every rounding is written down: nothing is left that ptxas may fuse.
tile.kernel @separate(%x: !tile.ref<[64], f32, global>, %y: !tile.ref<[64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %p = arith.mulf %a, %a : tensor<64xf32>
  %s = arith.addf %p, %a : tensor<64xf32>
  %d = arith.subf %s, %p : tensor<64xf32>
  tile.store %d, %y : tensor<64xf32>, !tile.ref<[64], f32, global>
  tile.return
}

// OFF:         .target sm_90
// OFF:         .visible .entry kernel_separate(
// OFF-NOT:     {{mul|add|sub}}.f32
// OFF:         mul.rn.f32
// OFF-NEXT:    add.rn.f32
// OFF-NEXT:    sub.rn.f32
// OFF-NOT:     fma

// SM80:        .target sm_80
// SM80:        mul.rn.f32
// SM80-NEXT:   add.rn.f32

// SM100:       .target sm_100
// SM100:       mul.rn.f32
// SM100-NEXT:  add.rn.f32

// An fma is an fma, on every target and whatever may be contracted.
tile.kernel @together(%x: !tile.ref<[64], f64, global>, %y: !tile.ref<[64], f32, global>, %z: !tile.ref<[64], f32, global>) grid() axes [] {
  %a = tile.load %y : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %f = math.fma %a, %a, %a : tensor<64xf32>
  tile.store %f, %z : tensor<64xf32>, !tile.ref<[64], f32, global>
  %b = tile.load %x : !tile.ref<[64], f64, global> -> tensor<64xf64>
  %p = arith.mulf %b, %b : tensor<64xf64>
  %s = arith.addf %p, %b : tensor<64xf64>
  tile.store %s, %x : tensor<64xf64>, !tile.ref<[64], f64, global>
  tile.return
}

// OFF:         .visible .entry kernel_together(
// OFF:         fma.rn.f32
// OFF:         mul.rn.f64
// OFF-NEXT:    add.rn.f64

// nvdisasm has the last kernel first.
// SASS-LABEL:  .text.kernel_together:
// SASS:        FFMA
// SASS:        DMUL
// SASS:        DADD
// SASS-LABEL:  .text.kernel_separate:
// SASS-NOT:    FFMA
// SASS:        FMUL
// SASS:        FADD
// SASS:        FADD
// SASS-NOT:    FFMA
