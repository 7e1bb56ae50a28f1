// RUN: halfulp-opt %s -p contract-fma | filecheck %s --check-prefix=FAST
// RUN: halfulp-opt %s -p 'contract-fma{mode=on}' | filecheck %s --check-prefix=ON
// RUN: halfulp-opt %s -p 'contract-fma{mode=on defaults=contract,nsz}' | filecheck %s --check-prefix=DEFAULTS
// RUN: halfulp-opt %s -p 'contract-fma{strategy=llvm defaults=arcp}' | filecheck %s --check-prefix=LLVM
// RUN: halfulp-opt %s -p 'contract-fma{strategy=llvm mode=on}' | filecheck %s --check-prefix=LLVM-ON

// The dead product goes; what was fused is noted on the graph, with the user's lines.
graph.graph @sum(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":7:0)
  %s = graph.apply "add"(%p, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":8:0)
  graph.output %s : !graph.tensor<[n], f32, cpu>
}

// The product on either side, and its sign.
graph.graph @signs(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%c, %p) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "sub"(%p, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %2 = graph.apply "sub"(%c, %p) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// Of two products the left one is fused.
graph.graph @two_products(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %q = graph.apply "mul"(%c, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %q) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "sub"(%p, %q) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// Other users keep the product, rounded by itself.
graph.graph @product_used_elsewhere(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// A fused sum may feed the next product.
graph.graph @chain(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %q = graph.apply "mul"(%0, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%q, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

// f64 as well; both operands of this sum are the one product.
graph.graph @f64(%a: !graph.tensor<[n], f64, cpu>, %b: !graph.tensor<[n], f64, cpu>) {
  %p = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f64, cpu>, !graph.tensor<[n], f64, cpu>) -> !graph.tensor<[n], f64, cpu>
  %0 = graph.apply "add"(%p, %p) : (!graph.tensor<[n], f64, cpu>, !graph.tensor<[n], f64, cpu>) -> !graph.tensor<[n], f64, cpu>
  graph.output %0 : !graph.tensor<[n], f64, cpu>
}

// Ops with flags of their own contract in every mode but off, and no flag is new on the fma: it gets those of both, an
// op without counting as the defaults.
graph.graph @own_flags_allow(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) fastmath<contract, nsz> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %c) fastmath<contract, nsz, arcp> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %q = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%q, %c) fastmath<contract, nsz, arcp> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// One op without contract is enough to forbid it, whatever the mode. The right product is fused if the left may not be.
graph.graph @own_flags_forbid(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>, %c: !graph.tensor<[n], f32, cpu>) {
  %p = graph.apply "mul"(%a, %b) fastmath<nsz> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%p, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %q = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%q, %c) fastmath<none> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %r = graph.apply "mul"(%c, %c) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %2 = graph.apply "add"(%p, %r) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// Not through a cast, a negation or a view; and bf16 rounds after every op.
graph.graph @not_through(%a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], bf16, cpu>) {
  %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], f32, cpu>
  %p = graph.apply "mul"(%b, %b) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} : (!graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], f32, cpu>
  %0 = graph.apply "add"(%q, %w) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %r = graph.apply "mul"(%a, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %n = graph.apply "negate"(%r) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%n, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n, n], f32, cpu>
  %2 = graph.apply "add"(%t, %t) : (!graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>) -> !graph.tensor<[n, n], f32, cpu>
  %3 = graph.apply "add"(%p, %b) : (!graph.tensor<[n], bf16, cpu>, !graph.tensor<[n], bf16, cpu>) -> !graph.tensor<[n], bf16, cpu>
  graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>
}

