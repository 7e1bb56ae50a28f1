"""Grids, block specs and references against what JAX 0.10.2 gave, interpreted and compiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pallas_adapter import PallasAdapter, compiled, interpret
from pallas_programs import PROGRAMS

DATA = Path(__file__).parent / "data"
RECORDS: dict[str, Any] = json.loads((DATA / "pallas_cases.json").read_text(encoding="utf-8"))["cases"]
REFUSED = [name for name, record in RECORDS.items() if record["raises"]]
WITH_OUTPUTS = [name for name in RECORDS if name not in REFUSED]

Factory = Callable[[], PallasAdapter]
both_modes = pytest.mark.parametrize("factory", [interpret, compiled])


@pytest.fixture(scope="module")
def arrays() -> Iterator[Any]:
    with np.load(DATA / "pallas_cases.npz") as file:
        yield file


def outputs(name: str, factory: Factory) -> list[Any]:
    result = PROGRAMS[name](factory().call)
    return list(result) if isinstance(result, tuple) else [result]


def test_every_record_has_a_program() -> None:
    assert len(PROGRAMS) == 55
    assert PROGRAMS.keys() == RECORDS.keys()


@both_modes
@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs_are_as_recorded(name: str, factory: Factory, arrays: Any) -> None:
    results = outputs(name, factory)
    assert [{"dtype": r.dtype.name, "shape": list(r.shape)} for r in results] == RECORDS[name]["outputs"]
    relative, absolute = RECORDS[name]["tol"]
    for number, result in enumerate(results):
        wanted, got = arrays[f"{name}/{number}"], factory().numpy(result)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=relative, atol=absolute)
        else:
            np.testing.assert_array_equal(got, wanted)


@both_modes
@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_refused(name: str, factory: Factory) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011  (which class it must be, the record says)
        PROGRAMS[name](factory().call)
    assert any(base.__name__ in RECORDS[name]["raises"]["types"] for base in type(raised.value).__mro__)
    message = str(raised.value).lower()
    assert all(words in message for words in RECORDS[name]["raises"]["words"]), message


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_both_modes_give_the_same_bits(name: str) -> None:
    """But for those of a NaN."""
    for interpreted, machine in zip(outputs(name, interpret), outputs(name, compiled), strict=True):
        nan = np.isnan(interpreted)
        np.testing.assert_array_equal(np.isnan(machine), nan)
        assert machine[~nan].tobytes() == interpreted[~nan].tobytes()
