"""Tile kernels give the same bits interpreted and compiled at 512, 256 and 128 bits: random ones, and hard ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from differential import WIDTHS, Array, Run, check_both_ways
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_kernels import FAMILIES, programs
from tile_programs import DTYPES, build
from xdsl.dialects.builtin import IndexType, TensorType, f32, i1, i8, i32, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

from halfulp.compiler.tile_builder import KernelBuilder, Value


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
def test_random_kernels(family: str, data: st.DataObject) -> None:
    program = data.draw(programs(FAMILIES[family]))
    width = data.draw(st.sampled_from(WIDTHS))
    try:
        check_both_ways(program.module, program.arrays, widths=[width])
    except DiagnosticException as error:
        if "bytes of stack" not in str(error):  # of many large blocks
            raise


def run(body: Callable[[KernelBuilder], None], *arrays: Array, grid: Sequence[int] = ()) -> Run:
    return check_both_ways(build(arrays, grid, body), arrays)


def floats(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def whole(k: KernelBuilder, ref: Value, *shape: int) -> Value:
    return k.window(ref, [0] * len(shape), shape)


def test_carried_blocks_that_swap() -> None:
    def body(k: KernelBuilder) -> None:
        x, y = (whole(k, ref, 8) for ref in k.arguments)
        results = k.for_loop(0, 3, [k.load(x), k.load(y)], lambda i, p, q: [q, p + q])
        for value, ref in zip(results, (x, y), strict=True):
            k.store(value, ref)

    a, b = floats(8), floats(8) * 3
    result = run(body, a, b)
    assert np.array_equal(result.arrays[0], a + 2 * b)
    assert np.array_equal(result.arrays[1], 2 * a + 3 * b)


def test_load_outside_a_while_loop_whose_body_stores() -> None:
    def body(k: KernelBuilder) -> None:
        x, y = (whole(k, ref, 8) for ref in k.arguments)
        before = k.load(x)

        def condition(i: Value) -> Value:
            k.store(before + 1.0, y)
            return i < 3

        def step(i: Value) -> list[Value]:
            k.store(k.splat(k.cast(i, f32), [8]), x)
            return [i + 1]

        k.while_loop([k.index(0)], condition, step)

    assert np.array_equal(run(body, floats(8), floats(8)).arrays[1], floats(8) + 1)


def test_blocks_without_elements() -> None:
    def body(k: KernelBuilder) -> None:
        x, y = k.arguments
        empty = k.load(whole(k, x, 0, 4))
        k.store(k.reduce("add", empty, 0), k.window(y, [0, 0], [1, 4], squeezed=[0]))
        k.store(k.reduce("mul", k.transpose(empty, [1, 0]), 1), k.window(y, [1, 0], [1, 4], squeezed=[0]))
        k.store(k.reshape(empty, [4, 0]) + 1.0, whole(k, y, 4, 0))
        k.store(k.concat([empty, empty], 1) * 2.0, whole(k, y, 0, 8))
        k.write(k.extract(empty, 0, 0) + 5.0, y, 2, 3)
        k.store(k.slice(empty, [0, 1], [0, 2]), whole(k, y, 0, 2))

    y = run(body, floats(0, 4), floats(4, 4)).arrays[1]
    assert np.array_equal(y[:2], [[0, 0, 0, 0], [1, 1, 1, 1]])
    assert np.signbit(y[0]).all()
    assert y[2, 3] == 5


@pytest.mark.parametrize(("entries", "size"), [(0, 5), (0, 0), (1, 1), (1, 40), (3, 200), (5, 0), (7, 3), (16, 4097)])
def test_top_merge_sizes(entries: int, size: int) -> None:
    values = np.round(np.random.default_rng(size).normal(size=size) * 2).astype(np.float32)
    values[::5], values[1::7] = np.nan, -np.inf

    def body(k: KernelBuilder) -> None:
        top = k.constant(float("-inf"), TensorType(f32, [entries])), k.constant(-1, TensorType(i32, [entries]))
        merged, indices = k.top_merge(*top, k.load(whole(k, k.arguments[0], size)), k.iota([size], i32))
        k.store(merged, whole(k, k.arguments[1], entries))
        k.store(indices, whole(k, k.arguments[2], entries))

    result = run(body, values, np.zeros(entries, np.float32), np.zeros(entries, np.int32))
    order = [int(i) for i in np.lexsort((np.arange(size), -values)) if values[i] > -np.inf][:entries]
    assert result.arrays[2].tolist() == order + [-1] * (entries - len(order))


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_dot_of_short_chains(depth: int, dtype: Any) -> None:
    a, b, acc = (np.arange(np.prod(s)).reshape(s).astype(dtype) for s in ((5, depth), (depth, 19), (5, 19)))

    def body(k: KernelBuilder) -> None:
        blocks = [k.load(whole(k, ref, *array.shape)) for ref, array in zip(k.arguments, (a, b, acc), strict=True)]
        k.store(k.dot(*blocks), whole(k, k.arguments[2], 5, 19))

    assert np.array_equal(run(body, a, b, acc).arrays[2], acc + a @ b)


def test_bools_take_one_byte() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (3, 37)).astype(np.bool_)

    def body(k: KernelBuilder) -> None:
        x, y = k.arguments
        block = k.load(whole(k, x, 3, 37))
        k.store(k.transpose(~block, [1, 0]), whole(k, y, 37, 3))
        k.store(k.reduce("xor", block, 1), k.window(y, [37, 0], [1, 3], squeezed=[0], indexing="element"))
        k.store(k.reshape(k.iota([3], i1), [1, 3]), k.window(y, [38, 0], [1, 3], indexing="element"))

    y = run(body, bits, np.zeros((39, 3), np.bool_)).arrays[1]
    assert np.array_equal(y[:37], ~bits.T)
    assert np.array_equal(y[37], np.bitwise_xor.reduce(bits, 1))
    assert y[38].tolist() == [False, True, False]


def test_first_check_of_the_first_program_that_fails() -> None:
    def body(k: KernelBuilder) -> None:
        (i,) = k.program_ids
        narrow = k.cast(i, i8)
        k.for_loop(0, 3, [], lambda j: k.check(j < 2, "late {}", j))
        k.check(i < 2, "program {}: {} {}", i, narrow * -100, i < 2)
        k.check(i < 1, "smaller {}", i)

    assert run(body, floats(1), grid=[5]).failure == ("k", "late 2")


def test_values_of_a_check_are_signed() -> None:
    def body(k: KernelBuilder) -> None:
        (i,) = k.program_ids
        k.check(i < 2, "{} {} {}", i, k.cast(i, i8) * -60, i > 1)

    assert run(body, floats(1), grid=[5]).failure == ("k", "2 -120 1")


def test_checks_in_the_order_in_which_they_are_reached() -> None:
    def body(k: KernelBuilder) -> None:
        def step(j: Value) -> None:
            k.check(j < 2, "first in the text")
            k.check(j < 1, "reached first")

        k.for_loop(0, 3, [], step)

    assert run(body, floats(1)).failure == ("k", "reached first")


def test_long_and_wide_chains() -> None:
    """Longer than Python's stack is deep, and with more paths than there is time for."""

    def body(k: KernelBuilder) -> None:
        ref = whole(k, k.arguments[0], 40)
        value = k.load(ref)
        for step in range(500):
            value = value + value if step % 2 else value * 0.5
        (value,) = k.for_loop(0, 2, [value], lambda i, carried: [carried * carried + carried * carried])
        k.store(value, ref)

    run(body, floats(40))


