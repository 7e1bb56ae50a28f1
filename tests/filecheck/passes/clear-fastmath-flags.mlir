// RUN: halfulp-opt %s -p clear-fastmath-flags | filecheck %s --check-prefix=ALL
// RUN: halfulp-opt %s -p 'clear-fastmath-flags{flags=contract}' | filecheck %s --check-prefix=ONE
// RUN: halfulp-opt %s -p 'clear-fastmath-flags{match=add}' | filecheck %s --check-prefix=MATCH

graph.graph @flags(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "mul"(%x, %x) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%0, %x) fastmath<nsz, contract> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

func.func @other_dialects(%a: f32, %v: vector<8xf32>) {
  %0 = arith.mulf %a, %a fastmath<nsz, contract> : f32
  %1 = "math.fma"(%a, %a, %a) {fastmath = #arith.fastmath<nsz,contract>} : (f32, f32, f32) -> f32
  %2 = vector_ext.cmpf olt, %v, %v fastmath<contract> : vector<8xf32>
  func.return
}

llvm.func @llvm_dialect(%a: f32) {
  %0 = llvm.fmul %a, %a {fastmathFlags = #llvm.fastmath<nsz,contract>} : f32
  llvm.return
}

// ALL-LABEL: graph.graph @flags(
// ALL-NEXT: %0 = graph.apply "mul"(%x, %x) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ALL-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ALL-LABEL: func.func @other_dialects(
// ALL: %1 = math.fma %a, %a, %a : f32
// ALL-LABEL: llvm.func @llvm_dialect(
// ALL-NEXT: %0 = llvm.fmul %a, %a : f32

// ONE-LABEL: graph.graph @flags(
// ONE-NEXT: %0 = graph.apply "mul"(%x, %x) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ONE-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ONE-LABEL: func.func @other_dialects(
// ONE-NEXT: %0 = arith.mulf %a, %a fastmath<nsz> : f32
// ONE-NEXT: %1 = math.fma %a, %a, %a fastmath<nsz> : f32
// ONE-LABEL: llvm.func @llvm_dialect(
// ONE-NEXT: %0 = llvm.fmul %a, %a {fastmathFlags = #llvm.fastmath<nsz>} : f32

// MATCH-LABEL: graph.graph @flags(
// MATCH-NEXT: %0 = graph.apply "mul"(%x, %x) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// MATCH-NEXT: %1 = graph.apply "add"(%0, %x) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// MATCH-LABEL: func.func @other_dialects(
// MATCH-NEXT: %0 = arith.mulf %a, %a fastmath<nsz,contract> : f32
// MATCH-NEXT: %1 = math.fma %a, %a, %a fastmath<nsz,contract> : f32
// MATCH-NEXT: %2 = vector_ext.cmpf olt, %v, %v fastmath<contract> : vector<8xf32>
// MATCH-LABEL: llvm.func @llvm_dialect(
// MATCH-NEXT: %0 = llvm.fmul %a, %a {fastmathFlags = #llvm.fastmath<nsz,contract>} : f32
