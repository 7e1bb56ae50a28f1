// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nsz,arcp}' | filecheck %s --check-prefix=ALL
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=fast match="*mul*"}' | filecheck %s --check-prefix=MATCH
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nsz only-unset=true}' | filecheck %s --check-prefix=UNSET
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=none}' | filecheck %s --check-prefix=NONE

graph.graph @flags(%x: !graph.tensor<[n], f32, cpu>, %i: !graph.tensor<[n], i32, cpu>) {
  %0 = graph.apply "mul"(%x, %x) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%0, %x) fastmath<contract> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %2 = graph.apply "sub"(%1, %x) fastmath<none> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %3 = graph.apply "mul"(%i, %i) : (!graph.tensor<[n], i32, cpu>, !graph.tensor<[n], i32, cpu>) -> !graph.tensor<[n], i32, cpu>
  graph.output %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], i32, cpu>
}

func.func @other_dialects(%a: f32, %n: i32, %c: i1, %v: vector<8xf32>, %m: vector<8xi1>, %b: tensor<8xf32>) {
  %0 = arith.mulf %a, %a fastmath<contract> : f32
  %1 = arith.muli %n, %n : i32
  %2 = math.fma %a, %a, %a : f32
  %3 = vector_ext.cmpf olt, %v, %v : vector<8xf32>
  %4 = vector_ext.select %m, %v, %v : vector<8xi1>, vector<8xf32>
  %5 = vector_ext.cast %v truncf : vector<8xf32> to vector<8xbf16>
  %6 = vector_ext.cast %v fptosi_sat : vector<8xf32> to vector<8xi32>
  %7 = tile.cmpf olt %b, %b : tensor<8xf32> -> tensor<8xi1>
  %8 = tile.cast %b : tensor<8xf32> -> tensor<8xbf16>
  %9 = tile.cast %n : i32 -> f32
  %10 = tile.reduce add %b axis 0 lanes 64 : tensor<8xf32> -> f32
  func.return
}

llvm.func @llvm_dialect(%a: f32, %n: i32, %c: i1) {
  %0 = llvm.fmul %a, %a : f32
  %1 = llvm.mul %n, %n : i32
  %2 = llvm_ext.fcmp olt %a, %a : f32 -> i1
  %3 = llvm.select %c, %a, %a : i1, f32
  %4 = llvm.select %c, %n, %n : i1, i32
  %5 = llvm.call_intrinsic "llvm.fma.f32"(%a, %a, %a) : (f32, f32, f32) -> f32
  %6 = llvm.call_intrinsic "llvm.smax.i32"(%n, %n) : (i32, i32) -> i32
  llvm.return
}

// ALL-LABEL: graph.graph @flags(
// ALL-NEXT: %0 = graph.apply "mul"(%x, %x) fastmath<nsz,arcp> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ALL-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ALL-NEXT: %2 = graph.apply "sub"(%1, %x) fastmath<nsz,arcp> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ALL-NEXT: %3 = graph.apply "mul"(%i, %i) : {{.*}} -> !graph.tensor<[n], i32, cpu>
// ALL-LABEL: func.func @other_dialects(
// ALL-NEXT: %0 = arith.mulf %a, %a fastmath<nsz,arcp,contract> : f32
// ALL-NEXT: %1 = arith.muli %n, %n : i32
// ALL-NEXT: %2 = math.fma %a, %a, %a fastmath<nsz,arcp> : f32
// ALL-NEXT: %3 = vector_ext.cmpf olt, %v, %v fastmath<nsz,arcp> : vector<8xf32>
// ALL-NEXT: %4 = vector_ext.select %m, %v, %v fastmath<nsz,arcp> : vector<8xi1>, vector<8xf32>
// ALL-NEXT: %5 = vector_ext.cast %v truncf fastmath<nsz,arcp> : vector<8xf32> to vector<8xbf16>
// ALL-NEXT: %6 = vector_ext.cast %v fptosi_sat : vector<8xf32> to vector<8xi32>
// ALL-NEXT: %7 = tile.cmpf olt %b, %b fastmath<nsz,arcp> : tensor<8xf32> -> tensor<8xi1>
// ALL-NEXT: %8 = tile.cast %b fastmath<nsz,arcp> : tensor<8xf32> -> tensor<8xbf16>
// ALL-NEXT: %9 = tile.cast %n : i32 -> f32
// ALL-NEXT: %10 = tile.reduce add %b axis 0 lanes 64 fastmath<nsz,arcp> : tensor<8xf32> -> f32
// ALL-LABEL: llvm.func @llvm_dialect(
// ALL-NEXT: %0 = llvm.fmul %a, %a {fastmathFlags = #llvm.fastmath<nsz,arcp>} : f32
// ALL-NEXT: %1 = llvm.mul %n, %n : i32
// ALL-NEXT: %2 = llvm_ext.fcmp olt %a, %a {fastmathFlags = #llvm.fastmath<nsz,arcp>} : f32 -> i1
// ALL-NEXT: %3 = llvm.select %c, %a, %a {fastmathFlags = #llvm.fastmath<nsz,arcp>} : i1, f32
// ALL: %5 = llvm.call_intrinsic "llvm.fma.f32"(%a, %a, %a) {fastmathFlags = #llvm.fastmath<nsz,arcp>} : (f32, f32, f32) -> f32
// ALL-NEXT: %6 = llvm.call_intrinsic "llvm.smax.i32"(%n, %n) : (i32, i32) -> i32

