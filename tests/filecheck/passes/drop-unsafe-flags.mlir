// RUN: halfulp-opt %s -p drop-unsafe-flags | filecheck %s

// Comparisons, selects and reductions lose nnan and ninf and keep the rest; plain arithmetic keeps all.
tile.kernel @always(%x: !tile.ref<[8], f32, global>) grid(%i of %n) axes [parallel] {
  %b = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %p = arith.mulf %b, %b fastmath<nnan, ninf, nsz> : tensor<8xf32>
  %m = tile.cmpf olt %b, %p fastmath<nnan, nsz> : tensor<8xf32> -> tensor<8xi1>
  %s = tile.select %m, %b, %p fastmath<ninf, nsz> : tensor<8xi1>, tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  %r = tile.reduce maximum %p axis 0 lanes 64 fastmath<nnan, ninf, nsz> : tensor<8xf32> -> f32
  tile.store %s, %x : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}

// What a mask, a branch, an address or the bound of a loop is computed from, also through casts and a loop.
tile.kernel @decisions(%x: !tile.ref<[8], f32, global>, %y: !tile.ref<[8], f32, global>) grid(%i of %n) axes [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %for_mask = arith.addf %b, %b fastmath<nnan, nsz> : tensor<8xf32>
  %mask = tile.cmpf olt %for_mask, %b : tensor<8xf32> -> tensor<8xi1>
  %first = tile.extract %b[%c0] : tensor<8xf32> -> f32
  %for_bound = arith.mulf %first, %first fastmath<nnan> : f32
  %wide = tile.cast %for_bound : f32 -> i32
  %bound = tile.cast %wide : i32 -> index
  %sum = scf.for %k = %c0 to %bound step %c1 iter_args(%a = %first) -> (f32) {
    %in_loop = arith.addf %a, %first fastmath<ninf> : f32
    scf.yield %in_loop : f32
  }
  %branch = tile.cmpf ogt %sum, %first : f32 -> i1
  scf.if %branch {
    %not_deciding = arith.divf %b, %b fastmath<nnan> : tensor<8xf32>
    tile.store %not_deciding, %y mask %mask : tensor<8xi1> : tensor<8xf32>, !tile.ref<[8], f32, global>
  }
  tile.return
}

// Through scratch memory, and what an infinite constant reaches: the pad of a load, the row that it fills up.
tile.kernel @memory_and_constants(%x: !tile.ref<[?], f32, global>, %y: !tile.ref<[8], f32, global>) grid(%i of %n) axes [parallel] {
  %c0 = arith.constant 0 : index
  %infinity = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %w = tile.window %x[%i] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
  %b = tile.load %w other %infinity : f32 : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %reached = arith.subf %b, %b fastmath<ninf, nsz> : tensor<8xf32>
  %plain = tile.load %w other %one : f32 : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %not_reached = arith.subf %plain, %plain fastmath<ninf, nsz> : tensor<8xf32>
  %memory = tile.alloc %one : f32 -> !tile.ref<[8], f32, scratch>
  %stored = arith.addf %plain, %plain fastmath<nnan> : tensor<8xf32>
  tile.store %stored, %memory : tensor<8xf32>, !tile.ref<[8], f32, scratch>
  %again = tile.load %memory : !tile.ref<[8], f32, scratch> -> tensor<8xf32>
  %mask = tile.cmpf olt %again, %plain : tensor<8xf32> -> tensor<8xi1>
  tile.store %not_reached, %y mask %mask : tensor<8xi1> : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}

// What a place in a table is computed from: the table may lie in memory.
tile.kernel @lookups(%x: !tile.ref<[8], f32, global>, %y: !tile.ref<[8], f32, global>) grid(%i of %n) axes [parallel] {
  %b = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
  %for_place = arith.addf %b, %b fastmath<nnan, nsz> : tensor<8xf32>
  %place = tile.cast %for_place : tensor<8xf32> -> tensor<8xi32>
  %entry = tile.lookup %place in dense<[1.0, 2.0]> : tensor<2xf32> : tensor<8xi32> -> tensor<8xf32>
  %with_entry = arith.mulf %entry, %b fastmath<nnan, nsz> : tensor<8xf32>
  tile.store %with_entry, %y : tensor<8xf32>, !tile.ref<[8], f32, global>
  tile.return
}

