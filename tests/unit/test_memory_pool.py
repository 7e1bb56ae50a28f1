"""Freed memory is used again, within a limit, and never while anything can still see it."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType
from halfulp.runtime import InferenceSession, Model
from halfulp.runtime.pool import MEMORY, SMALLEST_LENT, MemoryPool, size_class

F32 = np.dtype(np.float32)
SIZE = 400_000


def lend(pool: MemoryPool) -> tuple[np.ndarray[Any, np.dtype[Any]], int]:
    return pool.array((1000, 100), F32, SIZE)


@given(nbytes=st.integers(0, 1 << 62))
def test_a_size_class_wastes_an_eighth_at_most(nbytes: int) -> None:
    capacity = size_class(nbytes)
    assert nbytes <= capacity <= max(nbytes + nbytes // 8, nbytes + 63)
    assert capacity % 64 == 0
    assert size_class(capacity) == capacity


def test_a_freed_array_is_the_next_one() -> None:
    pool = MemoryPool()
    array, address = lend(pool)
    array[...] = 1
    assert (address % 64, pool.idle_bytes) == (0, 0)
    del array
    assert pool.idle_bytes == size_class(SIZE)
    _, again = lend(pool)
    assert again == address


@pytest.mark.parametrize(
    "hold", [lambda a: a[3:7], lambda a: a.reshape(-1)[::2].view("u4"), np.from_dlpack, memoryview]
)
def test_every_kind_of_view_keeps_the_memory(hold: Any) -> None:
    pool = MemoryPool()
    array, address = lend(pool)
    view = hold(array)
    del array
    gc.collect()
    assert pool.idle_bytes == 0
    other, other_address = lend(pool)
    assert other_address != address
    del other, view
    assert pool.idle_bytes == 2 * size_class(SIZE)


def test_beyond_the_limit_what_was_freed_first_goes() -> None:
    pool = MemoryPool(limit=2 * size_class(SIZE))
    arrays = [lend(pool) for _ in range(3)]
    addresses = [address for _, address in arrays]
    while arrays:
        arrays.pop(0)
    assert pool.idle_bytes == 2 * size_class(SIZE)
    assert {lend(pool)[1], pool.take(SIZE).address} <= set(addresses[1:])
    pool.trim(0)
    assert pool.idle_bytes == 0


def test_an_array_that_dies_while_the_pool_is_busy_does_not_wait() -> None:
    pool = MemoryPool()
    array, _ = lend(pool)
    with pool._lock:
        del array  # as the garbage collector may do, on a thread that is inside the pool
    assert pool.idle_bytes == 0
    assert not pool._loans


def model() -> Model:
    return InferenceSession().load(Graph("twice", lambda x: x + x, [TensorType(DType.float32, ["n"])]))


def test_results_use_freed_memory_but_never_that_of_a_living_one() -> None:
    twice, x = model(), np.arange(50_000, dtype=np.float32)
    assert x.nbytes >= SMALLEST_LENT
    kept = [twice(x)[0] for _ in range(5)]
    views = [buffer.to_numpy()[100:200] for buffer in kept]
    assert len({buffer.address for buffer in kept}) == 5
    addresses = {buffer.address for buffer in kept}
    del kept
    more = [twice(x + 1)[0] for _ in range(5)]
    assert all((view == 2 * x[100:200]).all() for view in views)
    assert not addresses & {buffer.address for buffer in more}
    del views
    assert addresses & {twice(x)[0].address for _ in range(2)}


def resident_kilobytes() -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_eight_threads_on_one_model_keep_memory_flat() -> None:
    def forward(x: Any) -> Any:
        return ops.softmax(ops.sum(x, axis=0) + x)

    shared = InferenceSession().load(Graph("shared", forward, [TensorType(DType.float32, ["n", 256])]))
    inputs = [np.random.default_rng(n).standard_normal((50 + n, 256), np.float32) for n in range(8)]
    expected = [shared(x)[0].to_numpy().tobytes() for x in inputs]
    failures: list[int] = []

    def work(number: int, times: int) -> None:
        for _ in range(times):
            if shared(inputs[number])[0].to_numpy().tobytes() != expected[number]:
                failures.append(number)

    def all_at_once(times: int) -> None:
        threads = [threading.Thread(target=work, args=(number, times)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_at_once(150)
    before = resident_kilobytes()
    all_at_once(1100)
    assert not failures
    assert resident_kilobytes() - before < 8 << 10
    assert MEMORY.idle_bytes < 64 << 20
