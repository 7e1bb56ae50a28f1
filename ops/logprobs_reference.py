"""Log-probabilities in float64, by numpy: what the kernel's results are compared with. Slow, and simple on purpose."""

from __future__ import annotations

import math

import numpy as np

from .contract import Array


def log_probabilities_reference(
    logits: Array,
    tokens: Array,
    sampled_tokens: Array,
    logit_row_offsets: Array,
    token_row_offsets: Array,
    lp_output_offsets: Array,
    host_lp_output_offsets: Array,
    *,
    levels: int,
) -> tuple[Array, Array]:
    """The outputs of ``compute_log_probabilities_ragged`` (`halfulp.ops.logprobs` says what they are).

    Operands are as the kernel takes them, but ``logits`` may be float64, and must be valid. The log-probabilities
    are float64.
    """
    slots, vocab = 2**levels, logits.shape[1]
    rows = int(lp_output_offsets[-1])
    values, found = np.full((rows, slots), -math.inf), np.full((rows, slots), vocab, np.uint32)
    for sequence, sampled in enumerate(sampled_tokens):
        first, last = int(lp_output_offsets[sequence]), int(lp_output_offsets[sequence + 1])
        logit_end, token_end = int(logit_row_offsets[sequence + 1]), int(token_row_offsets[sequence + 1])
        for row in range(first, last):
            behind = last - row  # rows from here to the end of the sequence, this one included
            scored = int(sampled) if behind == 1 else int(tokens[token_end - behind + 1])
            exact = _log_softmax(logits[logit_end - behind])
            best = _best_tokens(logits[logit_end - behind], slots - 1)
            found[row, : len(best)], found[row, -1] = best, scored
            values[row, : len(best)], values[row, -1] = exact[best], exact[scored]
    return values, found


def _log_softmax(row: Array) -> Array:
    with np.errstate(all="ignore"):
        distance = row.astype(np.float64)
        distance -= distance.max(initial=-math.inf)
        return np.asarray(distance - np.log(np.exp(distance).sum()))


def _best_tokens(row: Array, count: int) -> Array:
    """The most probable tokens, equal ones in ascending order; -inf and NaN are none."""
    possible = np.flatnonzero(row > -math.inf)
    return possible[np.argsort(-row[possible], kind="stable")[:count]]
