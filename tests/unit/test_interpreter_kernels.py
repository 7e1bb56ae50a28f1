"""Whole programs: entry functions, launches, symbolic dims, checks, control flow, and kernels with known results."""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.dialects.tile import KernelOp
from halfulp.compiler.interpreter import FailedCheck, InterpreterError, exact, interpret, interpret_kernel

Parse = Callable[[str], ModuleOp]


def run_loop(parse: Parse, body: str, *values: int) -> list[int]:
    """Runs ``body`` with scalars %a, %b, ... in a kernel; what it stores through ``%r : index``."""
    names = [f"%{'abc'[i]}" for i in range(len(values))]
    parameters = "".join(f", {name}: index" for name in names)
    module = parse(f"""
    tile.kernel @k(%out: !tile.ref<[1], index, global>{parameters}) grid() axes [] {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      {body}
      %block = tile.splat %r : index -> tensor<1xindex>
      tile.store %block, %out : tensor<1xindex>, !tile.ref<[1], index, global>
      tile.return
    }}""")
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    out = np.zeros(1, np.int64)
    assert interpret_kernel(kernel, [], [out, *values]) is None
    return [int(n) for n in out]


def test_for_carries_values_and_may_run_no_round(parse_tile: Parse) -> None:
    body = """
    %r = scf.for %i = %zero to %a step %b iter_args(%sum = %one) -> (index) {
      %next = arith.addi %sum, %i : index
      scf.yield %next : index
    }"""
    assert run_loop(parse_tile, body, 10, 3) == [1 + 0 + 3 + 6 + 9]
    assert run_loop(parse_tile, body, 0, 1) == [1]
    assert run_loop(parse_tile, body, -5, 1) == [1]


@pytest.mark.parametrize("step", [0, -1])
def test_for_needs_a_positive_step(step: int, parse_tile: Parse) -> None:
    body = """
    scf.for %i = %zero to %a step %b {
      scf.yield
    }
    %r = arith.constant 0 : index"""
    with pytest.raises(InterpreterError) as error:
        run_loop(parse_tile, body, 10, step)
    assert str(error.value) == f"@k: the step of scf.for must be positive, not {step}"


def test_while_passes_what_its_condition_names(parse_tile: Parse) -> None:
    body = """
    %r, %last = scf.while (%x = %a, %n = %zero) : (index, index) -> (index, index) {
      %go = arith.cmpi sgt, %x, %one : index
      scf.condition(%go) %n, %x : index, index
    } do {
    ^bb0(%n: index, %x: index):
      %half = tile.int_div floordivs %x, %two : index
      %m = arith.addi %n, %one : index
      scf.yield %half, %m : index, index
    }"""
    two = "%two = arith.constant 2 : index"
    assert run_loop(parse_tile, two + body, 100) == [6]
    assert run_loop(parse_tile, two + body, 1) == [0]


def test_if_takes_one_branch(parse_tile: Parse) -> None:
    body = """
    %c = arith.cmpi slt, %a, %b : index
    %r = scf.if %c -> (index) {
      scf.yield %a : index
    } else {
      %s = arith.subi %a, %b : index
      scf.yield %s : index
    }"""
    assert run_loop(parse_tile, body, 3, 5) == [3]
    assert run_loop(parse_tile, body, 7, 5) == [2]


def test_if_without_else_does_nothing_when_false(parse_tile: Parse) -> None:
    body = """
    %r = arith.constant 1 : index
    %c = arith.cmpi eq, %a, %one : index
    scf.if %c {
      tile.check %false, "taken"
    }"""
    assert run_loop(parse_tile, "%false = arith.constant false" + body, 0) == [1]
    with pytest.raises(AssertionError, match="taken"):
        run_loop(parse_tile, "%false = arith.constant false" + body, 1)


def test_index_switch(parse_tile: Parse) -> None:
    body = """
    %r = scf.index_switch %a -> index
    case 2 {
      scf.yield %one : index
    }
    case 5 {
      scf.yield %b : index
    }
    default {
      scf.yield %zero : index
    }"""
    assert [run_loop(parse_tile, body, n, 40) for n in (2, 5, 3)] == [[1], [40], [0]]


# -- launches


