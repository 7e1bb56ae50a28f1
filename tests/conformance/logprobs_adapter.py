"""The two entry points that conformance cases for ragged log-probabilities call: the host function and the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from halfulp.compiler import DeviceRef
from halfulp.runtime import CPU, InferenceSession, Model
from halfulp.runtime.pipelines import (
    LogProbabilities,
    compute_log_probabilities_ragged,
    log_probabilities_ragged_graph,
)


@cache
def loaded_model(levels: int) -> Model:
    """The graph for 2**levels - 1 top tokens, compiled once."""
    return InferenceSession(devices=[CPU()]).load(log_probabilities_ragged_graph(DeviceRef.CPU(), levels=levels))


def api(*, levels: int, **arguments: Any) -> list[LogProbabilities | None]:
    """`compute_log_probabilities_ragged` on the CPU; ``arguments`` are its keyword arguments."""
    return compute_log_probabilities_ragged(CPU(), loaded_model(levels), **arguments)


def kernel(
    logits: npt.NDArray[np.float32],
    tokens: npt.NDArray[np.uint32],
    sampled_tokens: npt.NDArray[np.uint32],
    logit_row_offsets: npt.NDArray[np.uint32],
    token_row_offsets: npt.NDArray[np.uint32],
    lp_output_offsets: npt.NDArray[np.uint32],
    levels: int,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]:
    """The graph itself: log-probabilities and tokens, [rows, 2**levels] each."""
    offsets = (logit_row_offsets, token_row_offsets, lp_output_offsets, lp_output_offsets)
    return execute(levels, (logits, tokens, sampled_tokens, *offsets))


def execute(
    levels: int, operands: Sequence[npt.NDArray[Any]]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]:
    """The graph on its seven operands."""
    values, slots = loaded_model(levels).execute(*operands)
    return values.to_numpy(), slots.to_numpy()
