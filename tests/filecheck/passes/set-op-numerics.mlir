// RUN: halfulp-opt %s -p 'set-op-numerics{ops=1,2 fp-contract=fast fastmath=nsz,arcp}' | filecheck %s --check-prefix SET
// RUN: halfulp-opt %s -p 'set-op-numerics{ops=1 fp-contract=fast},contract-fma{mode=on}' | filecheck %s --check-prefix ONE
// RUN: halfulp-opt %s -p 'set-op-numerics{ops=1 fp-contract=on},contract-fma{mode=fast}' | filecheck %s --check-prefix OTHERS
// RUN: halfulp-opt %s -p 'set-op-numerics{ops=1 fastmath=nsz fp-contract=fast},contract-fma{mode=fast defaults=arcp},set-fastmath-flags{flags=arcp only-unset=true}' | filecheck %s --check-prefix FLAGS
// RUN: halfulp-opt %s -p 'set-op-numerics{ops=5 bf16=excess},widen-small-floats{mode=round-each}' | filecheck %s --check-prefix EXCESS
// RUN: halfulp-opt %s -p 'set-op-numerics{ops=5 bf16=round-each},widen-small-floats' | filecheck %s --check-prefix ROUND

graph.graph @two_sums(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %q = graph.apply "mul"(%0, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%q, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

// A constant has no number: the first op of this graph is number 4.
graph.graph @small(%a: !graph.tensor<[8], bf16, cpu>, %b: !graph.tensor<[8], bf16, cpu>) {
  %c = graph.constant dense<1.0> : !graph.tensor<[8], bf16, cpu>
  %0 = graph.apply "mul"(%a, %b) : (!graph.tensor<[8], bf16, cpu>, !graph.tensor<[8], bf16, cpu>) -> !graph.tensor<[8], bf16, cpu>
  %1 = graph.apply "add"(%0, %c) : (!graph.tensor<[8], bf16, cpu>, !graph.tensor<[8], bf16, cpu>) -> !graph.tensor<[8], bf16, cpu>
  %2 = graph.apply "mul"(%1, %1) : (!graph.tensor<[8], bf16, cpu>, !graph.tensor<[8], bf16, cpu>) -> !graph.tensor<[8], bf16, cpu>
  graph.output %2 : !graph.tensor<[8], bf16, cpu>
}

// SET:      graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32
// SET-NEXT: graph.apply "add"(%p, %b) attributes {halfulp.numerics = {fp_contract = "fast", fastmath = "nsz,arcp", bf16 = "round-each"}}
// SET-NEXT: graph.apply "mul"(%0, %b) attributes {halfulp.numerics = {fp_contract = "fast", fastmath = "nsz,arcp", bf16 = "round-each"}}
// SET-NEXT: graph.apply "add"(%q, %a) : (!graph.tensor<[n], f32

// The sum decides; the product of the other sum stays.
// ONE:      graph.apply "fma"(%a, %b, %b) {{.*}} fastmath<none> attributes {halfulp.numerics
// ONE-NEXT: %q = graph.apply "mul"(%0, %b)
// ONE-NEXT: graph.apply "add"(%q, %a)

// OTHERS:      %p = graph.apply "mul"(%a, %b)
// OTHERS-NEXT: graph.apply "add"(%p, %b) fastmath<none>
// OTHERS-NEXT: graph.apply "fma"(%0, %b, %a)

// FLAGS:      graph.apply "fma"(%a, %b, %b) {{.*}} fastmath<nsz> attributes
// FLAGS-NEXT: graph.apply "fma"(%0, %b, %a) {{.*}} fastmath<arcp> :

// The sum alone is not rounded; the product before it is, and what comes after works on the unrounded sum.
// EXCESS:      %c = graph.constant
// EXCESS-NEXT: %0 = graph.apply "cast"(%c) {dtype = #graph.dtype<f32>}
// EXCESS-NEXT: %1 = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[8], bf16, cpu>
// EXCESS-NEXT: %2 = graph.apply "cast"(%1) {dtype = #graph.dtype<f32>}
// EXCESS-NEXT: %3 = graph.apply "add"(%2, %0) attributes
// EXCESS-NEXT: %4 = graph.apply "mul"(%3, %3) : {{.*}} -> !graph.tensor<[8], f32, cpu>
// EXCESS-NEXT: %5 = graph.apply "cast"(%4) {dtype = #graph.dtype<bf16>}
// EXCESS-NEXT: graph.output %5

// The sum alone is rounded.
// ROUND:      %4 = graph.apply "add"(%3, %2) attributes
// ROUND-NEXT: %5 = graph.apply "cast"(%4) {dtype = #graph.dtype<bf16>}
// ROUND-NEXT: %6 = graph.apply "cast"(%5) {dtype = #graph.dtype<f32>}
// ROUND-NEXT: %7 = graph.apply "mul"(%6, %6)
