"""The recorded cases of ragged log-probabilities on the emulated accelerator: the CPU's bits, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from differential import Array, assert_same_bits
from logprobs_adapter import loaded_model as cpu_model
from logprobs_reference import Case, kernel_arguments, recorded_cases

from halfulp.compiler import DeviceRef
from halfulp.runtime import CPU, Accelerator, Buffer, ExecutionError, InferenceSession, Model
from halfulp.runtime.pipelines import compute_log_probabilities_ragged, log_probabilities_ragged_graph

DEVICE = Accelerator(emulated=True)
CASES = recorded_cases()
RUNNING = [case for case in CASES if case.kind != "error"]


@cache
def device_model(levels: int) -> Model:
    """The graph on the accelerator, compiled once."""
    return InferenceSession(devices=[DEVICE]).load(log_probabilities_ragged_graph(DeviceRef.GPU(0), levels=levels))


@pytest.mark.parametrize("case", RUNNING, ids=lambda case: case.name)
def test_kernel_has_the_bits_of_the_cpu(case: Case) -> None:
    operands = kernel_arguments(case.arguments)
    moved = [Buffer.from_numpy(array).to(DEVICE) for array in operands[:-1]]
    outcomes = [
        _outcome(cpu_model(case.levels), operands),
        _outcome(device_model(case.levels), [*moved, operands[-1]]),
    ]
    if isinstance(outcomes[0], ExecutionError):
        assert str(outcomes[1]) == str(outcomes[0])
        return
    for number, (some, other) in enumerate(zip(*outcomes, strict=True)):
        assert_same_bits(some, other, f"output {number}")


def _outcome(model: Model, operands: Sequence[Any]) -> list[Array] | ExecutionError:
    try:
        outputs = model.execute(*operands)
    except ExecutionError as error:
        return error
    return [buffer.to(CPU()).to_numpy() for buffer in outputs]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_host_function_gives_what_it_gives_on_the_cpu(case: Case) -> None:
    arguments = {name: value for name, value in case.arguments.items() if name != "levels"}
    results: list[Any] = []
    for device, model in ((CPU(), cpu_model), (DEVICE, device_model)):
        try:
            results.append(compute_log_probabilities_ragged(device, model(case.levels), **arguments))
        except ExecutionError as error:
            results.append(str(error))
    assert repr(results[0]) == repr(results[1])  # NaN is not equal to itself
