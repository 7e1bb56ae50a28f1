// RUN: halfulp-opt %s -p 'convert-loops-to-llvm{permutes=512}' | filecheck %s --check-prefix=AVX512
// RUN: halfulp-opt %s -p 'convert-loops-to-llvm{permutes=256}' | filecheck %s --check-prefix=AVX2
// RUN: halfulp-opt %s -p convert-loops-to-llvm | filecheck %s --check-prefix=MEMORY
// RUN: halfulp-opt %s -p 'convert-loops-to-llvm{arch=nvptx64}' | filecheck %s --check-prefix=GPU

// A register that holds the table is permuted; short tables are repeated in it. Of one twice as long, two registers are
// permuted and a bit of the index chooses. Without such an instruction, for scalars and for longer tables, each lane
// loads from a constant of the module, of which a function has one for each table.

func.func @short(%i: vector<16xi32>) -> vector<16xf32> {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : vector<16xi32> -> vector<16xf32>
  func.return %r : vector<16xf32>
}

// AVX512-LABEL: llvm.func @short(
// AVX512-NEXT:    %[[TABLE:[0-9]+]] = llvm.mlir.constant(dense<[1.000000e+00, 2.000000e+00, 1.000000e+00, 2.000000e+00, {{.*}}]> : vector<16xf32>)
// AVX512-NEXT:    llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%[[TABLE]], %i) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
// AVX512-NEXT:    llvm.return

func.func @few_lanes(%i: vector<4xi32>) -> vector<4xf32> {
  %r = vector_ext.lookup %i in dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]> : tensor<16xf32> : vector<4xi32> -> vector<4xf32>
  func.return %r : vector<4xf32>
}

// AVX512-LABEL: llvm.func @few_lanes(
// AVX512:         %[[WIDE:[0-9]+]] = llvm.shufflevector %i{{[_0-9]*}}, {{.*}} : vector<4xi32>
// AVX512:         %[[FOUND:[0-9]+]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%{{[0-9]+}}, %[[WIDE]])
// AVX512-NEXT:    llvm.shufflevector %[[FOUND]], %[[FOUND]] [0, 1, 2, 3] : vector<16xf32>

// AVX2-LABEL:   llvm.func @few_lanes(
// AVX2:           %[[WIDE:[0-9]+]] = llvm.shufflevector %i{{[_0-9]*}}, {{.*}} : vector<4xi32>
// AVX2:           %[[LOW:[0-9]+]] = llvm.call_intrinsic "llvm.x86.avx2.permps"(%{{[0-9]+}}, %[[WIDE]]) : (vector<8xf32>, vector<8xi32>) -> vector<8xf32>
// AVX2:           %[[HIGH:[0-9]+]] = llvm.call_intrinsic "llvm.x86.avx2.permps"(%{{[0-9]+}}, %[[WIDE]])
// AVX2:           %[[EIGHTS:[0-9]+]] = llvm.mlir.constant(dense<8> : vector<8xi32>)
// AVX2-NEXT:      %[[BIT:[0-9]+]] = llvm.and %[[WIDE]], %[[EIGHTS]] : vector<8xi32>
// AVX2:           %[[IS_LOW:[0-9]+]] = llvm.icmp "eq" %[[BIT]], %{{[0-9]+}} : vector<8xi32>
// AVX2-NEXT:      llvm_ext.select %[[IS_LOW]], %[[LOW]], %[[HIGH]] :

func.func @scalars(%i: i32, %j: i32) -> (f32, f32) {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32> : i32 -> f32
  %s = vector_ext.lookup %j in dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32> : i32 -> f32
  func.return %r, %s : f32, f32
}

// AVX512:       llvm.mlir.global internal constant @scalars_table_0(dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 5.000000e+00]> : tensor<4xf32>) {addr_space = 0 : i32, alignment = 64 : i64} : !llvm.array<4 x f32>
// AVX512-NEXT:  llvm.func @scalars(
// AVX512:         %[[BASE:[0-9]+]] = llvm.mlir.addressof @scalars_table_0 : !llvm.ptr
// AVX512:         %[[WITHIN:[0-9]+]] = llvm.and %i{{[_0-9]*}}, %{{[0-9]+}} : i32
// AVX512-NEXT:    %[[PLACE:[0-9]+]] = llvm.zext %[[WITHIN]] : i32 to i64
// AVX512-NEXT:    %[[AT:[0-9]+]] = llvm.getelementptr inbounds %[[BASE]][%[[PLACE]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// AVX512-NEXT:    llvm.load %[[AT]]
// AVX512:         llvm.mlir.addressof @scalars_table_0 : !llvm.ptr

// GPU:          llvm.mlir.global internal constant @scalars_table_0(dense<{{.*}}> : tensor<4xf32>) {addr_space = 1 : i32, alignment = 64 : i64} : !llvm.array<4 x f32>
// GPU:            llvm.mlir.addressof @scalars_table_0 : !llvm.ptr<1>
// GPU:            llvm.getelementptr inbounds %{{[0-9]+}}[%{{[0-9]+}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32

func.func @lanes(%i: vector<2xi32>) -> vector<2xf32> {
  %r = vector_ext.lookup %i in dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32> : vector<2xi32> -> vector<2xf32>
  func.return %r : vector<2xf32>
}

// MEMORY:       llvm.mlir.global internal constant @lanes_table_0(
// MEMORY:         %[[WITHIN:[0-9]+]] = llvm.and %i{{[_0-9]*}}, %{{[0-9]+}} : vector<2xi32>
// MEMORY:         %[[FIRST:[0-9]+]] = llvm_ext.extractelement %[[WITHIN]][
// MEMORY:         %[[ENTRY:[0-9]+]] = llvm.load
// MEMORY-NEXT:    llvm.insertelement %[[ENTRY]], %{{[0-9]+}}[
// MEMORY:         llvm_ext.extractelement %[[WITHIN]][
// MEMORY:         llvm.load
// MEMORY-NEXT:    llvm.insertelement

func.func @long(%i: vector<8xi32>) -> vector<8xf32> {
  %r = vector_ext.lookup %i in dense<3.0> : tensor<32xf32> : vector<8xi32> -> vector<8xf32>
  func.return %r : vector<8xf32>
}

// AVX2:         llvm.mlir.global internal constant @long_table_0(
// AVX512-LABEL: llvm.func @long(
// AVX512-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(
