"""What log-probabilities must be: recorded cases, and a float64 reference with the accuracy that is owed.

``data/logprob_cases.json`` and ``.npz`` hold inputs and the results of the system whose interface halfulp follows
(MAX 26.7). The large inputs are not stored: they come from a formula that is exact on every machine.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DATA = Path(__file__).with_name("data")
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
ARRAYS = ("input_row_offsets", "logits", "next_token_logits", "tokens", "sampled_tokens")

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One recorded call. ``arguments`` are those of the host function, ``levels`` included.

    ``kind`` is ``normal``, ``special`` (rows of NaN or infinities, where the recorded answer is not IEEE) or
    ``error``; ``recorded`` has a dict of lists or None for each sequence, ``recorded_error`` its distance from float64.
    """

    name: str
    kind: str
    arguments: Arguments
    recorded: list[dict[str, Any] | None] | None
    recorded_error: float

    @property
    def levels(self) -> int:
        return int(self.arguments["levels"])

    @property
    def scored_logits(self) -> Floats:
        """The logits that are read: all of them, or the last ones alone."""
        logits = self.arguments["logits"]
        return self.arguments["next_token_logits"] if logits is None else logits  # type: ignore[no-any-return]


@cache
def recorded_cases() -> tuple[Case, ...]:
    """All 53 cases."""
    manifest = json.loads((DATA / "logprob_cases.json").read_text())
    with np.load(DATA / "logprob_cases.npz") as stored:
        return tuple(_case(entry, stored) for entry in manifest["cases"])


def _case(entry: dict[str, Any], stored: Any) -> Case:
    arguments: Arguments = dict(entry["scalars"])
    for field in ARRAYS:
        key = f"{entry['name']}/{field}"
        arguments[field] = stored[key] if key in stored.files else None
    if entry.get("formula"):
        _add_formula_logits(arguments, **entry["formula"])
    recorded = None if entry["max_api"] is None else [_recorded(result) for result in entry["max_api"]]
    return Case(entry["name"], entry["kind"], arguments, recorded, float(entry.get("max_abs_err", 0.0)))


def _add_formula_logits(arguments: Arguments, *, rows: int, cols: int, **formula: Any) -> None:
    full = formula_logits(rows, cols, formula["seed"], formula["scale"], formula["offset"])
    if formula["as"] == "logits":
        arguments["logits"] = full
        arguments["next_token_logits"] = full[arguments["input_row_offsets"][1:].astype(np.int64) - 1]
    else:
        arguments["next_token_logits"] = full


