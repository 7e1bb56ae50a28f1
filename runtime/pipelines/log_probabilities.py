"""Log-probabilities of the tokens of a ragged batch: the graph, and the host side around it.

A batch of B sequences of different lengths lies in flat arrays; sequence b owns the places
``input_row_offsets[b]`` to ``input_row_offsets[b + 1]``. What the kernel computes is described in
`halfulp.ops.logprobs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, TensorType
from halfulp.compiler.errors import GraphTypeError

from ..arrays import element_type, from_object, shape_text
from ..buffer import Buffer
from ..device import CPU, Device
from ..errors import ExecutionError
from ..model import Model
from .context import LogProbabilities
from .ragged_batch import FUNCTION, Integers, RaggedBatch

__all__ = ["LogProbabilities", "compute_log_probabilities_ragged", "log_probabilities_ragged_graph"]

_LOGPROBS_HEAP_LEVELS = 3
_MAX_TOP_LOGPROBS = 2**_LOGPROBS_HEAP_LEVELS - 1
"""The largest ``logprobs`` a request may ask for; routes reject more before it reaches the model."""

_KERNEL = "compute_log_probabilities_ragged"
_GRAPH = "log_probabilities_ragged"


def log_probabilities_ragged_graph(device: DeviceRef, *, levels: int) -> Graph:
    """The graph that `compute_log_probabilities_ragged` runs.

    Inputs: logits f32 [bseq_or_b, vocab]; then u32: tokens [batch_seq], sampled_tokens [batch], and logit row, token
    row and output offsets, [batchp1] each; last the output offsets again, on the host, since they decide the number
    of rows.
    Outputs: log-probabilities f32 [out_batch_seq, 2**levels] and their tokens u32 [out_batch_seq2, 2**levels].

    Args:
        device: where the logits are.
        levels: log2(k + 1) for the largest number k of top tokens to ask for: 3 gives 7.

    Raises:
        GraphError: ``levels`` is out of range.
        GraphTypeError: ``levels`` is not an int or ``device`` not a `DeviceRef`.
    """
    inputs = _input_types(device)
    with Graph(_GRAPH, input_types=inputs) as graph:
        outputs = ops.custom(_KERNEL, device, graph.inputs, _output_types(device, levels), {"levels": levels})
        graph.output(*outputs)
    return graph


def _input_types(device: DeviceRef) -> list[TensorType]:
    host = DeviceRef.CPU()
    return [
        TensorType(DType.float32, ["bseq_or_b", "vocab"], device),
        TensorType(DType.uint32, ["batch_seq"], device),
        TensorType(DType.uint32, ["batch"], device),
        *[TensorType(DType.uint32, ["batchp1"], place) for place in (device, device, device, host)],
    ]


def _output_types(device: DeviceRef, levels: int) -> list[TensorType]:
    slots = 2**levels if type(levels) is int and 0 < levels < 64 else 1  # a wrong one is reported by the kernel
    return [
        TensorType(DType.float32, ["out_batch_seq", slots], device),
        TensorType(DType.uint32, ["out_batch_seq2", slots], device),
    ]


def compute_log_probabilities_ragged(
    device: Device,
    model: Model,
    *,
    input_row_offsets: Integers,
    logits: Buffer | npt.NDArray[np.float32] | None,
    next_token_logits: Buffer | npt.NDArray[np.float32],
    tokens: Integers,
    sampled_tokens: Integers,
    batch_top_n: Sequence[int],
    batch_echo: Sequence[bool],
) -> list[LogProbabilities | None]:
    """Log-probabilities of each sequence's sampled token and, with echo, of its prompt tokens.

    With echo the entries are those of the second prompt token, the third, ..., and last of the sampled token; without
    it only the last. Integers may have any integer dtype.

    Args:
        device: where the model runs and the logits are.
        model: `log_probabilities_ragged_graph`, loaded.
        input_row_offsets: [B + 1], ascending from 0.
        logits: f32 [T, V], the logits after each prompt token; None if no sequence wants echo.
        next_token_logits: f32 [B, V], the logits after each sequence; read only where ``logits`` is None.
        tokens: [T], the prompt tokens.
        sampled_tokens: [B], the token chosen after each sequence.
        batch_top_n: [B], how many of the most probable tokens to give at each place; 0 gives None for the sequence.
        batch_echo: [B], whether to score the prompt, too.

    Returns:
        For each sequence None or its `LogProbabilities`. Equal logits go by ascending token.

    Raises:
        GraphTypeError: an argument has a wrong type, dtype or device.
        ExecutionError (a ValueError): a rank, length or value is wrong; the message names the argument.
    """
    levels = _levels(model)
    if not isinstance(device, Device):
        raise GraphTypeError(f"{FUNCTION}: device must be a device such as CPU(), not {device!r}")
    batch = RaggedBatch.of(input_row_offsets, tokens, sampled_tokens, batch_top_n, batch_echo)
    next_buffer = _logits("next_token_logits", next_token_logits, device)
    buffer = next_buffer if logits is None else _logits("logits", logits, device)
    batch.check_logits(buffer.shape, next_buffer.shape, full=logits is not None)
    batch.check_top_n(levels)
    token_offsets = batch.offsets.astype(np.uint32)
    logit_offsets = token_offsets if logits is not None else np.arange(batch.size + 1, dtype=np.uint32)
    output_offsets = np.concatenate([[0], np.cumsum(batch.counts)]).astype(np.uint32)
    on_device = (batch.tokens, batch.sampled_tokens, logit_offsets, token_offsets, output_offsets)
    arguments = [Buffer.from_numpy(array.astype(np.uint32)).to(device) for array in on_device]
    values, slots = model.execute(buffer, *arguments, output_offsets)
    rows = [output.to(CPU()).to_numpy().tolist() for output in (values, slots)]
    return _results(batch, output_offsets.tolist(), rows[0], rows[1], vocab=buffer.shape[1])


def _levels(model: Model) -> int:
    """The ``levels`` of the graph that was loaded; refuses any other graph."""
    if not isinstance(model, Model):
        raise GraphTypeError(f"{FUNCTION}: model must be a loaded Model, not {type(model).__name__}")
    outputs = model.output_metadata
    slots = outputs[0].shape[-1] if outputs and outputs[0].shape else None
    levels = slots.bit_length() - 1 if slots else 0
    device = DeviceRef.CPU()
    expected = [_signature(t.dtype, t.shape) for t in (*_input_types(device), *_output_types(device, levels))]
    actual = [_signature(m.dtype, m.dims) for m in (*model.input_metadata, *outputs)]
    if model.name != _GRAPH or actual != expected:
        raise ExecutionError(
            f"{FUNCTION}: model must be made from log_probabilities_ragged_graph(), not from graph '{model.name}'; "
            "load it with session.load(log_probabilities_ragged_graph(device, levels=...))"
        )
    return levels


def _signature(dtype: DType, dims: Sequence[Any]) -> tuple[DType, tuple[str, ...]]:
    return dtype, tuple(str(dim) for dim in dims)


def _logits(name: str, value: object, device: Device) -> Buffer:
    """The logits as a buffer on ``device``; arrays of the host are wrapped, not converted."""
    subject = f"{FUNCTION}: {name}"
    if not isinstance(value, Buffer):
        array = from_object(value, subject)
        _check_logits_type(subject, element_type(array, subject), array.shape)
        return Buffer.from_numpy(array).to(device)
    if value.device != device:
        raise GraphTypeError(f"{subject} must be on {device}, got a buffer on {value.device}; move it with .to(device)")
    _check_logits_type(subject, value.dtype, value.shape)
    return value


def _check_logits_type(subject: str, dtype: DType, shape: tuple[int, ...]) -> None:
    if dtype is not DType.float32:
        raise GraphTypeError(f"{subject} must be float32, got {dtype}; convert it with .astype(np.float32)")
    if len(shape) != 2:
        raise ExecutionError(
            f"{subject} must have rank 2, (rows, vocabulary), got rank {len(shape)}, shape {shape_text(shape)}"
        )


def _results(
    batch: RaggedBatch, bounds: list[int], values: list[list[float]], tokens: list[list[int]], *, vocab: int
) -> list[LogProbabilities | None]:
    """Cuts the kernel's rows into sequences: those of sequence b start at ``bounds[b]``."""
    results: list[LogProbabilities | None] = []
    for sequence, top_n in enumerate(batch.top_n):
        if top_n == 0:
            results.append(None)
            continue
        rows = range(bounds[sequence], bounds[sequence + 1])
        results.append(
            LogProbabilities(
                [values[row][-1] for row in rows],
                [_top(values[row], tokens[row], top_n, vocab) for row in rows],
                [tokens[row][-1] for row in rows],
            )
        )
    return results


def _top(values: list[float], tokens: list[int], top_n: int, vocab: int) -> dict[int, float]:
    """The first ``top_n`` of a row's sorted slots (unused ones hold ``vocab``), and the scored token of the last."""
    top = {token: value for token, value in zip(tokens[:top_n], values[:top_n], strict=True) if token < vocab}
    top[tokens[-1]] = values[-1]
    return top
