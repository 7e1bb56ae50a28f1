"""``tile.reinterpret`` by extents from data: a shape that holds another number of elements holds none."""

from __future__ import annotations

import numpy as np
import pytest
from differential import WIDTHS, Array, parse_module, run_compiled

from halfulp.compiler import CompileOptions

MODULE = """
tile.kernel @fill(%r: !tile.ref<[?, ?], i32, global>) grid(%i of %n) axes [parallel] {
  %zero = arith.constant 0 : index
  %w = tile.window %r[%i, %zero] element [1, 4] squeezed [0]
      : !tile.ref<[?, ?], i32, global> -> !tile.ref<[4], i32, global>
  %b = arith.constant dense<7> : tensor<4xi32>
  tile.store %b, %w : tensor<4xi32>, !tile.ref<[4], i32, global>
  tile.return
}
func.func @main(%x: !tile.ref<[?], i32, global>, %sizes: !tile.ref<[2], i64, global>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %b = tile.load %sizes : !tile.ref<[2], i64, global> -> tensor<2xi64>
  %first = tile.extract %b[%zero] : tensor<2xi64> -> i64
  %second = tile.extract %b[%one] : tensor<2xi64> -> i64
  %rows = tile.cast %first : i64 -> index
  %columns = tile.cast %second : i64 -> index
  %r = tile.reinterpret %x[%rows, %columns] : !tile.ref<[?], i32, global> -> !tile.ref<[?, ?], i32, global>
  tile.launch @fill grid(%eight) (%r) : !tile.ref<[?, ?], i32, global>
  func.return
}
"""


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("rows", "columns", "filled"),
    [
        (3, 4, 12),
        (4, 3, 12),
        (12, 1, 8),  # one row for each of the 8 programs
        (1, 12, 4),
        (5, 3, 0),
        (0, 4, 0),
        (-3, -4, 0),
        (1 << 62, 12, 0),  # multiplies to 0 modulo 2^64
        ((1 << 62) + 3, 4, 0),  # multiplies to 12 modulo 2^64
    ],
)
def test_only_a_shape_of_as_many_elements_is_written(rows: int, columns: int, filled: int, bits: int) -> None:
    arrays: list[Array] = [np.zeros(12, np.int32), np.array([rows, columns], np.int64)]
    run = run_compiled(parse_module(MODULE), arrays, bits, CompileOptions())
    assert int((run.arrays[0] == 7).sum()) == filled
