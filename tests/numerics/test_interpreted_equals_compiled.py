"""The oracle at work: log-probabilities interpreted and compiled have the same bits, whatever the vector width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from halfulp.compiler import CompileOptions, DeviceRef
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.pipeline import lower
from halfulp.runtime import CPU, InferenceSession
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

SLOTS = 8


def logits_of(vocab: int, special: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Five rows; with ``special`` there are ties, infinities, zeros of both signs and NaN."""
    logits = (np.random.default_rng(vocab).standard_normal((5, vocab)) * 5).astype(np.float32)
    if special:
        logits[:, ::7] = logits[:, :1]
        logits[0, 1::5], logits[0, 2::5] = 0.0, -0.0
        logits[1, 0], logits[2, -1], logits[3, vocab // 2] = np.inf, -np.inf, np.nan
    return logits


@pytest.mark.parametrize("vector_bits", [128, 256, None])
def test_log_probabilities(vector_bits: int | None) -> None:
    options = CompileOptions(vector_bits=vector_bits)
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)
    model = InferenceSession(devices=[CPU()]).load(graph, options)
    module = graph.module.clone()
    lower(module, "tile", options, host_target(options.vector_bits))
    entry = next(op.sym_name.data for op in module.ops if isinstance(op, FuncOp))
    for vocab, special in ((5, True), (1000, False), (1000, True), (20_000, True)):
        generator = np.random.default_rng(vocab)
        tokens, sampled = (generator.integers(0, vocab, n).astype(np.uint32) for n in (5, 2))
        rows, outputs = np.array([0, 3, 5], np.uint32), np.array([0, 3, 4], np.uint32)
        inputs = [logits_of(vocab, special), tokens, sampled, rows, rows, outputs, outputs]
        dims = {"bseq_or_b": 5, "vocab": vocab, "batch_seq": 5, "batch": 2, "batchp1": 3}

        def values(bound: Mapping[str, int]) -> Any:
            return np.zeros((bound["out_batch_seq"], SLOTS), np.float32)

        def indices(bound: Mapping[str, int]) -> Any:
            return np.zeros((bound["out_batch_seq2"], SLOTS), np.uint32)

        result = interpret(module, entry, [*inputs, values, indices], dims)
        assert result.failed is None
        for interpreted, compiled in zip(result.arrays[-2:], model.execute(*inputs), strict=True):
            assert interpreted is not None
            expected = compiled.to_numpy()
            number = interpreted == interpreted
            assert np.array_equal(number, expected == expected), "NaN in the same places"
            assert interpreted[number].tobytes() == expected[number].tobytes()
