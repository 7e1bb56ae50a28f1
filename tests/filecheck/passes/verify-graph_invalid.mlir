// RUN: halfulp-opt %s -p verify-graph --split-input-file --verify-diagnostics | filecheck %s

// Dominance: in one block, across blocks, across regions.

// CHECK:      graph.apply "neg": operand 0 (%later) is used before it is defined; move its definition up
// CHECK-NEXT: at model.py:7
// CHECK-NEXT: "graph.apply"(%later)
graph.graph @order(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "neg"(%later) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":7:0)
  %later = graph.apply "exp"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// -----

// CHECK: scf.yield: operand 0 (%b) is used before it is defined; move its definition up
func.func @nested(%c: i1, %a: i32) -> i32 {
  %r = scf.if %c -> (i32) {
    scf.yield %b : i32
  } else {
    scf.yield %a : i32
  }
  %b = arith.addi %a, %a : i32
  func.return %r : i32
}

// -----

// CHECK: arith.addi: operand 1 (%b) is used before it is defined; move its definition up
func.func @same_block(%a: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}

// -----

// CHECK: func.return: operand 0 (%b) is defined in a block that does not come before on every path; pass it as a block argument
func.func @one_path(%c: i1, %a: i32) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %b = arith.addi %a, %a : i32
  cf.br ^right
^right:
  func.return %b : i32
}

// -----

// Names and calls.

// CHECK: graph.custom "no_such_kernel": no kernel is registered under that name. Registered: {{.*}}'compute_log_probabilities_ragged'{{.*}}. To add one, import the module that registers it, or decorate a kernel with @halfulp.ops.pallas.register_kernel('no_such_kernel', operands=..., outputs=...)
graph.graph @unknown_kernel(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.custom "no_such_kernel"(%x) on cpu : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// -----

// CHECK: graph.apply "no_such_op": no op is registered under that name. Import the module that registers it, such as halfulp.ops
graph.graph @unknown_op(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "no_such_op"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// -----

// CHECK: graph.custom "compute_log_probabilities_ragged": operand 'tokens' is missing (1 given); operands in order: logits, tokens, sampled_tokens, logit_row_offsets, token_row_offsets, lp_output_offsets, host_lp_output_offsets
graph.graph @missing_operand(%x: !graph.tensor<[n, v], f32, cpu>) {
  %0 = graph.custom "compute_log_probabilities_ragged"(%x) on cpu {levels = 2 : i64} : (!graph.tensor<[n, v], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// -----

// CHECK: graph.custom "compute_log_probabilities_ragged": axis 1 of output 'log_probabilities' must have size '4' (slots, as the parameters and operands have it), not 'four'
graph.graph @wrong_size(%logits: !graph.tensor<[rows, vocab], f32, cpu>, %tokens: !graph.tensor<[t], ui32, cpu>, %sampled: !graph.tensor<[b], ui32, cpu>, %offsets: !graph.tensor<[b1], ui32, cpu>) {
  %0, %1 = graph.custom "compute_log_probabilities_ragged"(%logits, %tokens, %sampled, %offsets, %offsets, %offsets, %offsets) on cpu {levels = 2 : i64} defines [out, four] : (!graph.tensor<[rows, vocab], f32, cpu>, !graph.tensor<[t], ui32, cpu>, !graph.tensor<[b], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>) -> (!graph.tensor<[out, four], f32, cpu>, !graph.tensor<[out, 4], ui32, cpu>)
  graph.output %0, %1 : !graph.tensor<[out, four], f32, cpu>, !graph.tensor<[out, 4], ui32, cpu>
}