def test_programs_run_in_row_major_order(parse_tile: Parse) -> None:
    """Each program appends its ids to a log at a position kept in memory."""
    module = parse_tile("""
    tile.kernel @log(%log: !tile.ref<[6, 2], index, global>, %at: !tile.ref<[1], index, global>)
        grid(%i of %n, %j of %m) axes [ordered, ordered] {
      %zero = arith.constant 0 : index
      %one = arith.constant dense<1> : tensor<1xindex>
      %position = tile.load %at : !tile.ref<[1], index, global> -> tensor<1xindex>
      %row = tile.extract %position[%zero] : tensor<1xindex> -> index
      %a = tile.splat %i : index -> tensor<1xindex>
      %b = tile.splat %j : index -> tensor<1xindex>
      %ids = tile.concat 0 of %a, %b : tensor<1xindex>, tensor<1xindex> -> tensor<2xindex>
      %w = tile.window %log[%row, %zero] blocked [1, 2] squeezed [0]
        : !tile.ref<[6, 2], index, global> -> !tile.ref<[2], index, global>
      tile.store %ids, %w : tensor<2xindex>, !tile.ref<[2], index, global>
      %next = arith.addi %position, %one : tensor<1xindex>
      tile.store %next, %at : tensor<1xindex>, !tile.ref<[1], index, global>
      tile.return
    }""")
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    log, at = np.zeros((6, 2), np.int64), np.zeros(1, np.int64)
    interpret_kernel(kernel, [2, 3], [log, at])
    assert log.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    for grid in ([0, 3], [2, -1]):
        interpret_kernel(kernel, grid, [log, at])
    assert at.tolist() == [6], "a grid with a size of zero or less runs nothing"


def test_wrong_counts_are_refused(parse_tile: Parse) -> None:
    module = parse_tile("tile.kernel @k(%a: index) grid(%i of %n) axes [parallel] {\n  tile.return\n}")
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    with pytest.raises(InterpreterError) as error:
        interpret_kernel(kernel, [1, 2], [3])
    assert str(error.value) == "kernel @k takes 1 arguments and 1 grid sizes, not 1 and 2"


COMPACT = """
tile.kernel @double(%x: !tile.ref<[?], i32, global>, %y: !tile.ref<[?], i32, global>) grid(%i of %n) axes [parallel] {
  %w = tile.window %x[%i] blocked [4] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[4], i32, global>
  %o = tile.window %y[%i] blocked [4] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[4], i32, global>
  %b = tile.load %w : !tile.ref<[4], i32, global> -> tensor<4xi32>
  %s = arith.addi %b, %b : tensor<4xi32>
  tile.store %s, %o : tensor<4xi32>, !tile.ref<[4], i32, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?], i32, global>, %out: !tile.ref<[?], i32, global>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %f = tile.window %x[%zero] element [1] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[1], i32, global>
  %b = tile.load %f : !tile.ref<[1], i32, global> -> tensor<1xi32>
  %s = tile.extract %b[%zero] : tensor<1xi32> -> i32
  %k = arith.index_cast %s : i32 to index
  tile.set_dim "k", %k
  %t = tile.buffer ["2*k"] : !tile.ref<[?], i32, global>
  %n = tile.dim %t, 0 : !tile.ref<[?], i32, global>
  %blocks = arith.ceildivui %n, %four : index
  tile.launch @double grid(%blocks) (%x, %t) : !tile.ref<[?], i32, global>, !tile.ref<[?], i32, global>
  tile.launch @double grid(%blocks) (%t, %out) : !tile.ref<[?], i32, global>, !tile.ref<[?], i32, global>
  func.return
}"""


def test_a_dim_set_from_data_sizes_buffers_and_outputs(parse_tile: Parse) -> None:
    seen: list[Mapping[str, int]] = []

    def make(bindings: Mapping[str, int]) -> np.ndarray[Any, Any]:
        seen.append(bindings)
        return np.full(bindings["k"] + bindings["extra"], -7, np.int32)

    result = interpret(parse_tile(COMPACT), "main", [np.arange(3, 11, dtype=np.int32), make], {"extra": 4})
    assert seen == [{"extra": 4, "k": 3}]
    assert result.bindings == {"extra": 4, "k": 3}
    assert result.failed is None
    assert result.arrays[0] is not None
    assert result.arrays[1] is not None
    # the buffer between has 6 elements: the rest of the two blocks of 4 reads as zero
    assert result.arrays[1].tolist() == [12, 16, 20, 24, 28, 32, 0]


def test_outputs_are_changed_in_place(parse_tile: Parse) -> None:
    out = np.zeros(6, np.int32)
    result = interpret(parse_tile(COMPACT), "main", [np.full(6, 3, np.int32), out])
    assert result.arrays[1] is out
    assert out.tolist() == [12] * 6


