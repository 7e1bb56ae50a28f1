"""The recorded cases of the kernel language on the emulated GPU: the interpreter's bits, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pallas_adapter import compiled, interpret
from pallas_programs import PROGRAMS
from ptx_runs import PtxGraph

from halfulp.compiler.errors import FailedCheckError
from halfulp.ops.pallas import eager
from halfulp.ops.pallas.prepare import Prepared

RECORDS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "pallas_cases.json").read_text(encoding="utf-8")
)["cases"]


def _loaded_on_gpu(ran: list[str], prepared: Prepared, place: None = None) -> Callable[..., Sequence[Any]]:
    """What an eager call runs: its graph, each launch of it by PTX; its name goes to ``ran``."""
    graph = PtxGraph(eager._graph(prepared), eager._options(prepared))

    def run(*arrays: Any) -> list[_Output]:
        ran.append(prepared.call.name)
        result = graph.run([np.asarray(array) for array in arrays])
        if result.failed is not None:
            program = 0
            for size, index in zip(prepared.mapping.static_grid, result.failed.program or (), strict=True):
                program = program * int(size or 1) + index
            raise FailedCheckError(
                result.failed.message, result.failed.kernel, program, is_bounds=result.failed.is_bounds
            )
        return [_Output(array) for array in graph.outputs(result)]

    return run


class _Output:
    def __init__(self, array: Any) -> None:
        self._array = array

    def to_numpy(self) -> Any:
        return self._array


def outputs(name: str, adapter: Any) -> list[Any]:
    result = PROGRAMS[name](adapter.call)
    return [adapter.numpy(value) for value in (result if isinstance(result, tuple) else [result])]


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if not record["raises"]])
def test_ptx_has_the_bits_of_the_interpreter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(eager, "_loaded_call", partial(_loaded_on_gpu, ran))
    for some, other in zip(outputs(name, compiled()), outputs(name, interpret()), strict=True):
        nan = np.isnan(other)
        np.testing.assert_array_equal(np.isnan(some), nan)
        assert some[~nan].tobytes() == other[~nan].tobytes()
    assert ran


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if record["raises"]])
def test_wrong_calls_are_refused_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "_loaded_call", partial(_loaded_on_gpu, []))
    raised = []
    for adapter in (compiled(), interpret()):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (which class it is, the other test says)
            PROGRAMS[name](adapter.call)
        raised.append((type(caught.value), str(caught.value)))
    assert raised[0] == raised[1]
