// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

tile.kernel @memory(%x: !tile.ref<[?, 8], f32, global>, %s: f32) grid(%i of %n, %j of %m) axes [parallel, ordered] {
  %w = tile.window %x[%i, %j] blocked [1, 4] squeezed [0] : !tile.ref<[?, 8], f32, global> -> !tile.ref<[4], f32, global>
  %v = tile.window %x[%i, %j] element [2, 4] squeezed [] : !tile.ref<[?, 8], f32, global> -> !tile.ref<[2, 4], f32, global>
  %f = tile.flatten %x : !tile.ref<[?, 8], f32, global> -> !tile.ref<[?], f32, global>
  %p = tile.reinterpret %f [%n, %m] : !tile.ref<[?], f32, global> -> !tile.ref<[?, ?], f32, global>
  %d = tile.dim %x, 0 : !tile.ref<[?, 8], f32, global>
  %scratch = tile.alloc %s : f32 -> !tile.ref<[4], f32, scratch>
  %mask = arith.constant dense<[true, false, true, true]> : tensor<4xi1>
  %a = tile.load %w : !tile.ref<[4], f32, global> -> tensor<4xf32>
  %b = tile.load %w other %s : f32 : !tile.ref<[4], f32, global> -> tensor<4xf32>
  %c = tile.load %w mask %mask : tensor<4xi1> : !tile.ref<[4], f32, global> -> tensor<4xf32>
  %e = tile.load %w mask %mask : tensor<4xi1> other %s : f32 : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %a, %scratch : tensor<4xf32>, !tile.ref<[4], f32, scratch>
  tile.store %e, %w mask %mask : tensor<4xi1> : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}

// CHECK:       tile.kernel @memory(%x: !tile.ref<[?, 8], f32, global>, %s: f32) grid(%i of %n, %j of %m) axes [parallel, ordered] {
// CHECK-NEXT:    %w = tile.window %x[%i, %j] blocked [1, 4] squeezed [0] : !tile.ref<[?, 8], f32, global> -> !tile.ref<[4], f32, global>
// CHECK-NEXT:    %v = tile.window %x[%i, %j] element [2, 4] squeezed [] : !tile.ref<[?, 8], f32, global> -> !tile.ref<[2, 4], f32, global>
// CHECK-NEXT:    %f = tile.flatten %x : !tile.ref<[?, 8], f32, global> -> !tile.ref<[?], f32, global>
// CHECK-NEXT:    %p = tile.reinterpret %f[%n, %m] : !tile.ref<[?], f32, global> -> !tile.ref<[?, ?], f32, global>
// CHECK-NEXT:    %d = tile.dim %x, 0 : !tile.ref<[?, 8], f32, global>
// CHECK-NEXT:    %scratch = tile.alloc %s : f32 -> !tile.ref<[4], f32, scratch>
// CHECK-NEXT:    %mask = arith.constant
// CHECK-NEXT:    %a = tile.load %w : !tile.ref<[4], f32, global> -> tensor<4xf32>
// CHECK-NEXT:    %b = tile.load %w other %s : f32 : !tile.ref<[4], f32, global> -> tensor<4xf32>
// CHECK-NEXT:    %c = tile.load %w mask %mask : tensor<4xi1> : !tile.ref<[4], f32, global> -> tensor<4xf32>
// CHECK-NEXT:    %e = tile.load %w mask %mask : tensor<4xi1> other %s : f32 : !tile.ref<[4], f32, global> -> tensor<4xf32>
// CHECK-NEXT:    tile.store %a, %scratch : tensor<4xf32>, !tile.ref<[4], f32, scratch>
// CHECK-NEXT:    tile.store %e, %w mask %mask : tensor<4xi1> : tensor<4xf32>, !tile.ref<[4], f32, global>
// CHECK-NEXT:    tile.return
// CHECK-NEXT:  }

// GENERIC:      "tile.kernel"() <{sym_name = "memory", axes = ["parallel", "ordered"]}> ({
// GENERIC-NEXT: ^{{.*}}(%x: !tile.ref<[?, 8], f32, global>, %s: f32, %i: index, %j: index, %n: index, %m: index):
// GENERIC-NEXT:   %w = "tile.window"(%x, %i, %j) <{indexing = "blocked", shape = array<i64: 1, 4>, squeezed = array<i64: 0>}> : (!tile.ref<[?, 8], f32, global>, index, index) -> !tile.ref<[4], f32, global>
// GENERIC:        %e = "tile.load"(%w, %mask, %s) <{operandSegmentSizes = array<i32: 1, 1, 1>}>
// GENERIC:        "tile.return"() : () -> ()

