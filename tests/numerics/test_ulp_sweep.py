"""The sweep over all f32: its measure, a sparse run of it on machine code, and the recorded results."""

from __future__ import annotations

import importlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from halfulp.compiler.codegen.math.emitter import ElementType
from halfulp.compiler.codegen.math.table import EXPANSIONS
from halfulp.compiler.interpreter.numpy_emitter import NumpyEmitter

ROOT = Path(__file__).resolve().parents[2]
CASES = [(name, type) for name, formats in EXPANSIONS.items() for type in formats]
UNARY_F32 = [name for name, formats in EXPANSIONS.items() if formats["f32"].arity == 1]
# The reference for doubles is the long double of x86.
RANDOM = [(n, t) for n, t in CASES if n not in UNARY_F32 or (t == "f64" and platform.machine() == "x86_64")]
STEP = 65521  # prime: the inputs differ in all their bits


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[dict[str, ModuleType]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield {name: importlib.import_module(name) for name in ("ulp_sweep", "llvm_emitter")}


@pytest.mark.parametrize("name", UNARY_F32)
def test_machine_code_over_a_sparse_set_of_f32(benchmarks: dict[str, ModuleType], name: str) -> None:
    sweep = benchmarks["ulp_sweep"]
    worst = sweep.sweep(name, "f32", sweep.all_f32_inputs(STEP), 1)
    assert worst.count >= 65536
    assert worst.ulp <= EXPANSIONS[name]["f32"].ulp_bound, sweep.record(name, "f32", worst, False)


@pytest.mark.parametrize(("name", "type"), RANDOM)
def test_machine_code_over_random_inputs(benchmarks: dict[str, ModuleType], name: str, type: ElementType) -> None:
    sweep = benchmarks["ulp_sweep"]
    inputs = sweep.random_inputs(name, type, EXPANSIONS[name][type].arity, 4 * sweep.CHUNK)
    worst = sweep.sweep(name, type, inputs, 1)
    assert worst.count == 4 * sweep.CHUNK
    assert worst.ulp <= EXPANSIONS[name][type].ulp_bound, sweep.record(name, type, worst, False)


@pytest.mark.parametrize(("name", "type"), CASES)
def test_machine_code_of_any_width_equals_numpy(
    benchmarks: dict[str, ModuleType], name: str, type: ElementType
) -> None:
    emitter = benchmarks["llvm_emitter"]
    expansion = EXPANSIONS[name][type]
    inputs = _varied_inputs(type, expansion.arity)
    with np.errstate(all="ignore"):
        expected = expansion.expand(NumpyEmitter(), *inputs)
    for lanes in (4, 8, 16):
        text = emitter.loop_over_arrays("f", expansion.expand, type, expansion.arity, lanes)
        library = emitter.Library([text])
        got = np.empty_like(expected)
        function = library.function("f", expansion.arity + 1)
        function(got.ctypes.data, *(x.ctypes.data for x in inputs), len(got))
        assert np.array_equal(got, expected, equal_nan=True)
        number = ~np.isnan(got)
        assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def _varied_inputs(type: ElementType, arity: int) -> list[Any]:
    """Random bits, values of ordinary size, and every pair of special values."""
    dtype = np.dtype({"f32": "float32", "f64": "float64"}[type])
    generator = np.random.default_rng(7)
    info = np.finfo(dtype)
    special = [0.0, 1.0, 0.5, 2.0, 3.0, 1e30, float(info.tiny), float(info.smallest_subnormal), np.inf]
    special = [*special, *(-x for x in special), np.nan, float(info.max)]
    pairs = np.array([(a, b) for a in special for b in special], dtype)
    inputs = []
    for i in range(arity):
        random = np.frombuffer(generator.bytes(712 * dtype.itemsize), dtype)
        ordinary = generator.normal(0, 8, 400).astype(dtype)
        inputs.append(np.concatenate([random, ordinary, pairs[:, i], np.ones(8, dtype)])[:1504])
    assert all(len(x) % 16 == 0 for x in inputs)
    return inputs


@pytest.mark.parametrize(
    ("computed", "exact", "error"),
    [
        (1.0, 1.0 + 2.0**-25, 0.25),
        (1.0, 1.0 - 2.0**-25, 0.5),
        (2.0**-149, 0.75 * 2.0**-149, 0.25),
        (2.0**-126, 2.0**-126 + 2.0**-150, 0.5),
        (0.0, 2.0**-151, 0.25),
        (-0.0, 2.0**-151, np.inf),
        (-0.0, 0.0, np.inf),
        (np.nan, np.nan, 0.0),
        (np.nan, 1.0, np.inf),
        (1.0, np.nan, np.inf),
        (np.inf, 1e39, 0.0),
        (-np.inf, 1e39, np.inf),
        (3.4e38, 1e39, np.inf),
        (np.inf, 3.4e38, np.inf),
    ],
)
def test_the_measure_of_errors(benchmarks: dict[str, ModuleType], computed: float, exact: float, error: float) -> None:
    measure = benchmarks["ulp_sweep"].ulp_errors
    with np.errstate(all="ignore"):
        for wide in (np.float64, np.longdouble):
            assert measure(np.array([computed], np.float32), np.array([exact], wide)) == [error]


@pytest.mark.parametrize(("name", "type"), CASES)
def test_the_recorded_results_are_within_the_claimed_bounds(name: str, type: ElementType) -> None:
    result = json.loads((ROOT / "docs" / "ulp_results.json").read_text())[name][type]
    assert 0.5 <= result["max_ulp"] <= EXPANSIONS[name][type].ulp_bound
    exhaustive = name in UNARY_F32 and type == "f32"
    assert result["exhaustive"] == exhaustive
    assert result["inputs"] == 1 << 32 if exhaustive else result["inputs"] >= 1 << 26


@pytest.mark.parametrize(("name", "type"), CASES)
def test_the_recorded_worst_input_gives_the_recorded_error(
    benchmarks: dict[str, ModuleType], name: str, type: ElementType
) -> None:
    """The record is of this very code: a change of one coefficient shows here."""
    result = json.loads((ROOT / "docs" / "ulp_results.json").read_text())[name][type]
    dtype = {"f32": np.float32, "f64": np.float64}[type]
    arguments = [np.full(16, float.fromhex(x), dtype) for x in result["at"]]
    sweep = benchmarks["ulp_sweep"]
    computed = sweep.compile_expansion(EXPANSIONS[name][type], type)(*arguments)
    exact = sweep.compile_reference(name, type, len(arguments))(*arguments)
    with np.errstate(all="ignore"):
        assert sweep.ulp_errors(computed, exact)[0] == pytest.approx(result["max_ulp"], abs=2e-3)


def test_the_documentation_repeats_the_results() -> None:
    results = json.loads((ROOT / "docs" / "ulp_results.json").read_text())
    text = (ROOT / "docs" / "elementary_functions.md").read_text()
    table = text[text.index("<!-- results") : text.index("<!-- /results")].splitlines()[3:]
    expected = []
    for name, type in CASES:
        expansion, result = EXPANSIONS[name][type], results[name][type]
        cells = [
            name,
            type,
            f"{expansion.ulp_bound:g}",
            result["max_ulp"],
            ", ".join(result["at"]),
            expansion.operations,
        ]
        expected.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    assert table == expected
