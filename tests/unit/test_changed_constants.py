"""Constants are data beside the code: a graph with another one runs the code that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType
from halfulp.compiler.codegen import cpu
from halfulp.runtime import InferenceSession, Model

Array = np.ndarray[Any, np.dtype[Any]]
LAYERS = 6


def network(matrix: Array, factor: float, epsilon: float) -> Graph:
    """Layers of a dozen ops; the constants stand in the third only."""
    with Graph("network", input_types=[TensorType(DType.float32, ["rows", 16])]) as graph:
        value = graph.inputs[0]
        for layer in range(LAYERS):
            is_third = layer == 2
            weights = matrix if is_third else np.full((16, 16), 0.1, np.float32)
            value = ops.tanh(ops.matmul(value, weights)) * (factor if is_third else 0.5) + value
            gain = ops.constant(np.ones(16, np.float32))
            value = ops.rms_norm(value, gain, epsilon if is_third else 1e-5)
            value = ops.concat([value[:, 8:], ops.exp(value[:, :8])], axis=1)
        graph.output(value)
    return graph


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that LLVM compiles during the test, with a cache of its own."""
    texts: list[str] = []
    compile_to_object = cpu.compile_to_object

    def counted(text: str, target: cpu.CpuTarget, opt_level: int = 2) -> bytes:
        texts.append(text)
        return compile_to_object(text, target, opt_level)

    monkeypatch.setenv("HALFULP_CACHE", "1")
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cpu, "compile_to_object", counted)
    return texts


def test_a_changed_constant_compiles_no_kernel(compiled: list[str]) -> None:
    x = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)
    matrix = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)

    def run(*constants: Any) -> Array:
        model: Model = InferenceSession().load(network(*constants))
        result: Array = model.execute(x)[0].to_numpy()
        return result

    first = run(matrix, 0.75, 1e-5)
    count = len(compiled)
    assert count >= 1
    changed = matrix.copy()
    changed[3, 5] += 1
    others = [run(changed, 0.75, 1e-5), run(matrix, 0.625, 1e-5), run(matrix, 0.75, 1e-3)]
    assert len(compiled) == count
    for other in others:
        assert not np.array_equal(other, first)
    run(np.ones((16, 16), np.float32), 1.0, 0.0)  # a factor of 1 is a factor, too
    assert len(compiled) == count


def test_other_ops_do_compile(compiled: list[str]) -> None:
    counts = []
    for function in (ops.exp, ops.tanh):
        with Graph("one", input_types=[TensorType(DType.float32, [4])]) as graph:
            graph.output(function(graph.inputs[0]))
        InferenceSession().load(graph)
        counts.append(len(compiled))
    assert counts[1] == counts[0] + 1
