"""The integers of a ragged batch: brings them to one type and checks them before native code sees them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halfulp.compiler.errors import GraphTypeError

from ..arrays import from_object, shape_text
from ..errors import ExecutionError

FUNCTION = "compute_log_probabilities_ragged()"
"""What messages start with."""

Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class RaggedBatch:
    """The checked integers of a batch of B sequences.

    Args:
        offsets: [B + 1], ascending from 0: sequence b owns ``tokens[offsets[b]:offsets[b + 1]]``.
        tokens: [T], the prompt tokens.
        sampled_tokens: [B], the token chosen after each sequence.
        top_n: [B], how many top tokens each sequence wants.
        echo: [B], whether it wants its prompt scored.
        counts: [B], the rows of log-probabilities that it gets.
    """

    offsets: npt.NDArray[np.int64]
    tokens: Integers
    sampled_tokens: Integers
    top_n: list[int]
    echo: list[bool]
    counts: list[int]

    @property
    def size(self) -> int:
        return len(self.top_n)

    @staticmethod
    def of(
        input_row_offsets: object,
        tokens: object,
        sampled_tokens: object,
        batch_top_n: Sequence[int],
        batch_echo: Sequence[bool],
    ) -> RaggedBatch:
        """Checks all that can be checked without logits.

        Raises:
            GraphTypeError: an argument has the wrong type or dtype.
            ExecutionError: a wrong rank, length or offset, or a negative number.
        """
        prompt, sampled = _integers("tokens", tokens), _integers("sampled_tokens", sampled_tokens)
        offsets = _offsets(_integers("input_row_offsets", input_row_offsets), len(prompt))
        top_n, echo = _counts(batch_top_n), _flags(batch_echo)
        batch = len(offsets) - 1
        for name, length in (("sampled_tokens", len(sampled)), ("batch_top_n", len(top_n)), ("batch_echo", len(echo))):
            if length != batch:
                raise ExecutionError(
                    f"{FUNCTION}: {name} must have one entry for each of the {batch} sequences of "
                    f"input_row_offsets, got {length}"
                )
        lengths = np.diff(offsets).tolist()
        counts = [length if whole else 1 for length, whole in zip(lengths, echo, strict=True)]
        return RaggedBatch(offsets, prompt, sampled, top_n, echo, counts)

    def check_logits(self, shape: tuple[int, ...], next_shape: tuple[int, ...], *, full: bool) -> None:
        """The logits fit each other and the batch, and every token lies in their vocabulary."""
        rows, vocab = next_shape
        if rows != self.size:
            raise ExecutionError(
                f"{FUNCTION}: next_token_logits must have one row for each of the {self.size} sequences, "
                f"got shape {shape_text(next_shape)}"
            )
        if full:
            self._check_full_logits(shape, next_shape)
        elif any(self.echo):
            raise ExecutionError(
                f"{FUNCTION}: logits may be None only if no sequence wants echo, but "
                f"batch_echo[{self.echo.index(True)}] is True; pass the logits of all tokens"
            )
        _check_below("tokens", self.tokens, vocab)
        _check_below("sampled_tokens", self.sampled_tokens, vocab)

    def _check_full_logits(self, shape: tuple[int, ...], next_shape: tuple[int, ...]) -> None:
        if shape[1] != next_shape[1]:
            raise ExecutionError(
                f"{FUNCTION}: logits and next_token_logits must have the same vocabulary, "
                f"got shapes {shape_text(shape)} and {shape_text(next_shape)}"
            )
        if shape[0] != len(self.tokens):
            raise ExecutionError(
                f"{FUNCTION}: logits must have one row for each of the {len(self.tokens)} tokens, "
                f"got shape {shape_text(shape)}"
            )
        for sequence, length in enumerate(np.diff(self.offsets).tolist()):
            if not length and not self.echo[sequence]:
                raise ExecutionError(
                    f"{FUNCTION}: sequence {sequence} of input_row_offsets is empty, so logits has no row for its "
                    "sampled token; leave logits out or leave the sequence out"
                )

    def check_top_n(self, levels: int) -> None:
        """Each sequence with rows asks for at most what the graph keeps."""
        kept = 2**levels - 1
        for sequence, (top_n, count) in enumerate(zip(self.top_n, self.counts, strict=True)):
            if not count or 0 <= top_n <= kept:
                continue
            if top_n < 0:
                raise ExecutionError(f"{FUNCTION}: top_n must not be negative, got batch_top_n[{sequence}] = {top_n}")
            raise ExecutionError(
                f"{FUNCTION}: top_n={top_n} (batch_top_n[{sequence}]) exceeds the {kept} that this graph keeps; "
                f"build it with log_probabilities_ragged_graph(device, levels={top_n.bit_length()})"
            )


def _integers(name: str, value: object) -> Integers:
    subject = f"{FUNCTION}: {name}"
    array = from_object(value, subject)
    if array.dtype.kind not in "iu":
        raise GraphTypeError(f"{subject} must have an integer dtype, got {array.dtype}")
    if array.ndim != 1:
        raise ExecutionError(f"{subject} must have rank 1, got rank {array.ndim}, shape {shape_text(array.shape)}")
    if (negative := array < 0).any():
        place = int(negative.argmax())
        raise ExecutionError(f"{subject} must not be negative, got {name}[{place}] = {array[place]}")
    return array


def _check_below(name: str, array: Integers, vocab: int) -> None:
    if (wrong := array >= vocab).any():
        place = int(wrong.argmax())
        raise ExecutionError(
            f"{FUNCTION}: {name} must be smaller than the vocabulary of {vocab}, got {name}[{place}] = {array[place]}"
        )


def _offsets(offsets: Integers, token_count: int) -> npt.NDArray[np.int64]:
    subject = f"{FUNCTION}: input_row_offsets"
    if not len(offsets):
        raise ExecutionError(f"{subject} must have at least one element, a 0, got none")
    if offsets[0] != 0:
        raise ExecutionError(f"{subject} must start at 0, not at {offsets[0]}")
    if (descends := offsets[1:] < offsets[:-1]).any():
        place = int(descends.argmax())
        raise ExecutionError(
            f"{subject} must not descend, got {offsets[place]} and then {offsets[place + 1]} at element {place + 1}"
        )
    if offsets[-1] > token_count:
        raise ExecutionError(f"{subject} ends at {offsets[-1]}, but there are only {token_count} tokens")
    return offsets.astype(np.int64)


def _counts(batch_top_n: Sequence[int]) -> list[int]:
    try:
        return [operator.index(n) for n in batch_top_n]
    except TypeError:
        raise GraphTypeError(f"{FUNCTION}: batch_top_n must be a sequence of ints, got {batch_top_n!r}") from None


def _flags(batch_echo: Sequence[bool]) -> list[bool]:
    if not np.iterable(batch_echo) or not all(isinstance(flag, bool | np.bool_) for flag in batch_echo):
        raise GraphTypeError(f"{FUNCTION}: batch_echo must be a sequence of bools, got {batch_echo!r}")
    return [bool(flag) for flag in batch_echo]