def _recorded(result: dict[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    tops = [{int(token): float(value) for token, value in pairs} for pairs in result["top"]]
    return {"values": [float(value) for value in result["t"]], "tops": tops, "tokens": result["ids"]}


def formula_logits(rows: int, columns: int, seed: int, scale: float, offset: float) -> Floats:
    """Near-normal numbers without a library's generator: four 24-bit hashes (splitmix64) each, summed as integers."""
    count = rows * columns * 4
    word = np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x9E3779B1)
    with np.errstate(over="ignore"):
        word = (word + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
        word ^= word >> np.uint64(31)
    sums = (word >> np.uint64(40)).reshape(rows, columns, 4).astype(np.int64).sum(axis=2)
    normal: Floats = ((sums / 2.0**24 - 2.0) * (math.sqrt(3.0) * scale) + offset).astype(np.float32)
    return normal


# -- the reference


def log_softmax(row: Floats) -> Doubles:
    """In float64; NaN for a row that holds NaN or +inf or nothing but -inf. Below float32's range it is -inf."""
    x = row.astype(np.float64)
    largest = x.max(initial=-math.inf)  # NaN where there is one
    if not math.isfinite(largest):
        return np.full(x.shape, math.nan)
    result: Doubles = x - (largest + math.log(np.exp(x - largest).sum()))
    result[result < -LARGEST_FLOAT32] = -math.inf
    return result


def tolerance(row: Floats) -> float:
    """2 ulp of the largest magnitude involved, and 1e-6: what careful float32 arithmetic reaches."""
    finite = np.abs(row[np.isfinite(row)]).astype(np.float64)
    magnitude = float(finite.max(initial=0.0)) + math.log(max(len(row), 1))
    return 1e-6 + 2 * float(np.spacing(np.float32(min(magnitude, 3.4e38))))


def best_tokens(row: Floats, count: int) -> list[int]:
    """The ``count`` most probable tokens, equal ones in ascending order; -inf and NaN are none."""
    order = np.argsort(-row.astype(np.float64), kind="stable")  # NaN comes last
    return [int(token) for token in order[:count] if row[token] > -math.inf]


def scored_places(arguments: Arguments) -> list[list[tuple[int, int]]]:
    """For each sequence the (row of logits, token) pairs that it scores."""
    offsets = [int(offset) for offset in arguments["input_row_offsets"]]
    places: list[list[tuple[int, int]]] = []
    for sequence, echo in enumerate(arguments["batch_echo"]):
        start, end = offsets[sequence : sequence + 2]
        sampled = int(arguments["sampled_tokens"][sequence])
        if arguments["logits"] is None:
            places.append([(sequence, sampled)])
        elif echo:
            following = [int(token) for token in arguments["tokens"][start + 1 : end]]
            places.append(list(zip(range(start, end), [*following, sampled], strict=False)))
        else:
            places.append([(end - 1, sampled)])
    return places


def kernel_arguments(arguments: Arguments) -> list[Any]:
    """The seven operands of the graph, as the host function must make them."""
    offsets = np.asarray(arguments["input_row_offsets"]).astype(np.uint32)
    full = arguments["logits"] is not None
    lengths = np.diff(offsets.astype(np.int64))
    counts = [length if echo else 1 for length, echo in zip(lengths, arguments["batch_echo"], strict=True)]
    outputs = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return [
        np.ascontiguousarray(arguments["logits"] if full else arguments["next_token_logits"]),
        np.asarray(arguments["tokens"]).astype(np.uint32),
        np.asarray(arguments["sampled_tokens"]).astype(np.uint32),
        offsets if full else np.arange(len(offsets), dtype=np.uint32),
        offsets,
        outputs,
        outputs,
    ]


# -- checks


def assert_close(value: float, expected: float, allowed: float, subject: str) -> None:
    """Equal, both NaN, or within ``allowed``."""
    if math.isnan(expected):
        assert math.isnan(value), f"{subject}: {value} where NaN is right"
    elif value != expected:
        assert abs(value - expected) <= allowed, f"{subject}: {value}, float64 {expected}, allowed {allowed}"


def assert_kernel_row(row: Floats, scored: int, values: Floats, tokens: npt.NDArray[np.uint32], subject: str) -> None:
    """The slots of one output row: sorted top tokens, unused ones (vocab, -inf), the scored token last."""
    expected = log_softmax(row)
    allowed = tolerance(row)
    best = best_tokens(row, len(tokens) - 1)
    unused = len(tokens) - 1 - len(best)
    assert tokens.tolist() == [*best, *[len(row)] * unused, scored], subject
    for token, value in zip(tokens.tolist(), values.tolist(), strict=True):
        assert_close(value, expected[token] if token < len(row) else -math.inf, allowed, f"{subject}, token {token}")


def assert_result(case: Case, sequence: int, result: Any, places: list[tuple[int, int]]) -> None:
    """What the host function gives for one sequence with ``top_n`` above 0."""
    top_n = case.arguments["batch_top_n"][sequence]
    assert result.sampled_token_ids == [token for _, token in places]
    assert len(result.token_log_probabilities) == len(result.top_log_probabilities) == len(places)
    for index, (place, token) in enumerate(places):
        row = case.scored_logits[place]
        expected, allowed = log_softmax(row), tolerance(row)
        subject = f"{case.name}, sequence {sequence}, entry {index}"
        top = result.top_log_probabilities[index]
        best = best_tokens(row, top_n)
        assert list(top) == (best if token in best else [*best, token]), subject
        assert_close(result.token_log_probabilities[index], expected[token], allowed, subject)
        for key, value in top.items():
            assert_close(value, expected[key], allowed, f"{subject}, token {key}")