// CHECK-LABEL: tile.kernel @always(
// CHECK-NEXT: %b = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
// CHECK-NEXT: %p = arith.mulf %b, %b fastmath<nnan,ninf,nsz> : tensor<8xf32>
// CHECK-NEXT: %m = tile.cmpf olt %b, %p fastmath<nsz> : tensor<8xf32> -> tensor<8xi1>
// CHECK-NEXT: %s = tile.select %m, %b, %p fastmath<nsz> : tensor<8xi1>, tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %r = tile.reduce maximum %p axis 0 lanes 64 fastmath<nsz> : tensor<8xf32> -> f32
// CHECK-NEXT: tile.store %s, %x : tensor<8xf32>, !tile.ref<[8], f32, global>
// CHECK-NEXT: tile.return
// CHECK-LABEL: tile.kernel @decisions(
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %b = tile.load %x : !tile.ref<[8], f32, global> -> tensor<8xf32>
// CHECK-NEXT: %for_mask = arith.addf %b, %b fastmath<nsz> : tensor<8xf32>
// CHECK-NEXT: %mask = tile.cmpf olt %for_mask, %b : tensor<8xf32> -> tensor<8xi1>
// CHECK-NEXT: %first = tile.extract %b[%c0] : tensor<8xf32> -> f32
// CHECK-NEXT: %for_bound = arith.mulf %first, %first : f32
// CHECK-NEXT: %wide = tile.cast %for_bound : f32 -> i32
// CHECK-NEXT: %bound = tile.cast %wide : i32 -> index
// CHECK-NEXT: %sum = scf.for %k = %c0 to %bound step %c1 iter_args(%a = %first) -> (f32) {
// CHECK-NEXT: %in_loop = arith.addf %a, %first : f32
// CHECK-NEXT: scf.yield %in_loop : f32
// CHECK: %branch = tile.cmpf ogt %sum, %first : f32 -> i1
// CHECK-NEXT: scf.if %branch {
// CHECK-NEXT: %not_deciding = arith.divf %b, %b fastmath<nnan> : tensor<8xf32>
// CHECK-NEXT: tile.store %not_deciding, %y mask %mask : tensor<8xi1> : tensor<8xf32>, !tile.ref<[8], f32, global>
// CHECK: tile.return
// CHECK-LABEL: tile.kernel @memory_and_constants(
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %infinity = arith.constant 0xff800000 : f32
// CHECK-NEXT: %one = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: %w = tile.window %x[%i] blocked [8] squeezed [] : !tile.ref<[?], f32, global> -> !tile.ref<[8], f32, global>
// CHECK-NEXT: %b = tile.load %w other %infinity : f32 : !tile.ref<[8], f32, global> -> tensor<8xf32>
// CHECK-NEXT: %reached = arith.subf %b, %b fastmath<nsz> : tensor<8xf32>
// CHECK-NEXT: %plain = tile.load %w other %one : f32 : !tile.ref<[8], f32, global> -> tensor<8xf32>
// CHECK-NEXT: %not_reached = arith.subf %plain, %plain fastmath<ninf,nsz> : tensor<8xf32>
// CHECK-NEXT: %memory = tile.alloc %one : f32 -> !tile.ref<[8], f32, scratch>
// CHECK-NEXT: %stored = arith.addf %plain, %plain : tensor<8xf32>
// CHECK-NEXT: tile.store %stored, %memory : tensor<8xf32>, !tile.ref<[8], f32, scratch>
// CHECK-NEXT: %again = tile.load %memory : !tile.ref<[8], f32, scratch> -> tensor<8xf32>
// CHECK-NEXT: %mask = tile.cmpf olt %again, %plain : tensor<8xf32> -> tensor<8xi1>
// CHECK-NEXT: tile.store %not_reached, %y mask %mask : tensor<8xi1> : tensor<8xf32>, !tile.ref<[8], f32, global>
// CHECK-NEXT: tile.return
// CHECK-LABEL: tile.kernel @lookups(
// CHECK: %for_place = arith.addf %b, %b fastmath<nsz> : tensor<8xf32>
// CHECK: %with_entry = arith.mulf %entry, %b fastmath<nnan,nsz> : tensor<8xf32>