tile.kernel @shapes(%x: f32, %i: index) grid() axes [] {
  %a = tile.splat %x : f32 -> tensor<2x1xf32>
  %b = tile.iota 1 : tensor<2x3xi32>
  %c = tile.broadcast %a : tensor<2x1xf32> -> tensor<2x4xf32>
  %d = tile.reshape %c : tensor<2x4xf32> -> tensor<8xf32>
  %e = tile.transpose %c [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %f = tile.slice %c from [0, 3] step [1, -2] : tensor<2x4xf32> -> tensor<2x2xf32>
  %g = tile.concat 1 of %c, %f : tensor<2x4xf32>, tensor<2x2xf32> -> tensor<2x6xf32>
  %h = tile.extract %c[%i, %i] : tensor<2x4xf32> -> f32
  tile.return
}

// CHECK:       tile.kernel @shapes(%x: f32, %i: index) grid() axes [] {
// CHECK-NEXT:    %a = tile.splat %x : f32 -> tensor<2x1xf32>
// CHECK-NEXT:    %b = tile.iota 1 : tensor<2x3xi32>
// CHECK-NEXT:    %c = tile.broadcast %a : tensor<2x1xf32> -> tensor<2x4xf32>
// CHECK-NEXT:    %d = tile.reshape %c : tensor<2x4xf32> -> tensor<8xf32>
// CHECK-NEXT:    %e = tile.transpose %c [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
// CHECK-NEXT:    %f = tile.slice %c from [0, 3] step [1, -2] : tensor<2x4xf32> -> tensor<2x2xf32>
// CHECK-NEXT:    %g = tile.concat 1 of %c, %f : tensor<2x4xf32>, tensor<2x2xf32> -> tensor<2x6xf32>
// CHECK-NEXT:    %h = tile.extract %c[%i, %i] : tensor<2x4xf32> -> f32
// CHECK-NEXT:    tile.return
// CHECK-NEXT:  }

tile.kernel @compute(%f: f32, %n: i32, %c: i1, %i: index) grid() axes [] {
  %x = tile.splat %f : f32 -> tensor<2x2xf32>
  %k = tile.splat %n : i32 -> tensor<2xi32>
  %a = tile.cmpf olt %x, %x fastmath<nsz> : tensor<2x2xf32> -> tensor<2x2xi1>
  %b = tile.cmpi ult %n, %n : i32 -> i1
  %d = tile.select %a, %x, %x fastmath<nsz> : tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %e = tile.select %c, %k, %k : i1, tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
  %g = tile.cast %x : tensor<2x2xf32> -> tensor<2x2xbf16>
  %h = tile.cast unsigned_source %k : tensor<2xi32> -> tensor<2xf16>
  %j = tile.cast unsigned_result %f : f32 -> i8
  %l = tile.cast unsigned_source unsigned_result %i : index -> i16
  %m = tile.int_div floordivs %n, %n : i32
  %o = tile.shift right_logical %k, %k : tensor<2xi32>
  %u = tile.scale %x, %x : tensor<2x2xf32>
  %y = tile.lookup %k in dense<[1.0, -2.5]> : tensor<2xf32> : tensor<2xi32> -> tensor<2xf32>
  %z = tile.lookup %n in dense<0.5> : tensor<1xf32> : i32 -> f32
  %p = tile.reduce maximum %x axis 0 lanes 1 fastmath<nsz> : tensor<2x2xf32> -> tensor<2xf32>
  %q = tile.reduce add %k axis 0 lanes 64 : tensor<2xi32> -> i32
  %t = tile.reduce mul %x axis 1 lanes 64 count %i fastmath<reassoc> : tensor<2x2xf32> -> tensor<2xf32>
  %v, %w = tile.top_merge %p, %k with %p, %k : tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32> -> tensor<2xf32>, tensor<2xi32>
  %r = tile.dot %g, %g, %x fused true fastmath<nsz> : tensor<2x2xbf16>, tensor<2x2xbf16> -> tensor<2x2xf32>
  %s = tile.dot %x, %x, %x counts(%i, %i, %i) fused false : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  tile.check %c, "bad"
  tile.check %c, "element {} of {} is bad" values %i, %n : index, i32
  tile.check %c, "index {}" bounds values %i : index
  tile.return
}

// CHECK:       tile.kernel @compute(%f: f32, %n: i32, %c: i1, %i: index) grid() axes [] {
// CHECK:         %a = tile.cmpf olt %x, %x fastmath<nsz> : tensor<2x2xf32> -> tensor<2x2xi1>
// CHECK-NEXT:    %b = tile.cmpi ult %n, %n : i32 -> i1
// CHECK-NEXT:    %d = tile.select %a, %x, %x fastmath<nsz> : tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
// CHECK-NEXT:    %e = tile.select %c, %k, %k : i1, tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
// CHECK-NEXT:    %g = tile.cast %x : tensor<2x2xf32> -> tensor<2x2xbf16>
// CHECK-NEXT:    %h = tile.cast unsigned_source %k : tensor<2xi32> -> tensor<2xf16>
// CHECK-NEXT:    %j = tile.cast unsigned_result %f : f32 -> i8
// CHECK-NEXT:    %l = tile.cast unsigned_source unsigned_result %i : index -> i16
// CHECK-NEXT:    %m = tile.int_div floordivs %n, %n : i32
// CHECK-NEXT:    %o = tile.shift right_logical %k, %k : tensor<2xi32>
// CHECK-NEXT:    %u = tile.scale %x, %x : tensor<2x2xf32>
// CHECK-NEXT:    %y = tile.lookup %k in dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32> : tensor<2xi32> -> tensor<2xf32>
// CHECK-NEXT:    %z = tile.lookup %n in dense<5.000000e-01> : tensor<1xf32> : i32 -> f32
// CHECK-NEXT:    %p = tile.reduce maximum %x axis 0 lanes 1 fastmath<nsz> : tensor<2x2xf32> -> tensor<2xf32>
// CHECK-NEXT:    %q = tile.reduce add %k axis 0 lanes 64 : tensor<2xi32> -> i32
// CHECK-NEXT:    %t = tile.reduce mul %x axis 1 lanes 64 count %i fastmath<reassoc> : tensor<2x2xf32> -> tensor<2xf32>
// CHECK-NEXT:    %v, %w = tile.top_merge %p, %k with %p, %k : tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32> -> tensor<2xf32>, tensor<2xi32>
// CHECK-NEXT:    %r = tile.dot %g, %g, %x fused true fastmath<nsz> : tensor<2x2xbf16>, tensor<2x2xbf16> -> tensor<2x2xf32>
// CHECK-NEXT:    %s = tile.dot %x, %x, %x counts(%i, %i, %i) fused false : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
// CHECK-NEXT:    tile.check %c, "bad"
// CHECK-NEXT:    tile.check %c, "element {} of {} is bad" values %i, %n : index, i32
// CHECK-NEXT:    tile.check %c, "index {}" bounds values %i : index
// CHECK-NEXT:    tile.return
// CHECK-NEXT:  }

func.func @main(%x: !tile.ref<[?, 8], f32, global>, %s: f32) {
  %n = tile.dim %x, 0 : !tile.ref<[?, 8], f32, global>
  tile.set_dim "rows", %n
  %b = tile.buffer ["2*rows + 1", "8"] : !tile.ref<[?, 8], f32, global>
  %there = tile.buffer ["2*rows + 1", "8"] {halfulp.device = "gpu:0"} : !tile.ref<[?, 8], f32, global>
  tile.transfer %b to %there : !tile.ref<[?, 8], f32, global> to !tile.ref<[?, 8], f32, global>
  tile.launch @memory grid(%n, %n) (%b, %s) : !tile.ref<[?, 8], f32, global>, f32
  func.return
}

// CHECK:       func.func @main(%x: !tile.ref<[?, 8], f32, global>, %s: f32) {
// CHECK-NEXT:    %n = tile.dim %x, 0 : !tile.ref<[?, 8], f32, global>
// CHECK-NEXT:    tile.set_dim "rows", %n
// CHECK-NEXT:    %b = tile.buffer ["2*rows + 1", "8"] : !tile.ref<[?, 8], f32, global>
// CHECK-NEXT:    %there = tile.buffer ["2*rows + 1", "8"] {halfulp.device = "gpu:0"} : !tile.ref<[?, 8], f32, global>
// CHECK-NEXT:    tile.transfer %b to %there : !tile.ref<[?, 8], f32, global> to !tile.ref<[?, 8], f32, global>
// CHECK-NEXT:    tile.launch @memory grid(%n, %n) (%b, %s) : !tile.ref<[?, 8], f32, global>, f32
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }

// GENERIC:      "tile.launch"(%n, %n, %b, %s) <{kernel = @memory, operandSegmentSizes = array<i32: 2, 2>}>
