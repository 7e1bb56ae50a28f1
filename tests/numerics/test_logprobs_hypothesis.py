"""Ragged log-probabilities of random batches against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from logprobs_adapter import api, execute
from logprobs_reference import Case, assert_kernel_row, assert_result, kernel_arguments, scored_places

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1e-45)


@st.composite
def logits(draw: st.DrawFn, rows: int, vocab: int) -> Any:
    """Normal numbers of some scale and offset, perhaps rounded so that many are equal, some replaced."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale, offset = draw(st.sampled_from([0.0, 0.1, 1.0, 8.0, 100.0])), draw(st.sampled_from([0.0, -30.0, 1000.0]))
    values = (rng.normal(size=(rows, vocab)) * scale + offset).astype(np.float32)
    if draw(st.booleans()):
        values = np.round(values)
    if values.size:
        for special in draw(st.lists(st.sampled_from(SPECIAL), max_size=3)):
            values.flat[rng.integers(values.size)] = special
    return values


@st.composite
def batches(draw: st.DrawFn, vocabularies: st.SearchStrategy[int]) -> dict[str, Any]:
    """Arguments of the host function; sequences may be empty where that has a meaning."""
    vocab, full = draw(vocabularies), draw(st.booleans())
    echo = draw(st.lists(st.booleans() if full else st.just(False), max_size=4))
    lengths = [draw(st.integers(1 if full and not flag else 0, 5)) for flag in echo]
    token = st.integers(0, vocab - 1)
    dtype = draw(st.sampled_from([np.uint32, np.int32, np.int64, np.uint64]))
    levels = draw(st.integers(0, 6))
    prompt = draw(st.lists(token, min_size=sum(lengths), max_size=sum(lengths)))
    return {
        "levels": levels,
        "input_row_offsets": np.cumsum([0, *lengths]).astype(dtype),
        "logits": draw(logits(sum(lengths), vocab)) if full else None,
        "next_token_logits": draw(logits(len(echo), vocab)),
        "tokens": np.array(prompt, dtype),
        "sampled_tokens": np.array([draw(token) for _ in echo], dtype),
        "batch_top_n": [draw(st.integers(0, 2**levels - 1)) for _ in echo],
        "batch_echo": echo,
    }


def check(arguments: dict[str, Any]) -> None:
    case = Case("random", "normal", arguments, None, 0.0)
    places = scored_places(arguments)
    values, tokens = execute(case.levels, kernel_arguments(arguments))
    assert values.shape == tokens.shape == (sum(map(len, places)), 2**case.levels)
    for index, (row, token) in enumerate(place for sequence in places for place in sequence):
        assert_kernel_row(case.scored_logits[row], token, values[index], tokens[index], f"row {index}")
    for sequence, result in enumerate(api(**arguments)):
        if arguments["batch_top_n"][sequence] == 0:
            assert result is None
        else:
            assert_result(case, sequence, result, places[sequence])


@settings(max_examples=150, deadline=None)
@given(batches(st.integers(1, 5000)))
def test_random_batches(arguments: dict[str, Any]) -> None:
    check(arguments)


@settings(max_examples=10, deadline=None)
@given(batches(st.sampled_from([16383, 16384, 16385, 32000, 49152, 50257])))
def test_vocabularies_of_several_chunks(arguments: dict[str, Any]) -> None:
    check(arguments)