def test_a_made_buffer_is_checked_like_any_other(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        interpret(
            parse_tile(COMPACT), "main", [np.full(6, 3, np.int32), lambda dims: np.zeros((2, dims["k"]), np.int32)]
        )
    assert str(error.value) == (
        "buffer 1 (%out) must be a int32 array of shape [?], not int32 of shape [2, 3]; convert or reshape it first"
    )


def test_the_contents_of_a_buffer_start_undefined(parse_tile: Parse) -> None:
    module = parse_tile("""
    tile.kernel @copy(%x: !tile.ref<[2], f32, global>, %y: !tile.ref<[2], f32, global>) grid() axes [] {
      %b = tile.load %x : !tile.ref<[2], f32, global> -> tensor<2xf32>
      tile.store %b, %y : tensor<2xf32>, !tile.ref<[2], f32, global>
      tile.return
    }
    func.func @main(%y: !tile.ref<[2], f32, global>) {
      %x = tile.buffer ["2"] : !tile.ref<[2], f32, global>
      tile.launch @copy grid() (%x, %y) : !tile.ref<[2], f32, global>, !tile.ref<[2], f32, global>
      func.return
    }""")
    out = np.zeros(2, np.float32)
    interpret(module, "main", [out])
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("dim", "problem"), [("n - 3", "must not be negative; it is -1"), ("n", "must be 4, as in {type}; it is 2")]
)
def test_a_buffer_extent_must_fit(dim: str, problem: str, parse_tile: Parse) -> None:
    ref_type = "!tile.ref<[4], f32, global>"
    module = parse_tile(f'func.func @main() {{\n  %x = tile.buffer ["{dim}"] : {ref_type}\n  func.return\n}}')
    with pytest.raises(InterpreterError) as error:
        interpret(module, "main", [], {"n": 2})
    assert str(error.value) == f"@main: extent '{dim}' of a tile.buffer {problem.format(type=ref_type)}"


def test_a_transfer_copies_in_row_major_order(parse_tile: Parse) -> None:
    module = parse_tile("""
    func.func @main(%x: !tile.ref<[2, 3], i32, global>, %y: !tile.ref<[6], i32, global>) {
      tile.transfer %x to %y : !tile.ref<[2, 3], i32, global> to !tile.ref<[6], i32, global>
      func.return
    }""")
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros(6, np.int32)
    interpret(module, "main", [x, y])
    assert y.tolist() == [0, 1, 2, 3, 4, 5]


def test_prints_are_kept_in_the_order_of_the_program(parse_tile: Parse) -> None:
    module = parse_tile("""
    tile.kernel @show(%x: !tile.ref<[2], i32, global>) grid(%p of %n) axes [ordered] {
      %b = tile.load %x : !tile.ref<[2], i32, global> -> tensor<2xi32>
      tile.print "{} of {}" values %p, %b : index, tensor<2xi32> as ["i64", "i32"]
      tile.return
    }
    func.func @main(%x: !tile.ref<[2], i32, global>) {
      %two = arith.constant 2 : index
      tile.launch @show grid(%two) (%x) : !tile.ref<[2], i32, global>
      tile.print_tensor %x, "x" as "i32" : !tile.ref<[2], i32, global>
      func.return
    }""")
    printed = interpret(module, "main", [np.array([5, 7], np.int32)]).printed
    assert [one.line for one in printed[:2]] == ["0 of [5 7]", "1 of [5 7]"]
    assert (printed[2].site.text, printed[2].site.is_tensor) == ("x", True)
    assert printed[2].arrays[0].tolist() == [5, 7]


def test_arguments_of_the_entry_are_references(parse_tile: Parse) -> None:
    module = parse_tile("func.func @main(%n: index) {\n  func.return\n}")
    with pytest.raises(InterpreterError) as error:
        interpret(module, "main", [np.zeros(1)])
    assert str(error.value) == "buffer 0 (%n) must be for an argument of type !tile.ref, not index"
    with pytest.raises(InterpreterError) as error:
        interpret(module, "main", [])
    assert str(error.value) == "@main takes 1 buffers, not 0"


def test_a_launch_of_no_kernel_is_named(parse_tile: Parse) -> None:
    module = parse_tile("""
    tile.kernel @scale() grid() axes [] {
      tile.return
    }
    func.func @main() {
      tile.launch @scales grid() () :
      func.return
    }""")
    with pytest.raises(InterpreterError) as error:
        interpret(module, "main", [])
    assert str(error.value) == "@main: launches kernel @scales, which does not exist; did you mean 'scale'?"


