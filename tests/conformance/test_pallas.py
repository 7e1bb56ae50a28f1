"""Grids, block specs and references on the 55 recorded cases, interpreted and compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pallas_adapter import PallasAdapter, compiled, interpret
from pallas_programs import CASES, Case

DATA = Path(__file__).parent / "data"
RECORDED: dict[str, Any] = json.loads((DATA / "pallas_cases.json").read_text(encoding="utf-8"))["cases"]
ARRAYS = np.load(DATA / "pallas_cases.npz")

Factory = Callable[[], PallasAdapter]


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def outputs(case: Case, adapter: PallasAdapter) -> list[Any]:
    return [adapter.numpy(leaf) for leaf in leaves(case.program(adapter))]


def test_all_recorded_cases_are_here() -> None:
    assert len(CASES) == 55
    assert CASES.keys() == RECORDED.keys()


@pytest.mark.parametrize("factory", [interpret, compiled])
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.raises is None], ids=lambda case: case.name)
def test_results_are_the_recorded_ones(case: Case, factory: Factory) -> None:
    adapter = factory()
    results = leaves(case.program(adapter))
    recorded = RECORDED[case.name]["outputs"]
    assert [adapter.dtname(result) for result in results] == [output["dtype"] for output in recorded]
    assert [list(np.shape(result)) for result in results] == [output["shape"] for output in recorded]
    for number, result in enumerate(results):
        expected, actual = ARRAYS[f"{case.name}/{number}"], adapter.numpy(result)
        if case.tolerance == (0, 0) or expected.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, expected)
        else:
            relative, absolute = case.tolerance
            np.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)


@pytest.mark.parametrize("factory", [interpret, compiled])
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.raises is not None], ids=lambda case: case.name)
def test_wrong_calls_are_refused(case: Case, factory: Factory) -> None:
    assert case.raises is not None
    with pytest.raises(Exception) as raised:  # noqa: PT011  (the class is among several by name)
        case.program(factory())
    assert {kind.__name__ for kind in type(raised.value).__mro__} & set(case.raises.types)
    for word in case.raises.words:
        assert word in str(raised.value).lower()


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.raises is None], ids=lambda case: case.name)
def test_interpreted_and_compiled_bits_are_equal(case: Case) -> None:
    for expected, actual in zip(outputs(case, interpret()), outputs(case, compiled()), strict=True):
        np.testing.assert_array_equal(actual, expected)
