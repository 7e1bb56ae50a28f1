"""Intermediate results share memory when they are not alive at the same time, and only then."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfulp import ops
from halfulp.compiler import DType, Graph, GraphTypeError, TensorType
from halfulp.compiler.artifact import CompiledGraph
from halfulp.compiler.pipeline import compile_graph
from halfulp.runtime import InferenceSession
from halfulp.runtime.binding import ShapePlan
from halfulp.runtime.memory_report import memory_report
from halfulp.runtime.placing import Placing, PlacingPlan

F32 = DType.float32
LIFETIMES = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))
RESULTS = st.lists(st.tuples(LIFETIMES, st.integers(0, 50).map(lambda n: 64 * n)), max_size=40)


def random_graph(seed: int, count: int) -> Graph:
    """A graph of ``count`` ops, each on one of the last values and one of all; many do not fuse."""
    chosen = random.Random(seed)

    def forward(x: Any, y: Any) -> list[Any]:
        values = [x, y]
        for _ in range(count):
            a, b = chosen.choice(values[-6:]), chosen.choice(values)
            kind = chosen.randrange(4)
            if kind == 0:
                values.append(ops.softmax(a))
            elif kind == 1:
                values.append(a + b)
            elif kind == 2:
                values.append(ops.transpose(a, 0, 1) * b)
            else:
                values.append(ops.sum(a, axis=0) * 0.1 + b)
        return values[-2:]

    square = TensorType(F32, ["n", "n"])
    return Graph(f"random_{seed}", forward, [square, square])


def without_object(graph: Graph) -> CompiledGraph:
    """Compiled but for LLVM's part."""
    return compile_graph(graph, make_object=lambda text, target, level: b"")


@given(results=RESULTS)
def test_results_alive_together_never_overlap(results: list[tuple[tuple[int, int], int]]) -> None:
    lifetimes, sizes = [life for life, _ in results], [size for _, size in results]
    plan = PlacingPlan(lifetimes)
    placing = plan.place(sizes)
    for step in range(40):
        alive = sorted(
            (offset, offset + size)
            for (first, last), offset, size in zip(lifetimes, placing.offsets, sizes, strict=True)
            if first <= step <= last and size
        )
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(alive))
        assert sum(end - start for start, end in alive) <= plan.alive_at_once(sizes) <= placing.nbytes
    ends = [offset + size for offset, size in zip(placing.offsets, sizes, strict=True)]
    assert placing.nbytes == max(ends, default=0)
    assert all(offset % 64 == 0 for offset in placing.offsets)
    assert PlacingPlan(lifetimes).place(sizes) == placing


def test_a_result_goes_into_the_tightest_gap() -> None:
    # of what lies one behind the other, the first and the third are gone in step 2 and leave 256 and 128 bytes
    lifetimes = [(0, 1), (0, 9), (0, 1), (0, 9), (2, 3)]
    placing = PlacingPlan(lifetimes).place([256, 192, 128, 64, 64])
    assert placing == Placing((0, 256, 448, 576, 448), 640)


@pytest.mark.parametrize("seed", range(20))
def test_the_peak_of_random_graphs_is_near_what_is_alive(seed: int) -> None:
    compiled = without_object(random_graph(seed, 12))
    report = memory_report(compiled, ShapePlan(compiled), [(50, 50), (50, 50)], {})
    assert report.buffers
    assert report.lower_bound <= report.peak <= 1.2 * report.lower_bound


@pytest.mark.parametrize("seed", [2, 3])
def test_shared_memory_changes_no_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(seed, 12)
    x, y = np.random.default_rng(seed).standard_normal((2, 37, 37), np.float32)
    shared = InferenceSession().load(graph)
    report = shared.memory_report(x.shape, y.shape)
    assert report.peak < sum(use.nbytes for use in report.buffers)

    def apart(plan: PlacingPlan, sizes: list[int]) -> Placing:
        return Placing(tuple(sum(sizes[:i]) for i in range(len(sizes))), sum(sizes))

    monkeypatch.setattr(PlacingPlan, "place", apart)
    expected = [buffer.to_numpy().tobytes() for buffer in InferenceSession().load(graph)(x, y)]
    assert [buffer.to_numpy().tobytes() for buffer in shared(x, y)] == expected


def column_means() -> Graph:
    return Graph("means", lambda x: ops.softmax(ops.sum(x, axis=0)), [TensorType(F32, [4, 16])])


def test_the_report_says_what_is_where_and_when() -> None:
    model = InferenceSession().load(column_means())
    report = model.memory_report()
    assert report == model.memory_report((4, 16))
    assert (report.inputs, report.outputs, report.weights, report.unknown) == (256, 64, 0, ())
    assert report.buffers
    first, *rest = str(report).split("\n")
    assert first == f"intermediates: {report.peak} bytes, {report.lower_bound} of them alive at once"
    assert rest[0].startswith("inputs: 256, outputs: 64, weights: 0, constants: ")
    use = report.buffers[0]
    assert rest[1] == (
        f"  buffer_0: float32 [1, 16], 64 bytes at {use.offset} of arena 0, "
        f"steps {use.first} ({use.writer}) to {use.last} ({use.reader})"
    )


def test_the_report_needs_the_shape_of_each_input() -> None:
    model = InferenceSession().load(random_graph(0, 1))
    with pytest.raises(GraphTypeError) as error:
        model.memory_report((3, 3))
    assert str(error.value) == "model 'random_0' takes 2 inputs (x, y), got 1"