# -- checks

CHECKED = """
tile.kernel @inside(%x: !tile.ref<[?], index, global>, %y: !tile.ref<[?], index, global>)
    grid(%i of %n) axes [parallel] {
  %zero = arith.constant 0 : index
  %w = tile.window %x[%i] element [1] squeezed [] : !tile.ref<[?], index, global> -> !tile.ref<[1], index, global>
  %b = tile.load %w : !tile.ref<[1], index, global> -> tensor<1xindex>
  %v = tile.extract %b[%zero] : tensor<1xindex> -> index
  %positive = arith.cmpi sge, %v, %zero : index
  %ten = arith.constant 10 : index
  %small = arith.cmpi slt, %v, %ten : index
  tile.check %positive, "row {} has {{ {}" values %i, %v : index, index
  tile.check %small, "row {} is too large: {} of {}" values %i, %v, %n : index, index, index
  %o = tile.window %y[%i] element [1] squeezed [] : !tile.ref<[?], index, global> -> !tile.ref<[1], index, global>
  tile.store %b, %o : tensor<1xindex>, !tile.ref<[1], index, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?], index, global>, %y: !tile.ref<[?], index, global>,
                %z: !tile.ref<[?], index, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[?], index, global>
  tile.launch @inside grid(%n) (%x, %y) : !tile.ref<[?], index, global>, !tile.ref<[?], index, global>
  tile.launch @inside grid(%n) (%y, %z) : !tile.ref<[?], index, global>, !tile.ref<[?], index, global>
  func.return
}"""


def test_the_first_failing_program_is_reported_and_all_others_run(parse_tile: Parse) -> None:
    x, y = np.array([1, 20, -3, 30]), np.zeros(4, np.int64)
    result = interpret(parse_tile(CHECKED), "main", [x, y, lambda dims: np.zeros(4, np.int64)])
    assert result.failed == FailedCheck("inside", (1,), "row 1 is too large: 20 of 4")
    assert y.tolist() == x.tolist()
    assert result.arrays[2] is None, "the run ends with the failing launch"


def test_the_first_failing_check_of_a_program_is_reported(parse_tile: Parse) -> None:
    result = interpret(parse_tile(CHECKED), "main", [np.array([1, -3]), np.zeros(2, np.int64), np.zeros(2, np.int64)])
    assert result.failed == FailedCheck("inside", (1,), "row 1 has {{ -3")


def test_no_failed_check(parse_tile: Parse) -> None:
    x, y, z = np.array([1, 2]), np.zeros(2, np.int64), np.zeros(2, np.int64)
    assert interpret(parse_tile(CHECKED), "main", [x, y, z]).failed is None
    assert z.tolist() == [1, 2]


def test_a_check_in_the_entry_function_stops_it(parse_tile: Parse) -> None:
    module = parse_tile("""
    func.func @main(%x: !tile.ref<[?], f32, global>) {
      %one = arith.constant 1 : index
      %n = tile.dim %x, 0 : !tile.ref<[?], f32, global>
      %ok = arith.cmpi eq, %n, %one : index
      tile.check %ok, "x has {} elements" values %n : index
      tile.launch @missing grid() () :
      func.return
    }""")
    result = interpret(module, "main", [np.zeros(3, np.float32)])
    assert result.failed == FailedCheck("main", None, "x has 3 elements")
    with pytest.raises(InterpreterError, match="@missing"):
        interpret(module, "main", [np.zeros(1, np.float32)])


# -- kernels with known results

SOFTMAX = """
tile.kernel @softmax(%x: !tile.ref<[?, ?], f32, global>, %y: !tile.ref<[?, ?], f32, global>)
    grid(%r of %n) axes [parallel] {
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %w = tile.window %x[%r, %zero] blocked [1, 256] squeezed [0]
    : !tile.ref<[?, ?], f32, global> -> !tile.ref<[256], f32, global>
  %b = tile.load %w other %ninf : f32 : !tile.ref<[256], f32, global> -> tensor<256xf32>
  %m = tile.reduce maximum %b axis 0 lanes 64 : tensor<256xf32> -> f32
  %ms = tile.splat %m : f32 -> tensor<256xf32>
  %d = arith.subf %b, %ms : tensor<256xf32>
  %e = math.exp %d : tensor<256xf32>
  %sum = tile.reduce add %e axis 0 lanes 64 : tensor<256xf32> -> f32
  %ss = tile.splat %sum : f32 -> tensor<256xf32>
  %q = arith.divf %e, %ss : tensor<256xf32>
  %o = tile.window %y[%r, %zero] blocked [1, 256] squeezed [0]
    : !tile.ref<[?, ?], f32, global> -> !tile.ref<[256], f32, global>
  tile.store %q, %o : tensor<256xf32>, !tile.ref<[256], f32, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?, ?], f32, global>, %y: !tile.ref<[?, ?], f32, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[?, ?], f32, global>
  tile.launch @softmax grid(%n) (%x, %y) : !tile.ref<[?, ?], f32, global>, !tile.ref<[?, ?], f32, global>
  func.return
}"""