def test_constant_blocks_of_different_elements() -> None:
    def body(k: KernelBuilder) -> None:
        steps = k.iota([5], IndexType()) * k.index(3) - k.index(4)
        k.store(k.cast(steps, f32), whole(k, k.arguments[0], 5))

    assert run(body, floats(5)).arrays[0].tolist() == [-4, -1, 2, 5, 8]


BOUNDS = [
    (0, 2**62, 2**62 - 2),
    (0, 2**63 - 1, 2**62 - 2),
    (-(2**63), 2**63 - 1, 2**62 + 3),
    (5, 2**63 - 1, 2**63 - 7),
    (2, 9, 3),
    (3, 3, 1),
    (4, -4, 2),
]


@pytest.mark.parametrize("known", [0, 1, 3])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_loop_counters_that_could_overflow(bounds: tuple[int, int, int], known: int) -> None:
    """Of lower bound, upper bound and step the first ``known`` are constants, the others data."""

    def body(k: KernelBuilder) -> None:
        x, seen, data = k.arguments
        read = [k.cast(k.read(data, n), IndexType()) for n in range(3)]
        lower, upper, step = [b if n < known else r for n, (b, r) in enumerate(zip(bounds, read, strict=True))]

        def count(i: Value, n: Value) -> list[Value]:
            window = k.window(x, [i], [5])
            k.store(k.load(window, 7.0) + 1.0, window)
            k.write(k.cast(i, i64), seen, n)
            return [n + 1]

        k.for_loop(lower, upper, [k.index(0)], count, step)

    seen = run(body, floats(40), np.full(9, -1), np.array(bounds, np.int64)).arrays[1]
    counted = list(range(*bounds))
    assert seen.tolist() == counted + [-1] * (9 - len(counted))


@pytest.mark.parametrize("element", [i8, i64, f32])
@pytest.mark.parametrize("size", [1, 65, 4097])
def test_reductions_along_both_axes(element: Attribute, size: int) -> None:
    dtype = DTYPES[element]
    data = np.random.default_rng(size).integers(-3, 4, (3, size)).astype(dtype)

    def body(k: KernelBuilder) -> None:
        x, rows, columns = k.arguments
        block = k.load(whole(k, x, 3, size))
        k.store(k.reduce("add", block, 1), whole(k, rows, 3))
        k.store(k.reduce("mul", block, 0), whole(k, columns, size))

    run(body, data, np.zeros(3, dtype), np.zeros(size, dtype))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenated_rows_do_not_spill_into_their_neighbours(axis: int) -> None:
    x, y = floats(3, 5, 17), -floats(3, 5, 17)

    def body(k: KernelBuilder) -> None:
        parts = [k.load(whole(k, ref, 3, 5, 17)) for ref in k.arguments[:2]]
        joined = k.concat([*parts, parts[0]], axis)
        k.store(joined, whole(k, k.arguments[2], *joined.shape))

    expected = np.concatenate([x, y, x], axis)
    assert np.array_equal(run(body, x, y, np.zeros_like(expected)).arrays[2], expected)
