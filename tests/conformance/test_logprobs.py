"""Ragged log-probabilities on the 53 recorded cases: every row against float64, within 2 ulp and 1e-6."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from logprobs_adapter import api, execute, kernel
from logprobs_reference import (
    Case,
    assert_close,
    assert_kernel_row,
    assert_result,
    kernel_arguments,
    recorded_cases,
    scored_places,
    tolerance,
)

NO_ROW_TO_READ = "zero_len_noecho_logits"
"""MAX reads the row of another sequence here; there is no right answer, so halfulp refuses."""

COMPUTED = [case for case in recorded_cases() if case.kind != "error" and case.name != NO_ROW_TO_READ]
FUNCTION = "compute_log_probabilities_ragged()"
REFUSED = {
    "err_top_n_8": f"{FUNCTION}: top_n=8 (batch_top_n[0]) exceeds the 7 that this graph keeps; "
    "build it with log_probabilities_ragged_graph(device, levels=4)",
    "err_levels_0_top_n_1": f"{FUNCTION}: top_n=1 (batch_top_n[0]) exceeds the 0 that this graph keeps; "
    "build it with log_probabilities_ragged_graph(device, levels=1)",
    "err_len_top_n": f"{FUNCTION}: batch_top_n must have one entry for each of the 1 sequences of "
    "input_row_offsets, got 2",
    "err_vocab_mismatch": f"{FUNCTION}: logits and next_token_logits must have the same vocabulary, "
    "got shapes [2, 6] and [1, 5]",
    "err_logits_rank": f"{FUNCTION}: logits must have rank 2, (rows, vocabulary), got rank 1, shape [6]",
    NO_ROW_TO_READ: f"{FUNCTION}: sequence 1 of input_row_offsets is empty, so logits has no row for its "
    "sampled token; leave logits out or leave the sequence out",
}


def case_named(name: str) -> Case:
    return next(case for case in recorded_cases() if case.name == name)


def test_all_cases_are_covered() -> None:
    assert len(recorded_cases()) == 53
    assert {case.name for case in COMPUTED} | REFUSED.keys() == {case.name for case in recorded_cases()}


@pytest.mark.parametrize("case", COMPUTED, ids=lambda case: case.name)
def test_host_function_matches_float64(case: Case) -> None:
    results = api(**case.arguments)
    places = scored_places(case.arguments)
    assert len(results) == len(places)
    for sequence, (result, top_n) in enumerate(zip(results, case.arguments["batch_top_n"], strict=True)):
        if top_n == 0:
            assert result is None
        else:
            assert_result(case, sequence, result, places[sequence])


@pytest.mark.parametrize("case", COMPUTED, ids=lambda case: case.name)
def test_kernel_matches_float64(case: Case) -> None:
    values, tokens = execute(case.levels, kernel_arguments(case.arguments))
    places = [place for sequence in scored_places(case.arguments) for place in sequence]
    assert values.shape == tokens.shape == (len(places), 2**case.levels)
    for index, (row, token) in enumerate(places):
        assert_kernel_row(case.scored_logits[row], token, values[index], tokens[index], f"{case.name}, row {index}")


@pytest.mark.parametrize("case", [c for c in COMPUTED if c.kind == "normal"], ids=lambda case: case.name)
def test_host_function_agrees_with_the_recorded_results(case: Case) -> None:
    """The same tokens are scored, with values as near as the recorded system's own error allows."""
    assert case.recorded is not None
    for sequence, (result, recorded) in enumerate(zip(api(**case.arguments), case.recorded, strict=True)):
        if recorded is None:
            assert result is None
            continue
        assert result is not None
        assert result.sampled_token_ids == recorded["tokens"]
        places = scored_places(case.arguments)[sequence]
        pairs = zip(places, result.token_log_probabilities, recorded["values"], strict=True)
        for (row, token), value, expected in pairs:
            allowed = case.recorded_error + tolerance(case.scored_logits[row])
            assert_close(value, expected, allowed, f"{case.name}, sequence {sequence}, token {token}")


@pytest.mark.parametrize("name", REFUSED)
def test_host_function_refuses(name: str) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        api(**case_named(name).arguments)
    assert str(raised.value) == REFUSED[name]


def test_kernel_refuses_a_row_that_is_not_there() -> None:
    case = case_named(NO_ROW_TO_READ)
    message = "sequence 1 asks for 1 rows of log-probabilities, but it has 0 rows of logits"
    with pytest.raises(ValueError, match=message):
        execute(case.levels, kernel_arguments(case.arguments))


def test_errors_do_not_depend_on_assert_statements() -> None:
    program = (
        "import test_logprobs as t\n"
        "for name in t.REFUSED:\n"
        "    try:\n"
        "        t.api(**t.case_named(name).arguments)\n"
        "    except (ValueError, TypeError) as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-O", "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert run.stdout.splitlines() == list(REFUSED.values())


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.nan, -math.inf], ids=str)
def test_a_row_without_an_answer_is_nan_and_touches_no_other(poison: float) -> None:
    """-inf in one place is a token that cannot be; NaN and +inf make their row NaN, and no other row changes a bit."""
    rng = np.random.default_rng(7)
    logits = rng.normal(size=(3, 40000)).astype(np.float32)
    tokens = np.array([1, 2, 3], np.uint32)
    sampled, offsets = np.array([4], np.uint32), np.array([0, 3], np.uint32)
    clean = kernel(logits, tokens, sampled, offsets, offsets, offsets, 3)
    for place in (0, 16384, 39999):
        poisoned = logits.copy()
        poisoned[1, place] = poison
        values, slots = kernel(poisoned, tokens, sampled, offsets, offsets, offsets, 3)
        assert_kernel_row(poisoned[1], 3, values[1], slots[1], f"{poison} at {place}")
        assert bool(np.isnan(values[1]).all()) == (poison != -math.inf)
        for row in (0, 2):
            assert values[row].tobytes() == clean[0][row].tobytes()
            assert slots[row].tobytes() == clean[1][row].tobytes()


@pytest.mark.parametrize("level", [0.0, -200.0, 200.0])
@pytest.mark.parametrize("chunk", [0, 1, 2])
def test_a_chunk_of_impossible_tokens_adds_nothing(level: float, chunk: int) -> None:
    """Where 16384 logits in a row are -inf, whatever the size of the others."""
    rng = np.random.default_rng(8)
    logits = (rng.normal(size=(1, 3 * 16384)) + level).astype(np.float32)
    logits[0, chunk * 16384 : (chunk + 1) * 16384] = -np.inf
    token, offsets = np.array([20000], np.uint32), np.array([0, 1], np.uint32)
    values, slots = kernel(logits, token, token, offsets, offsets, offsets, 3)
    assert_kernel_row(logits[0], 20000, values[0], slots[0], f"chunk {chunk}, level {level}")


@pytest.mark.parametrize("growth", [1e-3, 1.0, 100.0])
def test_rising_logits(growth: float) -> None:
    """Every chunk has a new maximum, far above or just above the one before."""
    logits = (np.arange(5 * 16384, dtype=np.float32) // 4096 * np.float32(growth)).reshape(1, -1)
    token, offsets = np.array([7], np.uint32), np.array([0, 1], np.uint32)
    values, slots = kernel(logits, token, token, offsets, offsets, offsets, 4)
    assert_kernel_row(logits[0], 7, values[0], slots[0], f"growth {growth}")
