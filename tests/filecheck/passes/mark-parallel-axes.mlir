// RUN: halfulp-opt %s -p mark-parallel-axes | filecheck %s

// Every block of %y has its programs in a row along %k: only that axis must keep its order.

tile.kernel @accumulate(%x: !tile.ref<[8, 64], f32, global>, %y: !tile.ref<[8, 8], f32, global>) grid(%i of %m, %j of %n, %k of %p) axes [ordered, ordered, ordered] {
  %a = tile.window %x[%i, %k] blocked [4, 4] squeezed [] : !tile.ref<[8, 64], f32, global> -> !tile.ref<[4, 4], f32, global>
  %b = tile.window %y[%i, %j] blocked [4, 4] squeezed [] : !tile.ref<[8, 8], f32, global> -> !tile.ref<[4, 4], f32, global>
  %0 = tile.load %a : !tile.ref<[4, 4], f32, global> -> tensor<4x4xf32>
  %1 = tile.load %b : !tile.ref<[4, 4], f32, global> -> tensor<4x4xf32>
  %2 = arith.addf %0, %1 : tensor<4x4xf32>
  tile.store %2, %b : tensor<4x4xf32>, !tile.ref<[4, 4], f32, global>
  tile.return
}

// CHECK: @accumulate({{.*}} axes [parallel, parallel, ordered]

// A block index may be any multiple of the id plus a constant: these are reversed, and every other block.

tile.kernel @reversed(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  %c2 = arith.constant -2 : index
  %c14 = arith.constant 14 : index
  %0 = arith.muli %i, %c2 : index
  %1 = arith.addi %c14, %0 : index
  %b = tile.window %y[%1] blocked [4] squeezed [] : !tile.ref<[64], f32, global> -> !tile.ref<[4], f32, global>
  %2 = tile.load %b : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %2, %b : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}

// CHECK: @reversed({{.*}} axes [parallel]

// Windows that overlap by one element.

tile.kernel @overlapping(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  %c3 = arith.constant 3 : index
  %0 = arith.muli %i, %c3 : index
  %b = tile.window %y[%0] element [4] squeezed [] : !tile.ref<[64], f32, global> -> !tile.ref<[4], f32, global>
  %2 = tile.load %b : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %2, %b : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}

// CHECK: @overlapping({{.*}} axes [ordered]

// A program reads what the one before it has written.

tile.kernel @neighbours(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  %c1 = arith.constant 1 : index
  %0 = arith.subi %i, %c1 : index
  %a = tile.window %y[%0] element [1] squeezed [] : !tile.ref<[64], f32, global> -> !tile.ref<[1], f32, global>
  %b = tile.window %y[%i] element [1] squeezed [] : !tile.ref<[64], f32, global> -> !tile.ref<[1], f32, global>
  %2 = tile.load %a : !tile.ref<[1], f32, global> -> tensor<1xf32>
  tile.store %2, %b : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK: @neighbours({{.*}} axes [ordered]

// The data decides where a program writes.

tile.kernel @scatter(%ids: !tile.ref<[64], i64, global>, %y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  %c0 = arith.constant 0 : index
  %a = tile.window %ids[%i] element [1] squeezed [] : !tile.ref<[64], i64, global> -> !tile.ref<[1], i64, global>
  %0 = tile.load %a : !tile.ref<[1], i64, global> -> tensor<1xi64>
  %1 = tile.extract %0[%c0] : tensor<1xi64> -> i64
  %at = tile.cast %1 : i64 -> index
  %one = arith.constant 1.0 : f32
  %2 = tile.splat %one : f32 -> tensor<1xf32>
  %b = tile.window %y[%at] element [1] squeezed [] : !tile.ref<[64], f32, global> -> !tile.ref<[1], f32, global>
  tile.store %2, %b : tensor<1xf32>, !tile.ref<[1], f32, global>
  tile.return
}

// CHECK: @scatter({{.*}} axes [ordered]

// Inside the block of a program any place will do: no access leaves it.

tile.kernel @inner(%x: !tile.ref<[64], i64, global>, %y: !tile.ref<[64], i64, global>) grid(%i of %m) axes [ordered] {
  %c0 = arith.constant 0 : index
  %a = tile.window %x[%i] blocked [4] squeezed [] : !tile.ref<[64], i64, global> -> !tile.ref<[4], i64, global>
  %0 = tile.load %a : !tile.ref<[4], i64, global> -> tensor<4xi64>
  %1 = tile.extract %0[%c0] : tensor<4xi64> -> i64
  %at = tile.cast %1 : i64 -> index
  %b = tile.window %y[%i] blocked [4] squeezed [] : !tile.ref<[64], i64, global> -> !tile.ref<[4], i64, global>
  %c = tile.window %b[%at] element [1] squeezed [] : !tile.ref<[4], i64, global> -> !tile.ref<[1], i64, global>
  %2 = tile.splat %1 : i64 -> tensor<1xi64>
  tile.store %2, %c : tensor<1xi64>, !tile.ref<[1], i64, global>
  tile.return
}

// CHECK: @inner({{.*}} axes [parallel]

// All programs share scratch that is an argument, and none share what each allocates.

tile.kernel @shared(%acc: !tile.ref<[4], f32, global>) grid(%i of %m) axes [ordered] {
  %0 = tile.load %acc : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %0, %acc : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}

// CHECK: @shared({{.*}} axes [ordered]

tile.kernel @own(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  %zero = arith.constant 0.0 : f32
  %acc = tile.alloc %zero : f32 -> !tile.ref<[4], f32, scratch>
  %0 = tile.load %acc : !tile.ref<[4], f32, scratch> -> tensor<4xf32>
  tile.store %0, %acc : tensor<4xf32>, !tile.ref<[4], f32, scratch>
  tile.return
}

// CHECK: @own({{.*}} axes [parallel]

// A kernel whose programs shall run one after another.

tile.kernel @sequential(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] attributes {halfulp.sequential} {
  tile.return
}

// CHECK: @sequential({{.*}} axes [ordered]

// And one that prints, since the order of its programs can be seen.

tile.kernel @printing(%y: !tile.ref<[64], f32, global>) grid(%i of %m) axes [ordered] {
  tile.print "{}" values %i : index as ["i64"]
  tile.return
}

// CHECK: @printing({{.*}} axes [ordered]