def test_softmax(parse_tile: Parse) -> None:
    x = (np.random.default_rng(0).standard_normal((5, 200)) * 4).astype(np.float32)
    y = np.zeros_like(x)
    interpret(parse_tile(SOFTMAX), "main", [x, y])
    exponentials = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = exponentials / exponentials.sum(1, keepdims=True)
    # half a unit of x - max, which is below 32, is 2^-20; exp, the sum in lanes and the quotient add a few 2^-24
    np.testing.assert_allclose(y, expected, rtol=2.0**-20 + 8 * 2.0**-24)
    assert abs(y.sum(1) - 1).max() < 1e-5


MATMUL = """
tile.kernel @matmul(%a: !tile.ref<[?, ?], f32, global>, %b: !tile.ref<[?, ?], f32, global>,
                    %c: !tile.ref<[?, ?], f32, global>) grid(%i of %n, %j of %m) axes [parallel, parallel] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %k = tile.dim %a, 1 : !tile.ref<[?, ?], f32, global>
  %eight = arith.constant 8 : index
  %steps = arith.ceildivui %k, %eight : index
  %start = arith.constant dense<0.0> : tensor<4x4xf32>
  %sum = scf.for %s = %zero to %steps step %one iter_args(%acc = %start) -> (tensor<4x4xf32>) {
    %aw = tile.window %a[%i, %s] blocked [4, 8] squeezed []
      : !tile.ref<[?, ?], f32, global> -> !tile.ref<[4, 8], f32, global>
    %bw = tile.window %b[%s, %j] blocked [8, 4] squeezed []
      : !tile.ref<[?, ?], f32, global> -> !tile.ref<[8, 4], f32, global>
    %av = tile.load %aw : !tile.ref<[4, 8], f32, global> -> tensor<4x8xf32>
    %bv = tile.load %bw : !tile.ref<[8, 4], f32, global> -> tensor<8x4xf32>
    %next = tile.dot %av, %bv, %acc fused true : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    scf.yield %next : tensor<4x4xf32>
  }
  %cw = tile.window %c[%i, %j] blocked [4, 4] squeezed []
    : !tile.ref<[?, ?], f32, global> -> !tile.ref<[4, 4], f32, global>
  tile.store %sum, %cw : tensor<4x4xf32>, !tile.ref<[4, 4], f32, global>
  tile.return
}"""


def test_matmul_with_ragged_edges(parse_tile: Parse) -> None:
    kernel = parse_tile(MATMUL).body.block.first_op
    assert isinstance(kernel, KernelOp)
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((10, 21), (21, 7)))
    c = np.full((10, 7), np.nan, np.float32)
    interpret_kernel(kernel, [3, 2], [a, b, c])
    product = a.astype(np.float64) @ b.astype(np.float64)
    # a chain of k fma: an error of at most k units of the sum of magnitudes
    bound = 21 * 2.0**-24 * (abs(a).astype(np.float64) @ abs(b).astype(np.float64))
    assert (abs(c - product) <= bound).all()
    # padding with zeros does not change the chain
    chain = 0.0
    for x, y in zip(a[9], b[:, 6], strict=True):
        chain = float(exact.fma(*(np.array(v, np.float32) for v in (x, y, chain))))
    assert c[9, 6] == chain


