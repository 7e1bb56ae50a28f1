// RUN: halfulp-opt %s --emit ptx | filecheck %s

// Divisions and roots are correctly rounded, subnormals kept, NaN wins: no .approx and no .ftz anywhere.
tile.kernel @exact(%x: !tile.ref<[64], f32, global>, %y: !tile.ref<[64], f32, global>) grid() axes [] {
  %a = tile.load %x : !tile.ref<[64], f32, global> -> tensor<64xf32>
  %d = arith.divf %a, %a : tensor<64xf32>
  %q = math.sqrt %d : tensor<64xf32>
  %m = arith.maximumf %q, %a : tensor<64xf32>
  %e = math.exp %m : tensor<64xf32>
  tile.store %e, %y : tensor<64xf32>, !tile.ref<[64], f32, global>
  tile.return
}

// CHECK-NOT:   {{\.approx|\.ftz|call}}
// CHECK:       div.rn.f32
// CHECK-NEXT:  sqrt.rn.f32
// CHECK-NEXT:  max.NaN.f32
// CHECK-NOT:   {{\.approx|\.ftz|call|ex2}}
// CHECK:       ret;
