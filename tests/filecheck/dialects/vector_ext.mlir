// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

func.func @ops(%m : memref<?xf32>, %a : vector<16xf32>, %b : vector<16xf32>, %i : vector<16xi64>, %s : f32, %x : index) -> vector<16xf32> {
  %c = vector_ext.cmpf olt, %a, %b : vector<16xf32>
  %c2 = vector_ext.cmpf olt, %s, %s fastmath<nnan,nsz> : f32
  %d = vector_ext.cmpi slt, %i, %i : vector<16xi64>
  %r = vector_ext.select %c, %a, %b fastmath<nnan> : vector<16xi1>, vector<16xf32>
  %r2 = vector_ext.select %c2, %a, %b : i1, vector<16xf32>
  %h = vector_ext.cast %a truncf fastmath<nnan> : vector<16xf32> to vector<16xbf16>
  %k = vector_ext.cast %s fptosi_sat : f32 to i32
  %z = vector_ext.cast %x index_cast : index to i32
  %g = vector_ext.gather %m[%i], %c, %r : memref<?xf32>, vector<16xi64>, vector<16xi1> into vector<16xf32>
  vector_ext.scatter %g, %m[%i], %c : vector<16xf32>, memref<?xf32>, vector<16xi64>, vector<16xi1>
  %bits = vector_ext.bitmask %c : vector<16xi1> to i16
  vector_ext.prefetch %m[%x] : memref<?xf32>
  %p = vector_ext.scale %a, %b : vector<16xf32>
  %q = vector_ext.lookup %k in dense<[1.0, -2.5]> : tensor<2xf32> : i32 -> f32
  func.return %g : vector<16xf32>
}

// CHECK-LABEL: func.func @ops(%m: memref<?xf32>, %a: vector<16xf32>, %b: vector<16xf32>, %i: vector<16xi64>, %s: f32, %x: index) -> vector<16xf32> {
// CHECK-NEXT:     %c = vector_ext.cmpf olt, %a, %b : vector<16xf32>
// CHECK-NEXT:     %c2 = vector_ext.cmpf olt, %s, %s fastmath<nnan,nsz> : f32
// CHECK-NEXT:     %d = vector_ext.cmpi slt, %i, %i : vector<16xi64>
// CHECK-NEXT:     %r = vector_ext.select %c, %a, %b fastmath<nnan> : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:     %r2 = vector_ext.select %c2, %a, %b : i1, vector<16xf32>
// CHECK-NEXT:     %h = vector_ext.cast %a truncf fastmath<nnan> : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:     %k = vector_ext.cast %s fptosi_sat : f32 to i32
// CHECK-NEXT:     %z = vector_ext.cast %x index_cast : index to i32
// CHECK-NEXT:     %g = vector_ext.gather %m[%i], %c, %r : memref<?xf32>, vector<16xi64>, vector<16xi1> into vector<16xf32>
// CHECK-NEXT:     vector_ext.scatter %g, %m[%i], %c : vector<16xf32>, memref<?xf32>, vector<16xi64>, vector<16xi1>
// CHECK-NEXT:     %bits = vector_ext.bitmask %c : vector<16xi1> to i16
// CHECK-NEXT:     vector_ext.prefetch %m[%x] : memref<?xf32>
// CHECK-NEXT:     %p = vector_ext.scale %a, %b : vector<16xf32>
// CHECK-NEXT:     %q = vector_ext.lookup %k in dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32> : i32 -> f32
// CHECK-NEXT:     func.return %g : vector<16xf32>
// CHECK-NEXT:   }

// GENERIC: "builtin.module"() ({
// GENERIC-NEXT:   "func.func"() <{sym_name = "ops", function_type = (memref<?xf32>, vector<16xf32>, vector<16xf32>, vector<16xi64>, f32, index) -> vector<16xf32>}> ({
// GENERIC-NEXT:   ^bb0(%m: memref<?xf32>, %a: vector<16xf32>, %b: vector<16xf32>, %i: vector<16xi64>, %s: f32, %x: index):
// GENERIC-NEXT:     %c = "vector_ext.cmpf"(%a, %b) <{predicate = 4 : i64, fastmath = #arith.fastmath<none>}> : (vector<16xf32>, vector<16xf32>) -> vector<16xi1>
// GENERIC-NEXT:     %c2 = "vector_ext.cmpf"(%s, %s) <{predicate = 4 : i64, fastmath = #arith.fastmath<nnan,nsz>}> : (f32, f32) -> i1
// GENERIC-NEXT:     %d = "vector_ext.cmpi"(%i, %i) <{predicate = 2 : i64}> : (vector<16xi64>, vector<16xi64>) -> vector<16xi1>
// GENERIC-NEXT:     %r = "vector_ext.select"(%c, %a, %b) <{fastmath = #arith.fastmath<nnan>}> : (vector<16xi1>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// GENERIC-NEXT:     %r2 = "vector_ext.select"(%c2, %a, %b) <{fastmath = #arith.fastmath<none>}> : (i1, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// GENERIC-NEXT:     %h = "vector_ext.cast"(%a) <{kind = #vector_ext.cast_kindtruncf, fastmath = #arith.fastmath<nnan>}> : (vector<16xf32>) -> vector<16xbf16>
// GENERIC-NEXT:     %k = "vector_ext.cast"(%s) <{kind = #vector_ext.cast_kindfptosi_sat, fastmath = #arith.fastmath<none>}> : (f32) -> i32
// GENERIC-NEXT:     %z = "vector_ext.cast"(%x) <{kind = #vector_ext.cast_kindindex_cast, fastmath = #arith.fastmath<none>}> : (index) -> i32
// GENERIC-NEXT:     %g = "vector_ext.gather"(%m, %i, %c, %r) : (memref<?xf32>, vector<16xi64>, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
// GENERIC-NEXT:     "vector_ext.scatter"(%g, %m, %i, %c) : (vector<16xf32>, memref<?xf32>, vector<16xi64>, vector<16xi1>) -> ()
// GENERIC-NEXT:     %bits = "vector_ext.bitmask"(%c) : (vector<16xi1>) -> i16
// GENERIC-NEXT:     "vector_ext.prefetch"(%m, %x) : (memref<?xf32>, index) -> ()
// GENERIC-NEXT:     %p = "vector_ext.scale"(%a, %b) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// GENERIC-NEXT:     %q = "vector_ext.lookup"(%k) <{table = dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32>}> : (i32) -> f32
// GENERIC-NEXT:     "func.return"(%g) : (vector<16xf32>) -> ()
// GENERIC-NEXT:   }) : () -> ()
// GENERIC-NEXT: }) : () -> ()
