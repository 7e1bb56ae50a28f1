// RUN: halfulp-opt %s -p verify-graph | filecheck %s

// The pass changes nothing. Values come from the block, from a block before it on every path, or from a region
// around it.

// CHECK-LABEL: graph.graph @logprobs(
graph.graph @logprobs(%logits: !graph.tensor<[rows, vocab], f32, cpu>, %tokens: !graph.tensor<[t], ui32, cpu>, %sampled: !graph.tensor<[b], ui32, cpu>, %offsets: !graph.tensor<[b1], ui32, cpu>) {
  // CHECK-NEXT: graph.custom "compute_log_probabilities_ragged"{{.*}} on cpu {levels = 2 : i64} defines [out]
  %0, %1 = graph.custom "compute_log_probabilities_ragged"(%logits, %tokens, %sampled, %offsets, %offsets, %offsets, %offsets) on cpu {levels = 2 : i64} defines [out] : (!graph.tensor<[rows, vocab], f32, cpu>, !graph.tensor<[t], ui32, cpu>, !graph.tensor<[b], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>, !graph.tensor<[b1], ui32, cpu>) -> (!graph.tensor<[out, 4], f32, cpu>, !graph.tensor<[out, 4], ui32, cpu>)
  // CHECK-NEXT: graph.output
  graph.output %0, %1 : !graph.tensor<[out, 4], f32, cpu>, !graph.tensor<[out, 4], ui32, cpu>
}

// CHECK-LABEL: func.func @other_dialects(
func.func @other_dialects(%c: i1, %n: index) -> i32 {
  %zero = arith.constant 0 : i32
  %step = arith.constant 1 : index
  %sum = scf.for %i = %step to %n step %step iter_args(%acc = %zero) -> (i32) {
    %next = scf.if %c -> (i32) {
      %twice = arith.addi %acc, %acc : i32
      scf.yield %twice : i32
    } else {
      scf.yield %zero : i32
    }
    scf.yield %next : i32
  }
  cf.cond_br %c, ^left(%sum : i32), ^right
^left(%a: i32):
  cf.br ^join(%a : i32)
^right:
  cf.br ^join(%zero : i32)
^join(%b: i32):
  %r = arith.addi %b, %sum : i32
  // CHECK: func.return
  func.return %r : i32
}
