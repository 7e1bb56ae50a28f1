"""Kernels with blocks too large for a stack: each thread of each execution has an arena for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from halfulp.compiler import CompileError, CompileOptions, DType, Graph, TensorType
from halfulp.compiler.passes.convert_tile_to_loops import ConvertTileToLoopsPass
from halfulp.ops import pallas as pl
from halfulp.runtime import InferenceSession, Model
from halfulp.runtime.pool import MEMORY

ROWS, LENGTH = 24, 400_000
"""A row takes 1.6 MB: two of them are more than a frame may have."""


def reverse_twice(x_ref: Any, o_ref: Any) -> None:
    """Doubled and reversed, added to reversed and back again: four blocks that must exist as a whole."""
    x = x_ref[0, :]
    o_ref[0, :] = (x + x)[::-1] + (x[::-1] * 3.0)[::-1]


def model(threads: int, rows: int | str = "rows", length: int = LENGTH) -> Model:
    def build(x: Any) -> Any:
        block = pl.BlockSpec((1, length), lambda i: (i, 0))
        out = pl.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(reverse_twice, out, grid=(x.shape[0],), in_specs=[block], out_specs=block)(x)

    graph = Graph("rows", build, [TensorType(DType.float32, [rows, length])])
    return InferenceSession().load(graph, options=CompileOptions(threads=threads))


def data(seed: int, rows: int = ROWS, length: int = LENGTH) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, length)).astype(np.float32)


def expected(x: Any) -> bytes:
    result: bytes = ((x + x)[:, ::-1] + x * np.float32(3)).tobytes()
    return result


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 16])
def test_large_blocks_have_the_same_bits_with_any_number_of_threads(threads: int) -> None:
    x = data(threads)
    compiled = model(threads)
    for _ in range(2):
        assert compiled.execute(x)[0].to_numpy().tobytes() == expected(x)


def test_the_report_says_what_each_thread_needs() -> None:
    report = model(3).memory_report((ROWS, LENGTH))
    assert report.threads == 3
    assert report.thread_arena % 128 == 0
    assert report.thread_arena >= 2 * 4 * LENGTH
    assert f"blocks of kernels: {report.thread_arena} bytes for each of 3 threads" in str(report)
    assert "blocks of kernels" not in str(model(3, length=64).memory_report((ROWS, 64)))


def test_concurrent_callers_have_arenas_of_their_own() -> None:
    compiled = model(2)
    inputs = [data(seed, rows=6) for seed in range(4)]
    with ThreadPoolExecutor(4) as callers:
        for _ in range(4):
            for x, result in zip(inputs, callers.map(compiled.execute, inputs), strict=True):
                assert result[0].to_numpy().tobytes() == expected(x)


def test_a_forked_child_has_arenas_of_its_own() -> None:
    compiled, x = model(2), data(1, rows=6)
    assert compiled.execute(x)[0].to_numpy().tobytes() == expected(x)
    child = os.fork()
    if not child:
        y = data(2, rows=6)
        os._exit(int(compiled.execute(y)[0].to_numpy().tobytes() != expected(y)))
    for _ in range(3):
        assert compiled.execute(x)[0].to_numpy().tobytes() == expected(x)
    assert os.waitpid(child, 0)[1] == 0


def resident() -> int:
    """Bytes of memory that this process has; on Linux."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat_over_10_000_executions() -> None:
    compiled, x = model(2, length=5000), data(3, rows=4, length=5000)
    assert compiled.memory_report(x.shape).thread_arena
    for _ in range(500):
        compiled.execute(x)
    before, idle = resident() if sys.platform == "linux" else 0, MEMORY.idle_bytes
    with ThreadPoolExecutor(2) as callers:
        for _ in callers.map(lambda _: compiled.execute(x) and None, range(10_000)):
            pass
    assert MEMORY.idle_bytes <= idle + 8 * (compiled.memory_report(x.shape).thread_arena * 2 + x.nbytes)
    if sys.platform == "linux":
        assert resident() - before < 16 << 20


def test_blocks_beyond_the_bound_are_refused() -> None:
    with pytest.raises(CompileError, match="bytes of memory in each thread, but 67108864 is the most; use smaller"):
        model(1, rows=1, length=10_000_000)


def test_too_many_small_blocks_for_a_frame_are_refused(parse_tile: Callable[[str], ModuleOp]) -> None:
    blocks = "".join(f"%b{i} = tile.alloc %z : f32 -> !tile.ref<[4000], f32, scratch>\n" for i in range(66))
    zero = "%z = arith.constant 0.0 : f32\n"
    module = parse_tile(f"tile.kernel @many() grid() axes [] {{\n{zero}{blocks}tile.return\n}}")
    with pytest.raises(DiagnosticException) as error:
        ConvertTileToLoopsPass().apply(Context(), module)
    assert str(error.value) == (
        "tile.kernel @many: its blocks take 1056000 bytes of stack, but 1048576 is the most; use fewer blocks"
    )


def test_memory_that_the_system_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = model(2), data(4, rows=2)

    def refuse(nbytes: int) -> None:
        raise MemoryError

    monkeypatch.setattr(MEMORY, "take", refuse)
    with pytest.raises(MemoryError) as error:
        compiled.execute(x)
    nbytes = 2 * compiled.memory_report(x.shape).thread_arena
    assert str(error.value) == (
        f"model 'rows': the blocks of its kernels need {nbytes} bytes, and the system refuses them"
    )
