// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: graph.cond: the predicate must be one bool, not int64 [] on cpu
graph.graph @type(%p: !graph.tensor<[], i64, cpu>) {
  graph.cond %p : !graph.tensor<[], i64, cpu> then {
    graph.yield
  } else {
    graph.yield
  }
  graph.output
}

// -----

// CHECK: graph.cond: the predicate must be one bool, not bool [n] on cpu
graph.graph @shape(%p: !graph.tensor<[n], bool, cpu>) {
  graph.cond %p : !graph.tensor<[n], bool, cpu> then {
    graph.yield
  } else {
    graph.yield
  }
  graph.output
}

// -----

// CHECK: graph.cond: the else region must yield 1 values, not 0
graph.graph @count(%p: !graph.tensor<[], bool, cpu>) {
  %0 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[], bool, cpu> then {
    graph.yield %p : !graph.tensor<[], bool, cpu>
  } else {
    graph.yield
  }
  graph.output
}

// -----

// CHECK: graph.cond: the then region must yield bool [1] on cpu as value 0, not bool [] on cpu
graph.graph @yielded(%p: !graph.tensor<[], bool, cpu>, %q: !graph.tensor<[1], bool, cpu>) {
  %0 = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[1], bool, cpu> then {
    graph.yield %p : !graph.tensor<[], bool, cpu>
  } else {
    graph.yield %q : !graph.tensor<[1], bool, cpu>
  }
  graph.output
}

// -----

// CHECK: graph.cond: the then region must end in graph.yield
graph.graph @end(%p: !graph.tensor<[], bool, cpu>) {
  graph.cond %p : !graph.tensor<[], bool, cpu> then {
    tile.return
  } else {
    graph.yield
  }
  graph.output
}

// -----

// CHECK: graph.cond: the else region takes no arguments
graph.graph @arguments(%p: !graph.tensor<[], bool, cpu>) {
  graph.cond %p : !graph.tensor<[], bool, cpu> then {
    graph.yield
  } else {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield
  }
  graph.output
}

// -----

// CHECK: 'graph.yield' expects parent op to be one of 'graph.cond', 'graph.while'
graph.graph @parent(%p: !graph.tensor<[], bool, cpu>) {
  graph.yield
}

// -----

// CHECK: graph.while: carries at least one value, for its predicate to read
graph.graph @nothing(%p: !graph.tensor<[], bool, cpu>) {
  "graph.while"() ({
    graph.yield %p : !graph.tensor<[], bool, cpu>
  }, {
    graph.yield
  }) : () -> ()
  graph.output
}

// -----

// CHECK: graph.while: its results must have the types of the initial values
graph.graph @results(%p: !graph.tensor<[], bool, cpu>) {
  %0 = graph.while %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[1], bool, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  }
  graph.output
}

// -----

// CHECK: graph.while: the body region must take arguments of the initial values' types
graph.graph @carried(%p: !graph.tensor<[], bool, cpu>) {
  %0 = graph.while %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[], bool, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
    graph.yield %p : !graph.tensor<[], bool, cpu>
  }
  graph.output
}

// -----

// CHECK: graph.while: the body must yield bool [] on cpu as value 0, not bool [1] on cpu
graph.graph @changed(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[1], bool, cpu>) {
  %0 = graph.while %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[], bool, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %x : !graph.tensor<[1], bool, cpu>
  }
  graph.output
}

// -----

// CHECK: graph.while: the predicate region must yield one bool, not 2 values
graph.graph @predicates(%p: !graph.tensor<[], bool, cpu>) {
  %0 = graph.while %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[], bool, cpu> predicate {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q, %q : !graph.tensor<[], bool, cpu>, !graph.tensor<[], bool, cpu>
  } body {
  ^bb0(%q: !graph.tensor<[], bool, cpu>):
    graph.yield %q : !graph.tensor<[], bool, cpu>
  }
  graph.output
}

// -----

// CHECK: graph.custom "k": cannot define 'rows' inside of a region; compute it before the region
graph.graph @sizes(%p: !graph.tensor<[], bool, cpu>, %x: !graph.tensor<[n], f32, cpu>) {
  graph.cond %p : !graph.tensor<[], bool, cpu> then {
    %0 = graph.custom "k"(%x) on cpu defines [rows] : (!graph.tensor<[n], f32, cpu>) -> !graph.tensor<[rows], f32, cpu>
    graph.yield
  } else {
    graph.yield
  }
  graph.output
}
