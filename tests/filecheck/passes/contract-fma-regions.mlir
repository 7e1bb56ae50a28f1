// RUN: halfulp-opt %s -p contract-fma | filecheck %s --check-prefix=FAST
// RUN: halfulp-opt %s -p 'contract-fma{mode=on}' | filecheck %s --check-prefix=ON
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nsz only-unset=true}' | filecheck %s --check-prefix=FLAGS

// Inside of a branch or a loop an operand that is a product contracts, wherever the product stands. What a region yields
// is rounded, so a sum outside does not contract with a product inside; nor does one with a product of the round before.
graph.graph @regions(%p: !graph.tensor<[], bool, cpu>, %a: !graph.tensor<[n], f32, cpu>, %b: !graph.tensor<[n], f32, cpu>) {
  %m = graph.apply "mul"(%a, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":3:0)
  %0 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[n], f32, cpu> then {
    %1 = graph.apply "mul"(%a, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":4:0)
    %2 = graph.apply "add"(%1, %m) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":5:0)
    graph.yield %2 : !graph.tensor<[n], f32, cpu>
  } else {
    %3 = graph.apply "sub"(%a, %m) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":6:0)
    %4 = graph.apply "mul"(%3, %b) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %4 : !graph.tensor<[n], f32, cpu>
  }
  %5 = graph.apply "add"(%0, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %6, %7 = graph.while %p, %m : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu> -> !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>, %v: !graph.tensor<[n], f32, cpu>):
    %8 = graph.apply "add"(%v, %a) : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    %9 = graph.apply "mul"(%8, %b) fastmath<none> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
    graph.yield %q, %9 : !graph.tensor<[], bool, cpu>, !graph.tensor<[n], f32, cpu>
  }
  graph.output %5, %7 : !graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>
}

// FAST-LABEL: graph.graph @regions
// FAST-SAME:    {op = "add", operand = 0 : i64, product = "mul", dtype = "f32", flags = "", at = "model.py:5", product_at = "model.py:4"}
// FAST-SAME:    {op = "sub", operand = 1 : i64, product = "mul", dtype = "f32", flags = "", at = "model.py:6", product_at = "model.py:3", product_kept}
// FAST:         %m = graph.apply "mul"(%a, %b)
// FAST:         graph.cond
// FAST-NEXT:      graph.apply "fma"(%a, %a, %m)
// FAST-NEXT:      graph.yield
// FAST:           graph.apply "fma"(%a, %b, %a) {negate_product = true, negate_addend = false}
// FAST:         graph.apply "add"
// FAST:         graph.while
// FAST:           graph.apply "add"
// FAST:           graph.apply "mul"

// ON-LABEL:   graph.graph @regions
// ON-NOT:       fma

// FLAGS-LABEL: graph.graph @regions
// FLAGS:         graph.cond
// FLAGS:           graph.apply "mul"(%a, %a) fastmath<nsz>
// FLAGS:         graph.while
// FLAGS:           graph.apply "add"{{.*}} fastmath<nsz>
// FLAGS:           graph.apply "mul"{{.*}} fastmath<none>
