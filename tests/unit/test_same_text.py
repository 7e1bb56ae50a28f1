"""Compiling the same graph gives the same text in every process: cache keys and golden texts rest on it."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.compiler.pipeline import emit

x = TensorType(DType.float32, ["n", "m", "k"])
with Graph("g", input_types=[x]) as graph:
    n, m, k = graph.inputs[0].shape
    padded = ops.pad(graph.inputs[0], [0, 3, 0, 4, 0, 5])
    graph.output(ops.exp(padded[n:, m:, k:]))
print(emit(graph.module, "tile", CompileOptions()))
"""


def text_with_hashes_of(seed: int) -> str:
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_text_does_not_depend_on_the_hashes_of_names() -> None:
    texts = {text_with_hashes_of(seed) for seed in (2, 3, 4)}  # three orders of {n, m, k}
    assert len(texts) == 1
    assert "tile.kernel @exp" in texts.pop()