// FAST-LABEL: graph.graph @sum({{.*}} attributes {halfulp.contractions = [{op = "add", operand = 0 : i64, product = "mul", dtype = "f32", flags = "", at = "model.py:8", product_at = "model.py:7"}]} {
// FAST-NEXT: %s = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %s : !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @signs(
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = true} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %2 = graph.apply "fma"(%a, %b, %c) {negate_product = true, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @two_products(
// FAST-NEXT: %q = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %q) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "fma"(%a, %b, %q) {negate_product = false, negate_addend = true} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @product_used_elsewhere({{.*}} attributes {halfulp.contractions = [{op = "add", operand = 0 : i64, product = "mul", dtype = "f32", flags = "", product_kept}]} {
// FAST-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @chain(
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "fma"(%0, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %1 : !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @f64(
// FAST-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %p) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f64, cpu>
// FAST-NEXT: graph.output %0 : !graph.tensor<[n], f64, cpu>
// FAST-LABEL: graph.graph @own_flags_allow(
// FAST-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @own_flags_forbid(
// FAST-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %2 = graph.apply "fma"(%c, %c, %p) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// FAST-LABEL: graph.graph @not_through(
// FAST-NEXT: %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %p = graph.apply "mul"(%b, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// FAST-NEXT: %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %0 = graph.apply "add"(%q, %w) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %r = graph.apply "mul"(%a, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %n = graph.apply "negate"(%r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %1 = graph.apply "add"(%n, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// FAST-NEXT: %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// FAST-NEXT: %2 = graph.apply "add"(%t, %t) : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// FAST-NEXT: %3 = graph.apply "add"(%p, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// FAST-NEXT: graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>

// ON-LABEL: graph.graph @sum(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %s = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %s : !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @signs(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%c, %p) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "sub"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %2 = graph.apply "sub"(%c, %p) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @two_products(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %q = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%p, %q) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "sub"(%p, %q) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @product_used_elsewhere(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @chain(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %q = graph.apply "mul"(%0, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "add"(%q, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %1 : !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @f64(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// ON-NEXT: %0 = graph.apply "add"(%p, %p) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// ON-NEXT: graph.output %0 : !graph.tensor<[n], f64, cpu>
// ON-LABEL: graph.graph @own_flags_allow(
// ON-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @own_flags_forbid(
// ON-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %r = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %2 = graph.apply "add"(%p, %r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// ON-LABEL: graph.graph @not_through(
// ON-NEXT: %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %p = graph.apply "mul"(%b, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// ON-NEXT: %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %0 = graph.apply "add"(%q, %w) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %r = graph.apply "mul"(%a, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %n = graph.apply "negate"(%r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %1 = graph.apply "add"(%n, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// ON-NEXT: %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// ON-NEXT: %2 = graph.apply "add"(%t, %t) : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// ON-NEXT: %3 = graph.apply "add"(%p, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// ON-NEXT: graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>

// DEFAULTS-LABEL: graph.graph @sum(
// DEFAULTS-NEXT: %s = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %s : !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @signs(
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = true} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %2 = graph.apply "fma"(%a, %b, %c) {negate_product = true, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @two_products(
// DEFAULTS-NEXT: %q = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %q) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "fma"(%a, %b, %q) {negate_product = false, negate_addend = true} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @product_used_elsewhere(
// DEFAULTS-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @chain(
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "fma"(%0, %b, %c) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %1 : !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @f64(
// DEFAULTS-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %p) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f64, cpu>
// DEFAULTS-NEXT: graph.output %0 : !graph.tensor<[n], f64, cpu>
// DEFAULTS-LABEL: graph.graph @own_flags_allow(
// DEFAULTS-NEXT: %0 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "fma"(%a, %b, %c) {negate_product = false, negate_addend = false} fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @own_flags_forbid(
// DEFAULTS-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %2 = graph.apply "fma"(%c, %c, %p) {negate_product = false, negate_addend = false} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// DEFAULTS-LABEL: graph.graph @not_through(
// DEFAULTS-NEXT: %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %p = graph.apply "mul"(%b, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// DEFAULTS-NEXT: %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %0 = graph.apply "add"(%q, %w) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %r = graph.apply "mul"(%a, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %n = graph.apply "negate"(%r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %1 = graph.apply "add"(%n, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// DEFAULTS-NEXT: %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// DEFAULTS-NEXT: %2 = graph.apply "add"(%t, %t) : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// DEFAULTS-NEXT: %3 = graph.apply "add"(%p, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// DEFAULTS-NEXT: graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>

// LLVM-LABEL: graph.graph @sum(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %s = graph.apply "add"(%p, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %s : !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @signs(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%c, %p) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "sub"(%p, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %2 = graph.apply "sub"(%c, %p) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @two_products(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %q = graph.apply "mul"(%c, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %q) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "sub"(%p, %q) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @product_used_elsewhere(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @chain(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %q = graph.apply "mul"(%0, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %1 : !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @f64(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f64, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %p) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f64, cpu>
// LLVM-NEXT: graph.output %0 : !graph.tensor<[n], f64, cpu>
// LLVM-LABEL: graph.graph @own_flags_allow(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %c) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %q = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @own_flags_forbid(
// LLVM-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%p, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %q = graph.apply "mul"(%a, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %r = graph.apply "mul"(%c, %c) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %2 = graph.apply "add"(%p, %r) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-LABEL: graph.graph @not_through(
// LLVM-NEXT: %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %p = graph.apply "mul"(%b, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// LLVM-NEXT: %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %0 = graph.apply "add"(%q, %w) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %r = graph.apply "mul"(%a, %a) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %n = graph.apply "negate"(%r) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %1 = graph.apply "add"(%n, %a) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-NEXT: %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// LLVM-NEXT: %2 = graph.apply "add"(%t, %t) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// LLVM-NEXT: %3 = graph.apply "add"(%p, %b) fastmath<arcp,contract> : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// LLVM-NEXT: graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>

// LLVM-ON-LABEL: graph.graph @sum(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %s = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %s : !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @signs(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%c, %p) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "sub"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %2 = graph.apply "sub"(%c, %p) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @two_products(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %q = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %q) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "sub"(%p, %q) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @product_used_elsewhere(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %0, %p : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @chain(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %q = graph.apply "mul"(%0, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "add"(%q, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %1 : !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @f64(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %p) : {{.*}} -> !graph.tensor<[n], f64, cpu>
// LLVM-ON-NEXT: graph.output %0 : !graph.tensor<[n], f64, cpu>
// LLVM-ON-LABEL: graph.graph @own_flags_allow(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %c) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<nsz,arcp,contract> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %0, %1 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @own_flags_forbid(
// LLVM-ON-NEXT: %p = graph.apply "mul"(%a, %b) fastmath<nsz> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%p, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %q = graph.apply "mul"(%a, %b) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "add"(%q, %c) fastmath<none> : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %r = graph.apply "mul"(%c, %c) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %2 = graph.apply "add"(%p, %r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: graph.output %0, %1, %2 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
// LLVM-ON-LABEL: graph.graph @not_through(
// LLVM-ON-NEXT: %w = graph.apply "cast"(%b) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %p = graph.apply "mul"(%b, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// LLVM-ON-NEXT: %q = graph.apply "cast"(%p) {dtype = #graph.dtype<f32>} : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %0 = graph.apply "add"(%q, %w) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %r = graph.apply "mul"(%a, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %n = graph.apply "negate"(%r) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %1 = graph.apply "add"(%n, %a) : {{.*}} -> !graph.tensor<[n], f32, cpu>
// LLVM-ON-NEXT: %t = graph.apply "broadcast_to"(%r) {shape = [#graph.dim<"n">, #graph.dim<"n">]} : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// LLVM-ON-NEXT: %2 = graph.apply "add"(%t, %t) : {{.*}} -> !graph.tensor<[n, n], f32, cpu>
// LLVM-ON-NEXT: %3 = graph.apply "add"(%p, %b) : {{.*}} -> !graph.tensor<[n], bf16, cpu>
// LLVM-ON-NEXT: graph.output %0, %1, %2, %3 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>, !graph.tensor<[n, n], f32, cpu>, !graph.tensor<[n], bf16, cpu>
