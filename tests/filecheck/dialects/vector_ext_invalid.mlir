// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @cmpf_predicate(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cmpf less, %a, %a : vector<4xf32>
  func.return
}

// CHECK: vector_ext.cmpf: predicate must be one of false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true, not 'less'

// -----

func.func @cmpf_integers(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cmpf olt, %i, %i : vector<4xi32>
  func.return
}

// CHECK: vector_ext.cmpf: compares floats, not vector<4xi32>; use vector_ext.cmpi

// -----

func.func @cmpi_floats(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cmpi slt, %x, %x : f32
  func.return
}

// CHECK: vector_ext.cmpi: compares integers, not f32; use vector_ext.cmpf

// -----

func.func @cmpi_flags(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cmpi slt, %i, %i fastmath<nnan> : vector<4xi32>
  func.return
}

// CHECK: vector_ext.cmpi: fastmath flags need float values

// -----

func.func @cmpi_number(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = "vector_ext.cmpi"(%i, %i) <{predicate = 10 : i64}> : (vector<4xi32>, vector<4xi32>) -> vector<4xi1>
  func.return
}

// CHECK: vector_ext.cmpi: no predicate has the number 10

// -----

func.func @cmpf_result(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = "vector_ext.cmpf"(%a, %a) <{predicate = 1 : i64}> : (vector<4xf32>, vector<4xf32>) -> i1
  func.return
}

// CHECK: vector_ext.cmpf: result must be vector<4xi1>, not i1

// -----

func.func @cmpf_rank(%a: vector<2x2xf32>) {
  %r = vector_ext.cmpf olt, %a, %a : vector<2x2xf32>
  func.return
}

// CHECK: vector_ext.cmpf: lhs must be a scalar or a fixed 1-D vector, not vector<2x2xf32>

// -----

func.func @select_condition(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>, %d: vector<8xi1>) {
  %r = vector_ext.select %d, %a, %a : vector<8xi1>, vector<4xf32>
  func.return
}

// CHECK: vector_ext.select: condition must be i1 or vector<4xi1>, not vector<8xi1>

// -----

func.func @select_flags(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.select %c, %i, %i fastmath<nsz> : vector<4xi1>, vector<4xi32>
  func.return
}

// CHECK: vector_ext.select: fastmath flags need float values, not vector<4xi32>

// -----

func.func @cast_kind(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %a extf : vector<4xf32> to vector<4xf16>
  func.return
}

// CHECK: vector_ext.cast: extf needs a wider result, not f32 to f16

// -----

func.func @cast_narrow(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %i trunci : vector<4xi32> to vector<4xi64>
  func.return
}

// CHECK: vector_ext.cast: trunci needs a narrower result, not i32 to i64

// -----

func.func @cast_lanes(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %i sitofp : vector<4xi32> to vector<8xf32>
  func.return
}

// CHECK: vector_ext.cast: lanes must not change from vector<4xi32> to vector<8xf32>

// -----

func.func @cast_source(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %a sitofp : vector<4xf32> to vector<4xf64>
  func.return
}

// CHECK: vector_ext.cast: sitofp casts from an integer type, not f32

// -----

func.func @cast_result(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %a fptosi_sat : vector<4xf32> to vector<4xf64>
  func.return
}

// CHECK: vector_ext.cast: fptosi_sat casts to an integer type, not f64

// -----

func.func @cast_index(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %i index_cast : vector<4xi32> to vector<4xi64>
  func.return
}

// CHECK: vector_ext.cast: index_cast casts between index and an integer type, not i32 to i64

// -----

func.func @cast_flags(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.cast %i sitofp fastmath<nnan> : vector<4xi32> to vector<4xf32>
  func.return
}

// CHECK: vector_ext.cast: fastmath flags need extf or truncf (float to float), not sitofp

// -----

func.func @gather_base(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %m: memref<?x?xf32>) {
  %r = vector_ext.gather %m[%i], %c, %a : memref<?x?xf32>, vector<4xi32>, vector<4xi1> into vector<4xf32>
  func.return
}

// CHECK: vector_ext.gather: base must be a flat memref<?xT>, not memref<?x?xf32>

// -----

