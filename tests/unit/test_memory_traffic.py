"""What fused kernels read and write, counted from tile IR: each element of the input once, each of the output once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from differential import Array
from graphs_both_ways import interpreted_results

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType, TensorValue
from halfulp.compiler.interpreter.memory import Reference
from halfulp.compiler.passes.graph_to_tile.group_kernel import WHOLE_ROW_BYTES
from halfulp.runtime import InferenceSession

ROWS, COLUMNS = 3, 5000


class Traffic:
    """Counts the bytes that programs read and write (an observer of the interpreter)."""

    def __init__(self) -> None:
        self.read = self.written = 0

    def launch(self, kernel: str, buffers: Sequence[Any]) -> None:
        pass

    def program(self, kernel: str, program: tuple[int, ...]) -> None:
        pass

    def access(self, reference: Reference, mask: Array | None, *, writes: bool) -> None:
        part, _ = reference.valid()
        if writes:
            self.written += part.nbytes
        else:
            self.read += part.nbytes


def traffic(body: Callable[..., TensorValue], *shapes: Sequence[int]) -> tuple[int, int]:
    """Bytes read and written by the graph of ``body`` on f32 inputs."""
    graph = Graph("traffic", body, [TensorType(DType.float32, shape) for shape in shapes])
    seen = Traffic()
    interpreted_results(graph, InferenceSession().load(graph), [np.ones(shape, np.float32) for shape in shapes], [seen])
    return seen.read, seen.written


SIZE = 4 * ROWS * COLUMNS
ROW = 4 * COLUMNS


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        (lambda x: ops.exp(x * 2.0 + 1.0), 0),
        (ops.softmax, 0),
        (ops.logsoftmax, 0),
        (lambda x, gamma, beta: ops.layer_norm(x, gamma, beta, 1e-5), 2),
        (lambda x, weight: ops.rms_norm(x, weight, 1e-6), 1),
        (lambda x: ops.softmax(ops.relu(x)) * 2.0, 0),
    ],
    ids=["chain", "softmax", "logsoftmax", "layer_norm", "rms_norm", "prologue and epilogue"],
)
def test_input_is_read_once(body: Callable[..., TensorValue], parameters: int) -> None:
    read, written = traffic(body, (ROWS, COLUMNS), *[(COLUMNS,)] * parameters)
    # constants of the graph are some bytes; a parameter is read for each row, from a cache
    assert SIZE + parameters * ROWS * ROW <= read <= SIZE + parameters * ROWS * ROW + 64 * ROWS
    assert written == SIZE


def test_long_rows_are_read_once_for_each_depth_of_reductions() -> None:
    columns = WHOLE_ROW_BYTES // 4 + 1
    read, written = traffic(ops.softmax, (2, columns))
    assert (read, written) == (3 * 8 * columns, 8 * columns)


def test_a_reduction_writes_its_rows_only() -> None:
    assert traffic(lambda x: ops.sum(ops.exp(x)), (ROWS, COLUMNS)) == (SIZE, 4 * ROWS)


def test_the_maps_behind_a_product_cost_no_memory() -> None:
    shapes = ((16, 64), (64, 32), (32,))
    plain = traffic(lambda x, w, b: x @ w, *shapes)
    finished = traffic(lambda x, w, b: ops.gelu(x @ w + b, "tanh"), *shapes)
    assert finished == (plain[0] + 4 * 32, plain[1])
    assert plain[1] == 4 * 16 * 32


def test_apart_they_cost_a_round_trip_more() -> None:
    """What the counts above are worth: without fusion they are larger."""
    together = traffic(lambda x: ops.exp(x * 2.0), (ROWS, COLUMNS))
    apart = traffic(lambda x: ops.exp(ops.reshape(x * 2.0, [COLUMNS, ROWS])), (ROWS, COLUMNS))
    assert apart[0] - together[0] == apart[1] - together[1] == SIZE
