"""The number of threads changes no bit and no failure: tile kernels, a whole graph, callers at once, after a fork."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits, parse_module, run_compiled, run_interpreted

from halfulp.compiler import CompileOptions, DeviceRef
from halfulp.compiler.codegen.cpu import host_target
from halfulp.runtime import Buffer, InferenceSession, Model
from halfulp.runtime.pipelines import log_probabilities_ragged_graph
from halfulp.runtime.threads import thread_pool

THREADS = (1, 2, 3, 5, 16)
ROWS, COLUMNS, BLOCK = 96, 64, 64
Array = np.ndarray[Any, np.dtype[Any]]

REF, PART = "!tile.ref<[?, ?], f32, global>", f"!tile.ref<[{BLOCK}], f32, global>"


def kernel(grid: str, axes: str, check: str = "") -> str:
    """Row i of y becomes, for each column block j in order, ``y / 2 + exp(x)``."""
    vector = f"tensor<{BLOCK}xf32>"
    sizes = {"i": ROWS, "j": COLUMNS}
    ids = ", ".join(f"%{axis} of %{axis}s" for axis in grid)
    launch = ", ".join(f"%{axis}s" for axis in grid)
    constants = "\n".join(f"%{axis}s = arith.constant {sizes[axis]} : index" for axis in grid)
    return f"""
    tile.kernel @k(%X: {REF}, %Y: {REF}) grid({ids}) axes [{axes}] {{
      %zero = arith.constant 0 : index
      %half = arith.constant 5.000000e-01 : f32
      %xw = tile.window %X[%i, %j] blocked [1, {BLOCK}] squeezed [0] : {REF} -> {PART}
      %yw = tile.window %Y[%i, %zero] blocked [1, {BLOCK}] squeezed [0] : {REF} -> {PART}
      %x = tile.load %xw : {PART} -> {vector}
      {check}
      %y = tile.load %yw : {PART} -> {vector}
      %halves = tile.splat %half : f32 -> {vector}
      %less = arith.mulf %y, %halves : {vector}
      %e = math.exp %x : {vector}
      %sum = arith.addf %less, %e : {vector}
      tile.store %sum, %yw : {vector}, {PART}
      tile.return
    }}
    func.func @g(%X: {REF}, %Y: {REF}) {{
      {constants}
      tile.launch @k grid({launch}) (%X, %Y) : {REF}, {REF}
      func.return
    }}
    """


CHECK = f"""
      %first = tile.extract %x[%zero] : tensor<{BLOCK}xf32> -> f32
      %limit = arith.constant 2.000000e+00 : f32
      %good = tile.cmpf olt %first, %limit : f32 -> i1
      tile.check %good, "row {{}}, block {{}} is too large" values %i, %j : index, index
"""

KERNELS = {
    "parallel rows, each with ordered blocks": kernel("ij", "parallel, ordered"),
    "ordered blocks of parallel rows": kernel("ji", "ordered, parallel"),
    "all in order": kernel("ij", "ordered, ordered"),
}


def arrays() -> list[Array]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal((ROWS, COLUMNS * BLOCK), np.float32), np.zeros((ROWS, BLOCK), np.float32)]


def runs(text: str) -> None:
    """One thread, several and the interpreter agree on every bit and on the failure."""
    module, inputs = parse_module(text), arrays()
    expected = run_interpreted(module, inputs)
    for threads in THREADS:
        options = CompileOptions(threads=threads)
        run = run_compiled(module, inputs, host_target().vector_bits, options)
        assert run.failure == expected.failure, f"{threads} threads"
        for actual, wanted in zip(run.arrays, expected.arrays, strict=True):
            assert_same_bits(actual, wanted, f"{threads} threads")


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_give_the_same_bits_on_any_number_of_threads(name: str) -> None:
    runs(KERNELS[name])


def test_the_first_failing_program_is_reported_on_any_number_of_threads() -> None:
    module = parse_module(kernel("ij", "parallel, ordered", CHECK))
    assert (arrays()[0][:, ::BLOCK] >= 2).sum() > 50
    failed = run_interpreted(module, arrays()).failure
    assert failed is not None
    assert "is too large" in failed[1]
    for threads in (1, 2, 5, 16):
        run = run_compiled(module, arrays(), host_target().vector_bits, CompileOptions(threads=threads))
        assert run.failure == failed, f"{threads} threads"


@cache
def log_probabilities(threads: int) -> Model:
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)
    return InferenceSession().load(graph, options=CompileOptions(threads=threads))


@cache
def inputs() -> tuple[Buffer, ...]:
    rows, vocab = 40, 30_011
    rng = np.random.default_rng(1)
    logits = rng.normal(scale=3.0, size=(rows, vocab)).astype(np.float32)
    tokens = rng.integers(vocab, size=rows).astype(np.uint32)
    offsets = np.arange(rows + 1, dtype=np.uint32)
    return tuple(map(Buffer.from_numpy, (logits, tokens, tokens, offsets, offsets, offsets, offsets)))


def outputs(threads: int) -> list[bytes]:
    return [buffer.to_numpy().tobytes() for buffer in log_probabilities(threads).execute(*inputs())]


def test_a_graph_gives_the_same_bits_on_any_number_of_threads() -> None:
    expected = outputs(1)
    for threads in THREADS[1:]:
        assert outputs(threads) == expected, f"{threads} threads"
    assert thread_pool().workers == max(THREADS) - 1


def test_callers_at_once_get_the_same_bits() -> None:
    expected = outputs(1)
    found: list[list[bytes]] = []

    def repeat(threads: int) -> None:
        found.extend(outputs(threads) for _ in range(5))

    callers = [threading.Thread(target=repeat, args=(threads,)) for threads in (2, 3, 16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 15
    assert all(result == expected for result in found)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_gets_the_same_bits_and_leaves_its_parent_alone() -> None:
    expected = outputs(3)
    child = os.fork()
    if not child:
        os._exit(0 if thread_pool().workers == 0 and outputs(3) == expected else 1)
    assert outputs(3) == expected
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
