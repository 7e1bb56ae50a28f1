"""Fastmath flags on the op: NaN and infinity keep their meaning, and the accuracy that is owed stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from logprobs_reference import assert_kernel_row

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, Graph
from halfulp.compiler.pipeline import emit
from halfulp.runtime import CPU, InferenceSession
from halfulp.runtime.pipelines import log_probabilities


def graph_with(flags: str) -> Graph:
    """The graph of log-probabilities, its op under these flags."""
    device = DeviceRef.CPU()
    with Graph("flagged", input_types=log_probabilities._input_types(device)) as graph, graph.fastmath(flags):
        outputs = log_probabilities._output_types(device, 3)
        graph.output(*ops.custom("compute_log_probabilities_ragged", device, graph.inputs, outputs, {"levels": 3}))
    return graph


@pytest.mark.parametrize("flags", ["fast", "nnan,ninf", "reassoc,nsz", "arcp,contract,afn"])
def test_rows_of_special_values_under_flags(flags: str) -> None:
    rng = np.random.default_rng(3)
    logits = (rng.normal(size=(7, 20000)) * 4).astype(np.float32)
    logits[1, 5], logits[2, 19999], logits[3], logits[4, :17000], logits[6] = (
        math.nan,
        math.inf,
        -math.inf,
        -math.inf,
        0,
    )
    tokens, offsets = np.arange(7, dtype=np.uint32), np.arange(8, dtype=np.uint32)
    model = InferenceSession(devices=[CPU()]).load(graph_with(flags))
    values, slots = model.execute(logits, tokens, tokens, offsets, offsets, offsets, offsets)
    for row in range(7):
        assert_kernel_row(logits[row], row, values.to_numpy()[row], slots.to_numpy()[row], f"row {row}, {flags}")


def test_flags_reach_the_llvm_text_but_for_those_that_forbid_nan_and_infinity() -> None:
    text = emit(graph_with("nsz,arcp,nnan,ninf").module.clone(), "ll", CompileOptions())
    assert "fsub nsz arcp <" in text
    assert "nnan" not in text
    assert "ninf" not in text