// MATCH-LABEL: graph.graph @flags(
// MATCH-NEXT: %0 = graph.apply "mul"(%x, %x) fastmath<fast> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// MATCH-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// MATCH-NEXT: %2 = graph.apply "sub"(%1, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// MATCH-NEXT: %3 = graph.apply "mul"(%i, %i) : {{.*}} -> !graph.tensor<[n], i32, cpu>
// MATCH-LABEL: func.func @other_dialects(
// MATCH-NEXT: %0 = arith.mulf %a, %a fastmath<fast> : f32
// MATCH-NEXT: %1 = arith.muli %n, %n : i32
// MATCH-NEXT: %2 = math.fma %a, %a, %a : f32
// MATCH: %6 = vector_ext.cast %v fptosi_sat : vector<8xf32> to vector<8xi32>
// MATCH: %9 = tile.cast %n : i32 -> f32
// MATCH-LABEL: llvm.func @llvm_dialect(
// MATCH-NEXT: %0 = llvm.fmul %a, %a {fastmathFlags = #llvm.fastmath<fast>} : f32
// MATCH-NEXT: %1 = llvm.mul %n, %n : i32
// MATCH-NEXT: %2 = llvm_ext.fcmp olt %a, %a : f32 -> i1
// MATCH: %6 = llvm.call_intrinsic "llvm.smax.i32"(%n, %n) : (i32, i32) -> i32

// UNSET-LABEL: graph.graph @flags(
// UNSET-NEXT: %0 = graph.apply "mul"(%x, %x) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// UNSET-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// UNSET-NEXT: %2 = graph.apply "sub"(%1, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// UNSET-NEXT: %3 = graph.apply "mul"(%i, %i) : {{.*}} -> !graph.tensor<[n], i32, cpu>
// UNSET-LABEL: func.func @other_dialects(
// UNSET-NEXT: %0 = arith.mulf %a, %a fastmath<contract> : f32
// UNSET-NEXT: %1 = arith.muli %n, %n : i32
// UNSET-NEXT: %2 = math.fma %a, %a, %a : f32
// UNSET: %6 = vector_ext.cast %v fptosi_sat : vector<8xf32> to vector<8xi32>
// UNSET: %9 = tile.cast %n : i32 -> f32
// UNSET-LABEL: llvm.func @llvm_dialect(
// UNSET-NEXT: %0 = llvm.fmul %a, %a : f32
// UNSET-NEXT: %1 = llvm.mul %n, %n : i32
// UNSET-NEXT: %2 = llvm_ext.fcmp olt %a, %a : f32 -> i1
// UNSET: %6 = llvm.call_intrinsic "llvm.smax.i32"(%n, %n) : (i32, i32) -> i32

// NONE-LABEL: graph.graph @flags(
// NONE-NEXT: %0 = graph.apply "mul"(%x, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// NONE-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// NONE-NEXT: %2 = graph.apply "sub"(%1, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// NONE-NEXT: %3 = graph.apply "mul"(%i, %i) : {{.*}} -> !graph.tensor<[n], i32, cpu>
// NONE-LABEL: func.func @other_dialects(
// NONE-NEXT: %0 = arith.mulf %a, %a fastmath<contract> : f32
// NONE-NEXT: %1 = arith.muli %n, %n : i32
// NONE-NEXT: %2 = math.fma %a, %a, %a : f32
// NONE: %6 = vector_ext.cast %v fptosi_sat : vector<8xf32> to vector<8xi32>
// NONE: %9 = tile.cast %n : i32 -> f32
// NONE-LABEL: llvm.func @llvm_dialect(
// NONE-NEXT: %0 = llvm.fmul %a, %a : f32
// NONE-NEXT: %1 = llvm.mul %n, %n : i32
// NONE-NEXT: %2 = llvm_ext.fcmp olt %a, %a : f32 -> i1
// NONE: %6 = llvm.call_intrinsic "llvm.smax.i32"(%n, %n) : (i32, i32) -> i32
