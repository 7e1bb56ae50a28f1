"""Ops and small programs on the recorded cases: each output against its expected value, within the case's tolerance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_adapter import factory
from graph_programs import PROGRAMS, WEIGHTS
from op_samples import LARGEST, SIGNIFICAND_BITS, SMALLEST_EXPONENT, Array

from halfulp.compiler import DType

DATA = Path(__file__).parent / "data"
CASES: dict[str, Any] = json.loads((DATA / "graph_cases.json").read_text())["cases"]
WITH_VALUES = [name for name, case in CASES.items() if "calls" in case and case["kind"] != "error"]


@pytest.fixture(scope="module")
def arrays() -> Iterator[Any]:
    with np.load(DATA / "graph_cases.npz") as file:
        yield file


def spacing(wanted: Array, dtype: DType) -> Array:
    """The distance between neighbouring numbers of the type, at each expected value."""
    size = np.abs(np.where(np.isfinite(wanted), wanted, 0.0))
    exponents = np.frexp(np.minimum(size, LARGEST[dtype]))[1] - 1
    exponents = np.where(size == 0, SMALLEST_EXPONENT[dtype], np.maximum(exponents, SMALLEST_EXPONENT[dtype]))
    return np.asarray(np.ldexp(1.0, exponents + 1 - SIGNIFICAND_BITS[dtype]))


def assert_within(got: Array, wanted: Array, dtype: str, tolerance: dict[str, Any], signed_zero: bool) -> None:
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    element = DType(dtype)
    if not element.is_float:
        assert np.array_equal(got, wanted)
        return
    with np.errstate(all="ignore"):
        allowed = tolerance.get("atol", 0.0) + tolerance.get("rtol", 0.0) * np.abs(wanted)
        allowed = allowed + tolerance.get("ulp", 0.0) * spacing(wanted, DType(tolerance.get("in", dtype)))
        near = np.abs(got.astype(np.float64) - wanted) <= allowed
    fine = np.where(np.isnan(wanted), np.isnan(got), np.where(np.isinf(wanted), got == wanted, near))
    if signed_zero:
        fine &= (wanted != 0) | (np.signbit(got) == np.signbit(wanted))
    assert fine.all(), f"{int((~fine).sum())} of {fine.size}, first {got[~fine][0]!r}, expected {wanted[~fine][0]!r}"


def run_case(name: str, arrays: Any) -> None:
    """Builds the graph once, calls it for every recorded set of inputs, and checks the outputs."""
    case = CASES[name]
    program = factory().graph(lambda ops, *values: PROGRAMS[name](*values), case["inputs"], WEIGHTS.get(name))
    for call, recorded in enumerate(case["calls"]):
        inputs = [arrays[f"{name}/i{call}_{index}"] for index in range(recorded["n_in"])]
        results = program(*inputs)
        assert len(results) == len(recorded["out"])
        for index, (got, dtype) in enumerate(zip(results, recorded["out"], strict=True)):
            tolerance = case["tol"][index] if isinstance(case["tol"], list) else case["tol"]
            wanted = arrays[f"{name}/o{call}_{index}"]
            assert_within(got, wanted, dtype, tolerance, case.get("signed_zero", False))


def test_every_case_with_values_has_a_program() -> None:
    assert PROGRAMS.keys() == set(WITH_VALUES)


@pytest.mark.parametrize("name", WITH_VALUES)
def test_case(name: str, arrays: Any) -> None:
    run_case(name, arrays)
