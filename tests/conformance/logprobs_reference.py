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
    text = (DATA / "logprob_cases.json").read_text(encoding="utf-8")
    with np.load(DATA / "logprob_cases.npz") as stored:
        return tuple(_case(entry, stored) for entry in json.loads(text)["cases"])


def _case(entry: dict[str, Any], stored: Any) -> Case:
    arguments = {**entry["scalars"], **{field: stored.get(f"{entry['name']}/{field}") for field in ARRAYS}}
    if entry["formula"] is not None:
        _add_large_logits(arguments, entry["formula"])
    results = entry["max_api"]
    recorded = None if results is None else [None if result is None else _recorded(result) for result in results]
    return Case(entry["name"], entry["kind"], arguments, recorded, float(entry.get("max_abs_err", 0.0)))


def _add_large_logits(arguments: Arguments, formula: dict[str, Any]) -> None:
    """Adds the rows of the last tokens, which are picked from those of all tokens where the call gets these too."""
    made = formula_logits(*(formula[key] for key in ("rows", "cols", "seed", "scale", "offset")))
    if formula["as"] == "logits":
        arguments["logits"] = made
        last = arguments["input_row_offsets"][1:].astype(np.int64) - 1
        made = made[last]
    arguments["next_token_logits"] = made


def _recorded(result: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities and no NaN: they are strings there, which float reads."""
    tops = [{int(token): float(value) for token, value in row} for row in result["top"]]
    return {"values": list(map(float, result["t"])), "tops": tops, "tokens": result["ids"]}


def splitmix64(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The output of the generator of Steele, Lea and Flood (OOPSLA 2014) in each of the states."""
    mixed = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def formula_logits(rows: int, columns: int, seed: int, scale: float, offset: float) -> Floats:
    """Nearly normal numbers, the same on every machine: sums of four uniform ones of 24 bits, which are exact."""
    step, first = np.uint64(0x9E3779B97F4A7C15), 1 + 0x9E3779B1 * seed
    counter = np.arange(first, first + 4 * rows * columns, dtype=np.uint64)
    uniform = (splitmix64(counter * step) >> np.uint64(40)).reshape(rows, columns, 4)
    sums = uniform.sum(axis=-1).astype(np.float64)
    deviation = math.sqrt(3.0) * scale  # four uniform numbers have the variance 1/3
    logits: Floats = (offset + deviation * (sums * 2.0**-24 - 2.0)).astype(np.float32)
    return logits


# -- the reference


def log_softmax(row: Floats) -> Doubles:
    """In float64. What is below float32's range is -inf.

    A row of NaN, +inf or nothing but -inf gives NaN everywhere: infinity minus infinity is NaN, and so is every sum
    with it.
    """
    with np.errstate(all="ignore"):
        distance = row.astype(np.float64)
        distance -= distance.max(initial=-math.inf)
        result = distance - np.log(np.exp(distance).sum())
    return np.where(result < -LARGEST_FLOAT32, -math.inf, result)


def tolerance(row: Floats) -> float:
    """What is owed: two float32 units in the last place of the largest number on the way, plus 1e-6.

    No number on the way exceeds the largest logit plus the logarithm of the vocabulary's size.
    """
    largest = float(np.abs(row, where=np.isfinite(row), out=np.zeros_like(row)).max(initial=0))
    _, exponent = math.frexp(largest + math.log(max(row.size, 1)))
    return math.ldexp(2.0, exponent - 24) + 1e-6


def best_tokens(row: Floats, count: int) -> list[int]:
    """The ``count`` most probable tokens, equal ones in ascending order; -inf and NaN are none."""
    possible = np.flatnonzero(row > -math.inf)
    descending = np.argsort(-row[possible], kind="stable")
    return [int(token) for token in possible[descending[:count]]]


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
    tokens, sampled, ends = (
        np.asarray(arguments[field], np.uint32) for field in ("tokens", "sampled_tokens", "input_row_offsets")
    )
    if arguments["logits"] is None:  # a row for each sequence
        logits, rows = arguments["next_token_logits"], np.arange(ends.size, dtype=np.uint32)
    else:
        logits, rows = arguments["logits"], ends
    echoed = np.asarray(arguments["batch_echo"], np.bool_)
    outputs = np.zeros_like(ends)
    np.cumsum(np.where(echoed, np.diff(ends), 1), dtype=np.uint32, out=outputs[1:])
    return [np.ascontiguousarray(logits), tokens, sampled, rows, ends, outputs, outputs]


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
