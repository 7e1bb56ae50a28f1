// RUN: halfulp-opt %s --emit graph | filecheck %s --check-prefix=GRAPH
// RUN: halfulp-opt %s --emit tile | filecheck %s --check-prefix=TILE
// RUN: halfulp-opt %s --emit tile --options fp_contract=fast | filecheck %s --check-prefix=FAST

graph.graph @identity(%x: !graph.tensor<[n], f32, cpu>) {
  graph.output %x : !graph.tensor<[n], f32, cpu>
}

// GRAPH: graph.graph @identity(%x: !graph.tensor<[n], f32, cpu>)

// TILE:  builtin.module attributes {halfulp.fp_contract = "on"}
// TILE:  func.func @identity(%{{.*}}: !tile.ref<[?], f32, global>

// FAST:  builtin.module attributes {halfulp.fp_contract = "fast"}
