"""Windows, loads and stores: what lies outside the valid range reads as the pad and drops what is stored to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler.dialects.tile import KernelOp
from halfulp.compiler.interpreter import InterpreterError, interpret_kernel
from halfulp.compiler.interpreter.memory import Reference

Parse = Callable[[str], ModuleOp]

PAD = np.array(-1, np.int32)


def kernel_in(module: ModuleOp) -> KernelOp:
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    return kernel


def run(parse: Parse, text: str, arguments: Sequence[Any], grid: Sequence[int] = ()) -> None:
    assert interpret_kernel(kernel_in(parse(text)), grid, arguments) is None


@given(st.data())
def test_windows_of_windows_read_what_all_of_them_contain(data: st.DataObject) -> None:
    """Against a scalar rule: an element counts if it lies in the array and in every window on the way."""
    array = np.arange(30, dtype=np.int32).reshape(5, 6)
    reference = Reference.whole(array)
    origin, inside = [0, 0], [set(range(5)), set(range(6))]
    for _ in range(data.draw(st.integers(1, 3))):
        starts = [data.draw(st.integers(-4, 8)) for _ in range(2)]
        shape = [data.draw(st.integers(1, 7)) for _ in range(2)]
        reference = reference.window(starts, shape, ())
        origin = [o + s for o, s in zip(origin, starts, strict=True)]
        inside = [i & set(range(o, o + n)) for i, o, n in zip(inside, origin, shape, strict=True)]
    got = reference.load(None, PAD)
    assert got.shape == tuple(shape)
    for i, j in np.ndindex(*shape):
        row, column = origin[0] + i, origin[1] + j
        assert got[i, j] == (array[row, column] if row in inside[0] and column in inside[1] else PAD)
    reference.store(np.full(shape, 100, np.int32), None)
    for row, column in np.ndindex(5, 6):
        written = row in inside[0] and column in inside[1]
        assert array[row, column] == (100 if written else 6 * row + column)


def test_squeezed_axis_outside_makes_everything_invalid() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    for row, expected in ((1, [4, 5, 6, 7]), (3, [-1] * 4), (-1, [-1] * 4)):
        window = Reference.whole(array).window([row, 0], [1, 4], [0])
        assert window.load(None, PAD).tolist() == expected
    Reference.whole(array).window([3, 0], [1, 4], [0]).store(np.zeros(4, np.int32), None)
    assert array.tolist() == np.arange(12).reshape(3, 4).tolist()


def test_load_takes_a_snapshot() -> None:
    array = np.zeros(4, np.int32)
    block = Reference.whole(array).load(None, PAD)
    array[:] = 7
    assert block.tolist() == [0] * 4


def test_blocked_and_element_windows(parse_tile: Parse) -> None:
    text = """
    tile.kernel @k(%x: !tile.ref<[?], i32, global>, %out: !tile.ref<[2, 4], i32, global>)
        grid(%i of %n) axes [parallel] {{
      %pad = arith.constant -1 : i32
      %w = tile.window %x[%i] {indexing} [4] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[4], i32, global>
      %b = tile.load %w other %pad : i32 : !tile.ref<[4], i32, global> -> tensor<4xi32>
      %zero = arith.constant 0 : index
      %o = tile.window %out[%i, %zero] blocked [1, 4] squeezed [0]
        : !tile.ref<[2, 4], i32, global> -> !tile.ref<[4], i32, global>
      tile.store %b, %o : tensor<4xi32>, !tile.ref<[4], i32, global>
      tile.return
    }}"""
    x, out = np.arange(6, dtype=np.int32), np.zeros((2, 4), np.int32)
    run(parse_tile, text.format(indexing="blocked"), [x, out], [2])
    assert out.tolist() == [[0, 1, 2, 3], [4, 5, -1, -1]]
    run(parse_tile, text.format(indexing="element"), [x, out], [2])
    assert out.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_load_without_other_reads_zero_and_masks_work_both_ways(parse_tile: Parse) -> None:
    x, out = np.array([1, 2, 3], np.int32), np.array([9, 9, 9, 9], np.int32)
    run(
        parse_tile,
        """
    tile.kernel @k(%x: !tile.ref<[?], i32, global>, %out: !tile.ref<[4], i32, global>) grid() axes [] {
      %zero = arith.constant 0 : index
      %m = arith.constant dense<[true, true, false, true]> : tensor<4xi1>
      %n = arith.constant dense<[true, false, true, true]> : tensor<4xi1>
      %w = tile.window %x[%zero] blocked [4] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[4], i32, global>
      %b = tile.load %w mask %m : tensor<4xi1> : !tile.ref<[4], i32, global> -> tensor<4xi32>
      tile.store %b, %out mask %n : tensor<4xi1> : tensor<4xi32>, !tile.ref<[4], i32, global>
      tile.return
    }""",
        [x, out],
    )
    assert out.tolist() == [1, 9, 0, 0]


def test_masked_load_gives_other(parse_tile: Parse) -> None:
    x, out = np.array([1.0, 2.0], np.float32), np.zeros(2, np.float32)
    run(
        parse_tile,
        """
    tile.kernel @k(%x: !tile.ref<[2], f32, global>, %out: !tile.ref<[2], f32, global>) grid() axes [] {
      %m = arith.constant dense<[false, true]> : tensor<2xi1>
      %o = arith.constant -0.0 : f32
      %b = tile.load %x mask %m : tensor<2xi1> other %o : f32 : !tile.ref<[2], f32, global> -> tensor<2xf32>
      tile.store %b, %out : tensor<2xf32>, !tile.ref<[2], f32, global>
      tile.return
    }""",
        [x, out],
    )
    assert out.tolist() == [0.0, 2.0]
    assert np.signbit(out[0])


def test_scratch_starts_as_the_pad_in_every_program(parse_tile: Parse) -> None:
    out = np.zeros((2, 2), np.int32)
    run(
        parse_tile,
        """
    tile.kernel @k(%out: !tile.ref<[2, 2], i32, global>) grid(%i of %n) axes [ordered] {
      %pad = arith.constant 5 : i32
      %zero = arith.constant 0 : index
      %s = tile.alloc %pad : i32 -> !tile.ref<[2], i32, scratch>
      %old = tile.load %s : !tile.ref<[2], i32, scratch> -> tensor<2xi32>
      %one = arith.constant dense<[1, 2]> : tensor<2xi32>
      %sum = arith.addi %old, %one : tensor<2xi32>
      tile.store %sum, %s : tensor<2xi32>, !tile.ref<[2], i32, scratch>
      %new = tile.load %s : !tile.ref<[2], i32, scratch> -> tensor<2xi32>
      %o = tile.window %out[%i, %zero] blocked [1, 2] squeezed [0]
        : !tile.ref<[2, 2], i32, global> -> !tile.ref<[2], i32, global>
      tile.store %new, %o : tensor<2xi32>, !tile.ref<[2], i32, global>
      tile.return
    }""",
        [out],
        [2],
    )
    assert out.tolist() == [[6, 7], [6, 7]]


def test_dim_is_the_extent_of_the_window(parse_tile: Parse) -> None:
    x, out = np.zeros((3, 7), np.float32), np.zeros(2, np.int64)
    run(
        parse_tile,
        """
    tile.kernel @k(%x: !tile.ref<[?, ?], f32, global>, %out: !tile.ref<[2], index, global>) grid() axes [] {
      %two = arith.constant 2 : index
      %n = tile.dim %x, 1 : !tile.ref<[?, ?], f32, global>
      %w = tile.window %x[%two, %two] blocked [1, 5] squeezed [0]
        : !tile.ref<[?, ?], f32, global> -> !tile.ref<[5], f32, global>
      %m = tile.dim %w, 0 : !tile.ref<[5], f32, global>
      %a = tile.splat %n : index -> tensor<1xindex>
      %b = tile.splat %m : index -> tensor<1xindex>
      %c = tile.concat 0 of %a, %b : tensor<1xindex>, tensor<1xindex> -> tensor<2xindex>
      tile.store %c, %out : tensor<2xindex>, !tile.ref<[2], index, global>
      tile.return
    }""",
        [x, out],
    )
    assert out.tolist() == [7, 5]


FLATTEN = """
tile.kernel @k(%x: !tile.ref<[?, 3], i32, global>) grid() axes [] {
  %one = arith.constant 1 : index
  %f = tile.flatten %x : !tile.ref<[?, 3], i32, global> -> !tile.ref<[?], i32, global>
  %w = tile.window %f[%one] blocked [4] squeezed [] : !tile.ref<[?], i32, global> -> !tile.ref<[4], i32, global>
  %b = arith.constant dense<7> : tensor<4xi32>
  tile.store %b, %w : tensor<4xi32>, !tile.ref<[4], i32, global>
  tile.return
}"""


def test_flatten_is_a_view_in_row_major_order(parse_tile: Parse) -> None:
    array = np.zeros((2, 3), np.int32)
    run(parse_tile, FLATTEN, [array])
    assert array.tolist() == [[0, 0, 0], [0, 7, 7]]


def test_flatten_needs_row_major_order(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        run(parse_tile, FLATTEN, [np.zeros((3, 2), np.int32).T])
    assert str(error.value) == (
        "tile.flatten needs elements in row-major order; pass a copy by np.ascontiguousarray as the buffer"
    )


def test_flatten_takes_no_window() -> None:
    reference = Reference.whole(np.zeros((2, 3), np.int32))
    for window in (reference.window([0, 0], [1, 3], [0]), reference.window([1, 0], [2, 3], [])):
        with pytest.raises(InterpreterError) as error:
            window.flatten()
        assert str(error.value) == (
            "tile.flatten takes a whole buffer, not a window of one; flatten before tile.window"
        )
    assert reference.window([0, 0], [2, 3], []).flatten().shape == (6,)


REINTERPRET = """
tile.kernel @k(%x: !tile.ref<[?, 3], i32, global>, %rows: index) grid() axes [] {
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  %r = tile.reinterpret %x [%rows, %two] : !tile.ref<[?, 3], i32, global> -> !tile.ref<[?, 2], i32, global>
  %w = tile.window %r[%one, %one] element [2, 1] squeezed [1]
      : !tile.ref<[?, 2], i32, global> -> !tile.ref<[2], i32, global>
  %b = arith.constant dense<7> : tensor<2xi32>
  tile.store %b, %w : tensor<2xi32>, !tile.ref<[2], i32, global>
  tile.return
}"""


def test_reinterpret_keeps_row_major_order(parse_tile: Parse) -> None:
    array = np.zeros((2, 3), np.int32)
    run(parse_tile, REINTERPRET, [array, 3])
    assert array.tolist() == [[0, 0, 0], [7, 0, 7]]


def test_reinterpret_needs_as_many_elements(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        run(parse_tile, REINTERPRET, [np.zeros((2, 3), np.int32), 4])
    assert str(error.value) == "tile.reinterpret: 6 elements do not have the shape [4, 2]"


IDENTITY = """
tile.kernel @k(%x: !tile.ref<[?, 4], f32, global>) grid() axes [] {
  %zero = arith.constant 0 : index
  %w = tile.window %x[%zero, %zero] blocked [1, 4] squeezed [0]
    : !tile.ref<[?, 4], f32, global> -> !tile.ref<[4], f32, global>
  %b = tile.load %w : !tile.ref<[4], f32, global> -> tensor<4xf32>
  tile.store %b, %w : tensor<4xf32>, !tile.ref<[4], f32, global>
  tile.return
}"""


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        (np.zeros((2, 4)), "not float64 of shape [2, 4]; convert or reshape it first"),
        (np.zeros((2, 5), np.float32), "not float32 of shape [2, 5]; convert or reshape it first"),
        (np.zeros(4, np.float32), "not float32 of shape [4]; convert or reshape it first"),
    ],
)
def test_a_buffer_of_another_type_is_refused(argument: Any, problem: str, parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        run(parse_tile, IDENTITY, [argument])
    assert str(error.value) == f"buffer 0 (%x) must be a float32 array of shape [?, 4], {problem}"


def test_unsigned_arrays_hold_the_same_bits(parse_tile: Parse) -> None:
    array = np.zeros((2, 3), np.uint32)
    run(parse_tile, FLATTEN, [array])
    assert array.tolist() == [[0, 0, 0], [0, 7, 7]]


def test_a_buffer_must_be_an_array(parse_tile: Parse) -> None:
    with pytest.raises(InterpreterError) as error:
        run(parse_tile, IDENTITY, [[[0.0] * 4]])
    assert str(error.value) == "buffer 0 (%x) must be a numpy array, not list; use np.asarray"


def test_a_store_into_a_read_only_array_is_refused(parse_tile: Parse) -> None:
    array = np.zeros((1, 4), np.float32)
    array.flags.writeable = False
    with pytest.raises(InterpreterError) as error:
        run(parse_tile, IDENTITY, [array])
    assert str(error.value) == "tile.store writes to a read-only numpy array; pass a writable copy as the buffer"