ELEMENTWISE = """
tile.kernel @polynomial(%x: !tile.ref<[?], f64, global>, %y: !tile.ref<[?], f64, global>)
    grid(%i of %n) axes [parallel] {
  %w = tile.window %x[%i] blocked [128] squeezed [] : !tile.ref<[?], f64, global> -> !tile.ref<[128], f64, global>
  %o = tile.window %y[%i] blocked [128] squeezed [] : !tile.ref<[?], f64, global> -> !tile.ref<[128], f64, global>
  %b = tile.load %w : !tile.ref<[128], f64, global> -> tensor<128xf64>
  %half = arith.constant dense<0.5> : tensor<128xf64>
  %zero = arith.constant dense<0.0> : tensor<128xf64>
  %p = math.fma %b, %b, %half : tensor<128xf64>
  %q = arith.divf %p, %b : tensor<128xf64>
  %negative = tile.cmpf olt %b, %zero : tensor<128xf64> -> tensor<128xi1>
  %s = tile.select %negative, %zero, %q : tensor<128xi1>, tensor<128xf64>, tensor<128xf64> -> tensor<128xf64>
  tile.store %s, %o : tensor<128xf64>, !tile.ref<[128], f64, global>
  tile.return
}"""


def test_elementwise_kernel(parse_tile: Parse) -> None:
    kernel = parse_tile(ELEMENTWISE).body.block.first_op
    assert isinstance(kernel, KernelOp)
    x = np.random.default_rng(2).standard_normal(300)
    y = np.zeros(300)
    interpret_kernel(kernel, [3], [x, y])
    np.testing.assert_allclose(y, np.where(x < 0, 0, (x * x + 0.5) / x), rtol=3 * 2.0**-52)


LOGPROBS = """
tile.kernel @chunks(%x: !tile.ref<[?, ?], f32, global>, %out: !tile.ref<[?, ?, 2], f32, global>)
    grid(%r of %nr, %c of %nc) axes [parallel, parallel] {
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %w = tile.window %x[%r, %c] blocked [1, 16384] squeezed [0]
    : !tile.ref<[?, ?], f32, global> -> !tile.ref<[16384], f32, global>
  %b = tile.load %w other %ninf : f32 : !tile.ref<[16384], f32, global> -> tensor<16384xf32>
  %m = tile.reduce maximum %b axis 0 lanes 64 : tensor<16384xf32> -> f32
  %ms = tile.splat %m : f32 -> tensor<16384xf32>
  %d = arith.subf %b, %ms : tensor<16384xf32>
  %e = math.exp %d : tensor<16384xf32>
  %sum = tile.reduce add %e axis 0 lanes 64 : tensor<16384xf32> -> f32
  %m1 = tile.splat %m : f32 -> tensor<1xf32>
  %s1 = tile.splat %sum : f32 -> tensor<1xf32>
  %pair = tile.concat 0 of %m1, %s1 : tensor<1xf32>, tensor<1xf32> -> tensor<2xf32>
  %o = tile.window %out[%r, %c, %zero] blocked [1, 1, 2] squeezed [0, 1]
    : !tile.ref<[?, ?, 2], f32, global> -> !tile.ref<[2], f32, global>
  tile.store %pair, %o : tensor<2xf32>, !tile.ref<[2], f32, global>
  tile.return
}"""


def test_log_probability_chunks_of_two_rows_take_less_than_a_second(parse_tile: Parse) -> None:
    kernel = parse_tile(LOGPROBS).body.block.first_op
    assert isinstance(kernel, KernelOp)
    x = np.random.default_rng(3).standard_normal((2, 49152)).astype(np.float32)
    out = np.zeros((2, 3, 2), np.float32)
    start = time.process_time()
    interpret_kernel(kernel, [2, 3], [x, out])
    assert time.process_time() - start < 1
    chunks = x.reshape(2, 3, 16384).astype(np.float64)
    np.testing.assert_allclose(out[..., 0], chunks.max(-1), rtol=0)
    np.testing.assert_allclose(out[..., 1], np.exp(chunks - chunks.max(-1, keepdims=True)).sum(-1), rtol=1e-6)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets MXCSR, the control register of x86-64")
def test_a_thread_that_flushes_subnormals_is_refused(parse_tile: Parse) -> None:
    module = parse_tile("func.func @main() {\n  func.return\n}")
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # glibc's fenv_t: 28 bytes of x87 state, then MXCSR
    libm.fegetenv(environment)
    original = environment[7]
    environment[7] |= 0x8040  # flush to zero, denormals are zero
    libm.fesetenv(environment)
    try:
        with pytest.raises(InterpreterError) as error:
            interpret(module, "main", [])
    finally:
        environment[7] = original
        libm.fesetenv(environment)
    assert str(error.value) == (
        "this thread flushes subnormal floats to zero, so numpy rounds otherwise than IEEE 754; undo what set it"
        " (a library built with -ffast-math, torch.set_flush_denormal) before interpreting"
    )
    assert interpret(module, "main", []).failed is None