func.func @gather_element(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>, %h: vector<4xf64>) {
  %r = vector_ext.gather %m[%i], %c, %h : memref<?xf32>, vector<4xi32>, vector<4xi1> into vector<4xf64>
  func.return
}

// CHECK: vector_ext.gather: vector element type must be that of the memref, f32, not f64

// -----

func.func @gather_mask(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>, %d: vector<8xi1>) {
  %r = vector_ext.gather %m[%i], %d, %a : memref<?xf32>, vector<4xi32>, vector<8xi1> into vector<4xf32>
  func.return
}

// CHECK: vector_ext.gather: mask must be vector<4xi1>, not vector<8xi1>

// -----

func.func @scatter_indices(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>, %s: vector<4xi16>) {
  vector_ext.scatter %a, %m[%s], %c : vector<4xf32>, memref<?xf32>, vector<4xi16>, vector<4xi1>
  func.return
}

// CHECK: vector_ext.scatter: indices must be vector<4xi32> or vector<4xi64>, not vector<4xi16>

// -----

func.func @bitmask_operand(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.bitmask %i : vector<4xi32> to i4
  func.return
}

// CHECK: vector_ext.bitmask: operand must be a vector of i1, not vector<4xi32>

// -----

func.func @bitmask_result(%a: vector<4xf32>, %i: vector<4xi32>, %c: vector<4xi1>, %x: f32, %m: memref<?xf32>) {
  %r = vector_ext.bitmask %c : vector<4xi1> to i8
  func.return
}

// CHECK: vector_ext.bitmask: result must have one bit per lane, i4, not i8

// -----

func.func @prefetch_base(%m: memref<?x?xf32>, %x: index) {
  vector_ext.prefetch %m[%x] : memref<?x?xf32>
  func.return
}

// CHECK: vector_ext.prefetch: base must be a flat memref<?xT>, not memref<?x?xf32>

// -----

func.func @scale_lanes(%a: vector<32xf32>) {
  %r = vector_ext.scale %a, %a : vector<32xf32>
  func.return
}

// CHECK: vector_ext.scale: value must be an f32 or a vector of 2, 4, 8 or 16 of them, not vector<32xf32>

// -----

func.func @scale_doubles(%a: f64) {
  %r = vector_ext.scale %a, %a : f64
  func.return
}

// CHECK: vector_ext.scale: value must be an f32 or a vector of 2, 4, 8 or 16 of them, not f64

// -----

func.func @lookup_index(%i: vector<4xi64>) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : vector<4xi64> -> vector<4xf32>
  func.return
}

// CHECK: vector_ext.lookup: index must be of i32, not vector<4xi64>

// -----

func.func @lookup_result(%i: vector<4xi32>) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : vector<4xi32> -> f32
  func.return
}

// CHECK: vector_ext.lookup: the result must be vector<4xf32>, not f32

// -----

func.func @lookup_length(%i: vector<4xi32>) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : vector<4xi32> -> vector<4xf32>
  func.return
}

// CHECK: vector_ext.lookup: table must have a power of two as its length, not 3

// -----

func.func @lookup_doubles(%i: vector<4xi32>) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0]> : tensor<2xf64> : vector<4xi32> -> vector<4xf32>
  func.return
}

// CHECK: vector_ext.lookup: table must be a row of f32, not tensor<2xf64>

// -----

func.func @lookup_rows(%i: vector<4xi32>) {
  %r = vector_ext.lookup %i in dense<[[1.0], [2.0]]> : tensor<2x1xf32> : vector<4xi32> -> vector<4xf32>
  func.return
}

// CHECK: vector_ext.lookup: table must be a row of f32, not tensor<2x1xf32>

// -----

func.func @lookup_infinity(%i: vector<4xi32>) {
  %r = vector_ext.lookup %i in dense<"0x0000803F0000807F"> : tensor<2xf32> : vector<4xi32> -> vector<4xf32>
  func.return
}

// CHECK: vector_ext.lookup: table must hold finite numbers, not inf

// -----

func.func @lookup_two_axes(%i: vector<2x2xi32>) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : vector<2x2xi32> -> vector<2x2xf32>
  func.return
}

// CHECK: vector_ext.lookup: index must be a scalar or a fixed 1-D vector, not vector<2x2xi32>
