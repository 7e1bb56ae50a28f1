"""Tile kernels give the same bits interpreted and as PTX on the emulated GPU: random ones, and hard ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from differential import Array
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_runs import PtxGraph, check_ptx
from random_kernels import FAMILIES, programs
from tile_programs import build
from xdsl.dialects.builtin import f32

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.compiler.interpreter import InterpreterResult
from halfulp.compiler.tile_builder import KernelBuilder, Value
from halfulp.runtime.cuda.emulator import DataRaceError


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
def test_random_kernels(family: str, data: st.DataObject) -> None:
    program = data.draw(programs(FAMILIES[family]))
    check_ptx(program.module, program.arrays, blocks=data.draw(st.sampled_from([1, 2, 61])))


def run(
    body: Callable[[KernelBuilder], None], *arrays: Array, grid: Sequence[int] = (), blocks: int = 61
) -> InterpreterResult:
    return check_ptx(build(arrays, grid, body), arrays, blocks=blocks)


def floats(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)


def whole(k: KernelBuilder, ref: Value, *shape: int) -> Value:
    return k.window(ref, [0] * len(shape), shape)


@pytest.mark.parametrize("lanes", [1, 2, 16, 32, 64, 128, 512, 4096])
@pytest.mark.parametrize("size", [1, 31, 64, 4097, 9000])
def test_reduction_of_any_lanes_and_chunks(lanes: int, size: int) -> None:
    text = f"""
    tile.kernel @k(%x: !tile.ref<[3, {size}], f32, global>, %y: !tile.ref<[3], f32, global>) grid() axes [] {{
      %a = tile.load %x : !tile.ref<[3, {size}], f32, global> -> tensor<3x{size}xf32>
      %s = tile.reduce add %a axis 1 lanes {lanes} : tensor<3x{size}xf32> -> tensor<3xf32>
      tile.store %s, %y : tensor<3xf32>, !tile.ref<[3], f32, global>
      tile.return
    }}
    func.func @main(%x: !tile.ref<[3, {size}], f32, global>, %y: !tile.ref<[3], f32, global>) {{
      tile.launch @k grid() (%x, %y) : !tile.ref<[3, {size}], f32, global>, !tile.ref<[3], f32, global>
      func.return
    }}"""
    check_ptx(text, [floats(3, size), np.zeros(3, np.float32)])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.int64, np.bool_])
def test_lanes_of_every_width_are_shuffled(dtype: type) -> None:
    element = {np.float64: "f64", np.float16: "f16", np.int8: "i8", np.int64: "i64", np.bool_: "i1"}[dtype]
    kind = {"f64": "add", "f16": "maximum", "i1": "or"}.get(element, "add")
    text = f"""
    tile.kernel @k(%x: !tile.ref<[300], {element}, global>, %y: !tile.ref<[1], {element}, global>) grid() axes [] {{
      %a = tile.load %x : !tile.ref<[300], {element}, global> -> tensor<300x{element}>
      %s = tile.reduce {kind} %a axis 0 lanes 64 : tensor<300x{element}> -> {element}
      %b = tile.splat %s : {element} -> tensor<1x{element}>
      tile.store %b, %y : tensor<1x{element}>, !tile.ref<[1], {element}, global>
      tile.return
    }}
    func.func @main(%x: !tile.ref<[300], {element}, global>, %y: !tile.ref<[1], {element}, global>) {{
      tile.launch @k grid() (%x, %y) : !tile.ref<[300], {element}, global>, !tile.ref<[1], {element}, global>
      func.return
    }}"""
    values: Array = (100 * floats(300)).astype(dtype)
    check_ptx(text, [values, np.zeros(1, dtype)])


def test_blocks_that_do_not_fit_into_shared_memory_are_apart_for_each_block_of_threads() -> None:
    def body(k: KernelBuilder) -> None:
        x, y = (k.window(ref, [k.program_ids[0], 0], [1, 20000], squeezed=[0]) for ref in k.arguments)
        results = k.for_loop(0, 2, [k.load(x), k.load(y)], lambda i, p, q: [q + q, p])
        k.store(results[0], y)

    run(body, floats(7, 20000), floats(7, 20000), grid=[7], blocks=3)


def test_carried_blocks_that_swap() -> None:
    def body(k: KernelBuilder) -> None:
        x, y = (whole(k, ref, 300) for ref in k.arguments)
        results = k.for_loop(0, 3, [k.load(x), k.load(y)], lambda i, p, q: [q, p + q])
        for value, ref in zip(results, (x, y), strict=True):
            k.store(value, ref)

    run(body, floats(300), floats(300))


@pytest.mark.parametrize("blocks", [1, 2, 61])
def test_least_failing_program_is_reported_with_its_values(blocks: int) -> None:
    def body(k: KernelBuilder) -> None:
        (p,) = k.program_ids
        k.check(k.compare("lt", p, 40), "program {} comes late", p)
        k.check(k.compare("lt", p, 37), "program {} times two is {}", p, p * 2)
        k.check(k.compare("lt", p, 36), "beyond 35: {}", p - p)

    result = run(body, grid=[50], blocks=blocks)
    assert result.failed is not None
    assert result.failed.program == (36,)
    assert result.failed.message == "beyond 35: 0"


def test_of_one_program_the_first_failure_it_comes_to_is_reported() -> None:
    def body(k: KernelBuilder) -> None:
        def once(i: Value) -> list[Value]:
            k.check(k.compare("ne", i, 2), "in round {}", i)
            k.check(k.compare("ne", i, 1), "before, in round {}", i)
            return []

        k.for_loop(0, 4, [], once)

    result = run(body, grid=[3])
    assert result.failed is not None
    assert result.failed.message == "before, in round 1"


def test_axes_in_order_run_in_order_whatever_the_blocks() -> None:
    """Each program reads what the one before it wrote."""

    def body(k: KernelBuilder) -> None:
        i, j = k.program_ids
        (x,) = k.arguments
        before = k.load(k.window(x, [i, j], [1, 64], squeezed=[0], indexing="element"))
        k.store(before + before, k.window(x, [i, j + 1], [1, 64], squeezed=[0], indexing="element"))

    run(body, floats(3, 80), grid=[3, 16])


def test_top_merge_takes_ties_in_order_and_leaves_nan_out() -> None:
    values = np.concatenate([np.minimum(floats(400), 3), [np.nan, 3.5, 3.5, 3.5]]).astype(np.float32)
    values[[3, 77, 300]] = 3.5
    text = """
    tile.kernel @k(%x: !tile.ref<[404], f32, global>, %y: !tile.ref<[7], f32, global>, %z: !tile.ref<[7], i64, global>) grid() axes [] {
      %low = arith.constant 0xFF800000 : f32
      %last = arith.constant 9223372036854775807 : i64
      %v = tile.splat %low : f32 -> tensor<7xf32>
      %i = tile.splat %last : i64 -> tensor<7xi64>
      %a = tile.load %x : !tile.ref<[404], f32, global> -> tensor<404xf32>
      %n = tile.iota 0 : tensor<404xi64>
      %p, %q = tile.top_merge %v, %i with %a, %n : tensor<7xf32>, tensor<7xi64>, tensor<404xf32>, tensor<404xi64> -> tensor<7xf32>, tensor<7xi64>
      tile.store %p, %y : tensor<7xf32>, !tile.ref<[7], f32, global>
      tile.store %q, %z : tensor<7xi64>, !tile.ref<[7], i64, global>
      tile.return
    }
    func.func @main(%x: !tile.ref<[404], f32, global>, %y: !tile.ref<[7], f32, global>, %z: !tile.ref<[7], i64, global>) {
      tile.launch @k grid() (%x, %y, %z) : !tile.ref<[404], f32, global>, !tile.ref<[7], f32, global>, !tile.ref<[7], i64, global>
      func.return
    }"""  # noqa: E501 (IR)
    result = check_ptx(text, [values, np.zeros(7, np.float32), np.zeros(7, np.int64)])
    top = result.arrays[2]
    assert top is not None
    assert top.tolist()[:6] == [3, 77, 300, 401, 402, 403]


def test_shift_by_a_count_of_which_the_low_half_would_fit() -> None:
    """LLVM 22 makes a select of a 64-bit shift one instruction for NVPTX that reads the low half of the count."""

    def body(k: KernelBuilder) -> None:
        x, counts, left, right = (whole(k, ref, 4) for ref in k.arguments)
        k.store(k.shift("left", k.load(x), k.load(counts)), left)
        k.store(k.shift("right_logical", k.load(x), k.load(counts)), right)

    counts = np.array([1, (1 << 32) + 1, -(1 << 63) + 1, 64], np.int64)
    run(body, np.array([5] * 4, np.int64), counts, np.zeros(4, np.int64), np.zeros(4, np.int64))


@pytest.mark.parametrize("dtype", [DType.float32, DType.bfloat16, DType.float16])
@pytest.mark.parametrize(
    "options",
    [
        {"fp_contract": "off"},
        {"fp_contract": "fast"},
        {"fp_contract": "fast", "bf16": "excess"},
        {"fastmath": "nnan,ninf,nsz,arcp,afn"},
        {"opt_level": 0},
        {"opt_level": 3},
    ],
    ids=str,
)
def test_bits_are_the_same_under_every_option(dtype: DType, options: dict[str, Any]) -> None:
    def forward(x: TensorValue, y: TensorValue) -> list[TensorValue]:
        return [ops.softmax(x * y + x), ops.gelu(x * y - y) + x, ops.maximum(x, y) / y, ops.rsqrt(ops.abs(x))]

    graph = Graph("mixed", forward, [TensorType(dtype, ["rows", "n"], DeviceRef.GPU(0))] * 2)
    run = PtxGraph(graph, CompileOptions(**options))
    assert ".approx" not in run.launches.ptx
    run.check_bits([floats(3, 70).astype(dtype.to_numpy()), floats(70, 3).T.astype(dtype.to_numpy())])


def test_without_any_of_its_barriers_a_kernel_has_a_fault() -> None:
    """Each stands where it must: nothing waits in vain here, and the emulator sees every one that is missing."""
    graph = Graph("rows", ops.logsoftmax, [TensorType(DType.float32, ["rows", 300], DeviceRef.GPU(0))])
    run = PtxGraph(graph)
    lines = run.launches.ptx.splitlines()
    barriers = [number for number, line in enumerate(lines) if "bar.sync" in line]
    assert len(barriers) == 4
    for barrier in barriers:
        text = "\n".join(line for number, line in enumerate(lines) if number != barrier)
        run.launches.module = run.launches.emulator.load_module(text)
        with pytest.raises(DataRaceError):
            run.run([floats(100, 300)])


def test_grid_without_programs_launches_nothing() -> None:
    def body(k: KernelBuilder) -> None:
        k.store(k.splat(k.constant(1.0, f32), [4]), whole(k, k.arguments[0], 4))

    result = run(body, floats(4), grid=[0])
    assert result.arrays[0] is not None
    assert (result.arrays[0] == floats(4)).all()
