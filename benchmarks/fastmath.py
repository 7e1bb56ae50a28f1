"""How long `fastmath_matrix` takes: all modes of the log-probabilities of real logits, and of an MLP block.

    python benchmarks/fastmath.py

prints both tables and the seconds, compilation included; the caches are off.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

os.environ["HALFULP_CACHE"] = "0"

import numpy as np

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, TensorType, Weight
from halfulp.runtime.debug import FastmathMatrix, fastmath_matrix
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

DATA = Path(__file__).parents[1] / "examples" / "data" / "smollm2_logits.npz"
ROWS, WIDTH, HIDDEN = 64, 1024, 4096


def log_probabilities() -> FastmathMatrix:
    """The kernel on the logits of SmolLM2 that the examples use."""
    stored = np.load(DATA)
    offsets = stored["input_row_offsets"]
    inputs = [stored["logits"].astype(np.float32), stored["tokens"], stored["sampled_tokens"], *[offsets] * 4]
    return fastmath_matrix(log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3), inputs)


def mlp_block() -> FastmathMatrix:
    """Two matrix products with gelu between, and the residual sum."""
    up, down = Weight("up", DType.float32, [WIDTH, HIDDEN]), Weight("down", DType.float32, [HIDDEN, WIDTH])
    with Graph("mlp", input_types=[TensorType(DType.float32, [ROWS, WIDTH])], input_names=["x"]) as graph:
        (x,) = graph.inputs
        hidden = ops.gelu(ops.matmul(x, up))
        graph.output(ops.add(ops.matmul(hidden, down), x))
    return fastmath_matrix(graph)


def main() -> None:
    for run in (log_probabilities, mlp_block):
        start = time.perf_counter()
        print(run())
        print(f"\n{run.__name__}: {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
