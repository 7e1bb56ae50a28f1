// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: graph.custom "k": result 1 has size 'm', which is no symbol of an input and which no op before defines; known here: 'n', 'rows'
// CHECK-NEXT: "graph.custom"(%x)
graph.graph @undefined(%x: !graph.tensor<[n], f32, cpu>) {
  %0, %1 = graph.custom "k"(%x) on cpu defines [rows] : (!graph.tensor<[n], f32, cpu>) -> (!graph.tensor<[rows], f32, cpu>, !graph.tensor<["m + 1"], f32, cpu>)
  graph.output %0 : !graph.tensor<[rows], f32, cpu>
}

// -----

// CHECK: graph.apply "a": result 0 has size 'rows', which is no symbol of an input and which no op before defines; known here: 'n'
graph.graph @used_before(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "a"(%x) : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<["2*rows"], f32, cpu>
  %1 = graph.custom "k"(%x) on cpu defines [rows] : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[rows], f32, cpu>
  graph.output %1 : !graph.tensor<[rows], f32, cpu>
}

// -----

// CHECK: graph.custom "k": cannot define 'n' a second time; a symbol has one definition
graph.graph @defined_twice(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.custom "k"(%x) on cpu defines [n] : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  graph.output %0 : !graph.tensor<[n], f32, cpu>
}

// -----

// CHECK: graph.custom "k": defines 'rows', but no axis of a result is that symbol
graph.graph @defined_nowhere(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.custom "k"(%x) on cpu defines [rows] : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<["rows + 1"], f32, cpu>
  graph.output %0 : !graph.tensor<["rows + 1"], f32, cpu>
}

// -----

// CHECK: input 'x': axis 1 is 'n + 1', but the sizes of an input must be numbers or symbols, from which the values of all symbols are taken; give the axis a symbol of its own
graph.graph @algebraic_input(%x: !graph.tensor<[n, "n + 1"], f32, cpu>) {
  graph.output
}

// -----

// CHECK: graph.graph @twice: the inputs' names must differ, but 'x' is repeated
graph.graph @twice(%x: !graph.tensor<[n], f32, cpu>, %y as "x": !graph.tensor<[n], f32, cpu>) {
  graph.output
}

// -----

// CHECK: graph.graph @name: 'a b' cannot name an input; use letters, digits and '_'
graph.graph @name(%x as "a b": !graph.tensor<[n], f32, cpu>) {
  graph.output
}

// -----

// CHECK: graph.graph @builtin: input 'x' must be a !graph.tensor or a !graph.buffer, not tensor<4xf32>
graph.graph @builtin(%x: tensor<4xf32>) {
  graph.output
}

// -----

// CHECK: Operation graph.weight terminates block in single-block region but is not a terminator
graph.graph @no_output() {
  %w = graph.weight "w" : !graph.tensor<[2], f32, cpu>
}

// -----

// CHECK: graph.weight "w": every size must be a number, not [n]
graph.graph @symbolic_weight(%x: !graph.tensor<[n], f32, cpu>) {
  %w = graph.weight "w" : !graph.tensor<[n], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.weight "w": a graph names a weight once
graph.graph @weight_twice() {
  %0 = graph.weight "w" : !graph.tensor<[2], f32, cpu>
  %1 = graph.weight "w" : !graph.tensor<[2], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.apply "add": fastmath flags (nsz, contract) stand on floats only, and no operand or result is one
graph.graph @flags_on_integers(%x: !graph.tensor<[n], i32, cpu>) {
  %0 = graph.apply "add"(%x, %x) fastmath<contract, nsz> : (!graph.tensor<[n], i32, cpu>, !graph.tensor<[n], i32, cpu>) -> !graph.tensor<[n], i32, cpu>
  graph.output
}

// -----

// CHECK: graph.constant: every size must be a number, not [n]
graph.graph @symbolic_constant(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.constant dense<"0x"> : !graph.tensor<[n], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.constant: float32 [2] on cpu takes 8 bytes, but the data has 4
graph.graph @too_few_bytes() {
  %0 = graph.constant dense<"0x00000000"> : !graph.tensor<[2], f32, cpu>
  graph.output
}

// -----

// From here on, what cannot be parsed.

// CHECK: graph.constant: the list has shape [3], the type [2]
graph.graph @too_many() { %0 = graph.constant dense<[1, 2, 3]> : !graph.tensor<[2], i32, cpu> }

// -----

// CHECK: graph.constant: an element of int32 cannot be 1.5
graph.graph @float_as_int() { %0 = graph.constant dense<[1.5, 2.0]> : !graph.tensor<[2], i32, cpu> }

// -----

// CHECK: graph.constant: an element of float32 cannot be true
graph.graph @bool_as_float() { %0 = graph.constant dense<true> : !graph.tensor<[2], f32, cpu> }

// -----

// CHECK: graph.constant: an element of uint8 cannot be 300
graph.graph @out_of_range() { %0 = graph.constant dense<300> : !graph.tensor<[2], ui8, cpu> }

// -----

// CHECK: data in quotes must be bytes such as "0x00FF", not '0x123'
graph.graph @half_a_byte() { %0 = graph.constant dense<"0x123"> : !graph.tensor<[2], ui8, cpu> }

// -----

// CHECK: graph.constant: the result must be a !graph.tensor, not f32
graph.graph @scalar() { %0 = graph.constant dense<1.0> : f32 }

// -----

// CHECK: 'f8' is not an element type; known: bool, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f16, bf16, f32, f64
graph.graph @element_type(%x: !graph.tensor<[n], f8, cpu>) { graph.output }

// -----

// CHECK: device must be written cpu or gpu:N, not 'tpu'
graph.graph @device(%x: !graph.tensor<[n], f32, tpu>) { graph.output }

// -----

// CHECK: dim 'n +' is wrong at the end; a dim is made of ints, names, + - * // % and parentheses
graph.graph @dim(%x: !graph.tensor<["n +"], f32, cpu>) { graph.output }

// -----

// CHECK: size -1 of axis 0 must be between 0 and 2**63 - 1
graph.graph @negative(%x: !graph.tensor<[-1], f32, cpu>) { graph.output }

// -----

// CHECK: graph.print: the label is '{{.}}{{.}}ud800', but it must be text in ASCII, in which escapes stand for the rest
graph.graph @half_a_pair(%x: !graph.tensor<[2], f32, cpu>) {
  graph.print %x, "\\ud800" : !graph.tensor<[2], f32, cpu>
  graph.output
}

// -----

// CHECK: graph.print_text: the text is '{{.}}{{.}}ud800', but it must be text in ASCII, in which escapes stand for the rest
graph.graph @half_a_line() {
  graph.print_text "\\ud800"
  graph.output
}

// -----

// CHECK: graph.print: the label is 'ü', but it must be text in ASCII, in which escapes stand for the rest
graph.graph @not_ascii(%x: !graph.tensor<[2], f32, cpu>) {
  graph.print %x, "ü" : !graph.tensor<[2], f32, cpu>
  graph.output
}
