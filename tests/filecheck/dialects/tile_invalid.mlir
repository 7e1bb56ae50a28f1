// RUN: halfulp-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @window_indexing(%x: !tile.ref<[8], f32, global>, %i: index) {
  %w = tile.window %x[%i] tiled [4] squeezed [] : !tile.ref<[8], f32, global> -> !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.window: indexing must be 'blocked' or 'element', not 'tiled'

// -----

func.func @window_rank(%x: !tile.ref<[8, 8], f32, global>, %i: index) {
  %w = tile.window %x[%i] blocked [4] squeezed [] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.window: a reference of rank 2 takes 2 indices and 2 extents, not 1 and 1

// -----

func.func @window_squeezed(%x: !tile.ref<[8, 8], f32, global>, %i: index) {
  %w = tile.window %x[%i, %i] blocked [4, 2] squeezed [1] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.window: squeezed axis 1 must have extent 1 in [4, 2]

// -----

func.func @window_result(%x: !tile.ref<[8, 8], f32, global>, %i: index) {
  %w = tile.window %x[%i, %i] blocked [4, 1] squeezed [1] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[4, 1], f32, global>
  func.return
}

// CHECK: tile.window: result must have extents [4], not !tile.ref<[4, 1], f32, global>

// -----

func.func @flatten_result(%x: !tile.ref<[?, 8], f32, global>) {
  %f = tile.flatten %x : !tile.ref<[?, 8], f32, global> -> !tile.ref<[8], f32, global>
  func.return
}

// CHECK: tile.flatten: !tile.ref<[?, 8], f32, global> does not flatten to !tile.ref<[8], f32, global>

// -----

func.func @reinterpret_elements(%x: !tile.ref<[6], f32, global>, %n: index) {
  %r = tile.reinterpret %x [%n, %n] : !tile.ref<[6], f32, global> -> !tile.ref<[2, 4], f32, global>
  func.return
}

// CHECK: tile.reinterpret: !tile.ref<[6], f32, global> and !tile.ref<[2, 4], f32, global> must have as many elements

// -----

func.func @reinterpret_extents(%x: !tile.ref<[?], f32, global>, %n: index) {
  %r = tile.reinterpret %x [%n] : !tile.ref<[?], f32, global> -> !tile.ref<[?, 4], f32, global>
  func.return
}

// CHECK: tile.reinterpret: !tile.ref<[?, 4], f32, global> takes 2 extents, not 1

// -----

func.func @reinterpret_type(%x: !tile.ref<[?], f32, global>, %n: index) {
  %r = tile.reinterpret %x [%n] : !tile.ref<[?], f32, global> -> !tile.ref<[?], f64, global>
  func.return
}

// CHECK: tile.reinterpret: !tile.ref<[?], f32, global> and !tile.ref<[?], f64, global> must differ in shape only

// -----

func.func @dim_axis(%x: !tile.ref<[8], f32, global>) {
  %d = tile.dim %x, 1 : !tile.ref<[8], f32, global>
  func.return
}

// CHECK: tile.dim: axis 1 is not an axis of !tile.ref<[8], f32, global>

// -----

func.func @alloc_space(%pad: f32) {
  %s = tile.alloc %pad : f32 -> !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.alloc: result must be a static scratch reference of f32, not !tile.ref<[4], f32, global>

// -----

func.func @load_shape(%x: !tile.ref<[?], f32, global>) {
  %b = tile.load %x : !tile.ref<[?], f32, global> -> tensor<4xf32>
  func.return
}

// CHECK: tile.load: tensor<4xf32> does not match !tile.ref<[?], f32, global>; take a tile.window of the block's shape first

// -----

func.func @load_scalar(%x: !tile.ref<[1], f32, global>) {
  %b = tile.load %x : !tile.ref<[1], f32, global> -> f32
  func.return
}

// CHECK: tile.load: the value must be a block (a tensor of static shape), not f32

// -----

func.func @load_dynamic(%x: !tile.ref<[?], f32, global>) {
  %b = tile.load %x : !tile.ref<[?], f32, global> -> tensor<?xf32>
  func.return
}

// CHECK: tile.load: the value must have a static shape of rank 1 or more, not tensor<?xf32>

// -----

func.func @load_mask(%x: !tile.ref<[4], f32, global>, %m: tensor<2xi1>) {
  %b = tile.load %x mask %m : tensor<2xi1> : !tile.ref<[4], f32, global> -> tensor<4xf32>
  func.return
}

// CHECK: tile.load: the mask must be an i1 block of shape [4], not tensor<2xi1>

// -----

func.func @load_other(%x: !tile.ref<[4], f32, global>, %o: f64) {
  %b = tile.load %x other %o : f64 : !tile.ref<[4], f32, global> -> tensor<4xf32>
  func.return
}

// CHECK: tile.load: other must be a scalar of f32, not f64

// -----

func.func @store_shape(%x: !tile.ref<[4], f32, global>, %b: tensor<4xf16>) {
  tile.store %b, %x : tensor<4xf16>, !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.store: tensor<4xf16> does not match !tile.ref<[4], f32, global>; take a tile.window of the block's shape first

// -----

func.func @store_mask(%x: !tile.ref<[4], f32, global>, %b: tensor<4xf32>, %m: tensor<4xi8>) {
  tile.store %b, %x mask %m : tensor<4xi8> : tensor<4xf32>, !tile.ref<[4], f32, global>
  func.return
}

// CHECK: tile.store: the mask must be an i1 block of shape [4], not tensor<4xi8>

// -----

func.func @splat_element(%x: f32) {
  %b = tile.splat %x : f32 -> tensor<4xf64>
  func.return
}

// CHECK: tile.splat: a block of f32 is wanted, not tensor<4xf64>

// -----

func.func @splat_scalar(%x: f32) {
  %b = tile.splat %x : f32 -> f32
  func.return
}

// CHECK: tile.splat: result must be a block (a tensor of static shape), not f32

// -----

func.func @iota_float() {
  %b = tile.iota 0 : tensor<4xf32>
  func.return
}

// CHECK: tile.iota: result must hold integers, not f32

// -----

func.func @iota_axis() {
  %b = tile.iota 1 : tensor<4xi32>
  func.return
}

// CHECK: tile.iota: axis 1 is not an axis of tensor<4xi32>

// -----

func.func @broadcast_element(%x: tensor<1xf32>) {
  %b = tile.broadcast %x : tensor<1xf32> -> tensor<4xf64>
  func.return
}

// CHECK: tile.broadcast: element type must stay f32, not tensor<4xf64>

// -----

func.func @broadcast_shape(%x: tensor<2xf32>) {
  %b = tile.broadcast %x : tensor<2xf32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.broadcast: [2] does not broadcast to [4]

// -----

func.func @reshape_count(%x: tensor<2x3xf32>) {
  %b = tile.reshape %x : tensor<2x3xf32> -> tensor<5xf32>
  func.return
}

// CHECK: tile.reshape: tensor<2x3xf32> has 6 elements, tensor<5xf32> 5

// -----

func.func @transpose_permutation(%x: tensor<2x3xf32>) {
  %b = tile.transpose %x [0, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  func.return
}

// CHECK: tile.transpose: [0, 0] is no permutation of 2 axes

// -----

func.func @transpose_shape(%x: tensor<2x3xf32>) {
  %b = tile.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// CHECK: tile.transpose: [1, 0] of [2, 3] is not tensor<2x3xf32>

// -----

func.func @slice_rank(%x: tensor<2x3xf32>) {
  %b = tile.slice %x from [0] step [1] : tensor<2x3xf32> -> tensor<2xf32>
  func.return
}

// CHECK: tile.slice: one start and step for each axis of tensor<2x3xf32>

// -----

func.func @slice_range(%x: tensor<4xf32>) {
  %b = tile.slice %x from [1] step [2] : tensor<4xf32> -> tensor<3xf32>
  func.return
}

// CHECK: tile.slice: elements 1 to 5 of axis 0 leave tensor<4xf32>

// -----

func.func @concat_axis(%x: tensor<4xf32>) {
  %b = tile.concat 1 of %x : tensor<4xf32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.concat: needs parts and an axis of tensor<4xf32>, not axis 1

// -----

func.func @concat_part(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  %b = tile.concat 0 of %x, %y : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<4x3xf32>
  func.return
}

// CHECK: tile.concat: tensor<2x4xf32> does not fit into tensor<4x3xf32> along axis 0

// -----

func.func @concat_total(%x: tensor<2xf32>) {
  %b = tile.concat 0 of %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<5xf32>
  func.return
}

// CHECK: tile.concat: the parts make 4 along axis 0, not tensor<5xf32>

// -----

func.func @extract_rank(%x: tensor<2x3xf32>, %i: index) {
  %b = tile.extract %x[%i] : tensor<2x3xf32> -> f32
  func.return
}

// CHECK: tile.extract: 1 indices and a f32 from tensor<2x3xf32>

// -----

func.func @cmpf_predicate(%x: f32) {
  %b = tile.cmpf lt %x, %x : f32 -> i1
  func.return
}

// CHECK: tile.cmpf: predicate must be one of ('false', 'oeq', 'ogt', 'oge', 'olt', 'ole', 'one', 'ord', 'ueq', 'ugt', 'uge', 'ult', 'ule', 'une', 'uno', 'true'), not 'lt'

// -----

func.func @cmpf_result(%x: tensor<2xf32>) {
  %b = tile.cmpf olt %x, %x : tensor<2xf32> -> i1
  func.return
}

// CHECK: tile.cmpf: result must be tensor<2xi1>, not i1

// -----

func.func @cmpf_integers(%x: i32) {
  %b = tile.cmpf olt %x, %x : i32 -> i1
  func.return
}

// CHECK: tile.cmpf: compares floats, not i32

// -----

func.func @cmpi_floats(%x: f32) {
  %b = tile.cmpi slt %x, %x : f32 -> i1
  func.return
}

// CHECK: tile.cmpi: compares integers, not f32

// -----

func.func @select_types(%c: i1, %x: f32, %y: f64) {
  %b = tile.select %c, %x, %y : i1, f32, f64 -> f32
  func.return
}

// CHECK: tile.select: both values must have the type of the result f32, not f32 and f64

// -----

func.func @select_condition(%c: tensor<2xi1>, %x: tensor<4xf32>) {
  %b = tile.select %c, %x, %x : tensor<2xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.select: condition must be i1 or an i1 block like tensor<4xf32>

// -----

func.func @select_flags(%c: i1, %x: i32) {
  %b = tile.select %c, %x, %x fastmath<nsz> : i1, i32, i32 -> i32
  func.return
}

// CHECK: tile.select: fastmath flags stand on float ops only, not on i32

// -----

func.func @cast_shape(%x: tensor<2xf32>) {
  %b = tile.cast %x : tensor<2xf32> -> tensor<4xf16>
  func.return
}

// CHECK: tile.cast: shape must not change from tensor<2xf32> to tensor<4xf16>

// -----

func.func @cast_numbers(%x: none) {
  %b = tile.cast %x : none -> f32
  func.return
}

// CHECK: tile.cast: converts numbers, not none

// -----

func.func @int_div_kind(%x: i32) {
  %b = tile.int_div divs %x, %x : i32
  func.return
}

// CHECK: tile.int_div: kind must be one of ('floordivs', 'divu', 'mods', 'modu'), not 'divs'

// -----

func.func @shift_floats(%x: f32) {
  %b = tile.shift left %x, %x : f32
  func.return
}

// CHECK: tile.shift: works on integers, not on f32

// -----

func.func @scale_doubles(%x: tensor<4xf64>) {
  %b = tile.scale %x, %x : tensor<4xf64>
  func.return
}

// CHECK: tile.scale: works on f32, not on tensor<4xf64>

// -----

func.func @lookup_index(%i: tensor<4xi64>) {
  %r = tile.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : tensor<4xi64> -> tensor<4xf32>
  func.return
}

// CHECK: tile.lookup: index must be of i32, not tensor<4xi64>

// -----

func.func @lookup_result(%i: tensor<4xi32>) {
  %r = tile.lookup %i in dense<[1.0, 2.0]> : tensor<2xf32> : tensor<4xi32> -> f32
  func.return
}

// CHECK: tile.lookup: the result must be tensor<4xf32>, not f32

// -----

func.func @lookup_length(%i: tensor<4xi32>) {
  %r = tile.lookup %i in dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<4xi32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.lookup: table must have a power of two as its length, not 3

// -----

func.func @lookup_doubles(%i: tensor<4xi32>) {
  %r = tile.lookup %i in dense<[1.0, 2.0]> : tensor<2xf64> : tensor<4xi32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.lookup: table must be a row of f32, not tensor<2xf64>

// -----

func.func @lookup_rows(%i: tensor<4xi32>) {
  %r = tile.lookup %i in dense<[[1.0], [2.0]]> : tensor<2x1xf32> : tensor<4xi32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.lookup: table must be a row of f32, not tensor<2x1xf32>

// -----

func.func @lookup_infinity(%i: tensor<4xi32>) {
  %r = tile.lookup %i in dense<"0x0000803F0000807F"> : tensor<2xf32> : tensor<4xi32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.lookup: table must hold finite numbers, not inf

// -----

func.func @reduce_axis(%x: tensor<4xf32>) {
  %b = tile.reduce add %x axis 1 lanes 1 : tensor<4xf32> -> f32
  func.return
}

// CHECK: tile.reduce: axis 1 is not an axis of tensor<4xf32>

// -----

func.func @reduce_lanes(%x: tensor<4xf32>) {
  %b = tile.reduce add %x axis 0 lanes 3 : tensor<4xf32> -> f32
  func.return
}

// CHECK: tile.reduce: lanes must be a power of two up to 4096, not 3

// -----

func.func @reduce_kind(%x: tensor<4xf32>) {
  %b = tile.reduce maxs %x axis 0 lanes 1 : tensor<4xf32> -> f32
  func.return
}

// CHECK: tile.reduce: kind must be one of ('add', 'mul', 'maximum', 'minimum') for f32, not 'maxs'

// -----

func.func @reduce_result(%x: tensor<4x2xf32>) {
  %b = tile.reduce add %x axis 0 lanes 1 : tensor<4x2xf32> -> tensor<4xf32>
  func.return
}

// CHECK: tile.reduce: result must be tensor<2xf32>, not tensor<4xf32>

// -----

func.func @reduce_flags(%x: tensor<4xi32>) {
  %b = tile.reduce add %x axis 0 lanes 1 fastmath<reassoc> : tensor<4xi32> -> i32
  func.return
}

// CHECK: tile.reduce: fastmath flags stand on float ops only, not on tensor<4xi32>

// -----

func.func @top_merge_rank(%v: tensor<2x1xf32>, %i: tensor<2x1xi32>) {
  %a, %b = tile.top_merge %v, %i with %v, %i : tensor<2x1xf32>, tensor<2x1xi32>, tensor<2x1xf32>, tensor<2x1xi32> -> tensor<2x1xf32>, tensor<2x1xi32>
  func.return
}

// CHECK: tile.top_merge: takes blocks of rank 1, not tensor<2x1xf32> and tensor<2x1xf32>

// -----

func.func @top_merge_indices(%v: tensor<2xf32>, %i: tensor<2xf32>) {
  %a, %b = tile.top_merge %v, %i with %v, %i : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>, tensor<2xf32>
  func.return
}

// CHECK: tile.top_merge: indices must be integers, not tensor<2xf32>

// -----

func.func @top_merge_types(%v: tensor<2xf32>, %i: tensor<2xi32>, %j: tensor<3xi32>) {
  %a, %b = tile.top_merge %v, %i with %v, %j : tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<3xi32> -> tensor<2xf32>, tensor<2xi32>
  func.return
}

// CHECK: tile.top_merge: tensor<3xi32> where tensor<2xi32> is wanted

// -----

func.func @dot_shapes(%a: tensor<2x3xf32>, %c: tensor<2x3xf32>) {
  %b = tile.dot %a, %a, %c fused true : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// CHECK: tile.dot: shapes must be [m, k], [k, n], [m, n], not {{\[\[2, 3\], \[2, 3\], \[2, 3\]\]}}

// -----

func.func @dot_elements(%a: tensor<2x2xf32>, %d: tensor<2x2xf64>) {
  %b = tile.dot %a, %d, %a fused true : tensor<2x2xf32>, tensor<2x2xf64> -> tensor<2x2xf32>
  func.return
}

// CHECK: tile.dot: element types f32, f64 -> tensor<2x2xf32>

// -----

func.func @dot_counts(%a: tensor<2x2xf32>, %n: index) {
  %b = tile.dot %a, %a, %a counts(%n) fused true : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  func.return
}

// CHECK: tile.dot: counts are those of rows, columns and k: 3 or none, not 1

// -----

func.func @buffer_rank() {
  %b = tile.buffer ["n"] : !tile.ref<[?, ?], f32, global>
  func.return
}

// CHECK: tile.buffer: 1 dims for !tile.ref<[?, ?], f32, global>, which must be global

// -----

func.func @buffer_scratch() {
  %b = tile.buffer ["n"] : !tile.ref<[?], f32, scratch>
  func.return
}

// CHECK: tile.buffer: 1 dims for !tile.ref<[?], f32, scratch>, which must be global

// -----

func.func @check_values(%c: i1) {
  tile.check %c, "row {} is bad"
  func.return
}

// CHECK: tile.check: the message has 1 holes for 0 values (at most 4)

// -----

tile.kernel @kernel_axis() grid(%i of %n) axes [random] {
  tile.return
}

// CHECK: tile.kernel: an axis is 'parallel' or 'ordered', not 'random'

// -----

tile.kernel @kernel_end() grid() axes [] {
  "test.termop"() : () -> ()
}

// CHECK: tile.kernel @kernel_end: the body must end in tile.return

// -----

"tile.kernel"() <{sym_name = "kernel_ids", axes = ["parallel"]}> ({
^bb0(%i: i32, %n: i32):
  tile.return
}) : () -> ()

// CHECK: tile.kernel @kernel_ids: needs an index program id and grid size for each axis

// -----

func.func @ref_space(%x: !tile.ref<[4], f32, shared>) {
  func.return
}

// CHECK: tile.ref: space must be one of ('global', 'scratch'), not 'shared'
