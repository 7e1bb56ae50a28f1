"""The recorded cases of the kernel language on buffers of the emulated accelerator: the CPU's bits, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_runs import DEVICE
from differential import Array, assert_same_bits
from pallas_adapter import compiled
from pallas_programs import PROGRAMS

from halfulp.ops import pallas as pl
from halfulp.runtime import CPU, Buffer

DATA = Path(__file__).parents[1] / "conformance" / "data" / "pallas_cases.json"
RECORDS: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))["cases"]


def call_on_device(kernel: Callable[..., None], out_shape: Any, **keywords: Any) -> Callable[..., Any]:
    """``pallas_call`` whose arguments are copied to the accelerator first, and whose results are copied back."""
    call = pl.pallas_call(kernel, out_shape, **keywords)
    return lambda *arguments: _each(_back, call(*[_each(_moved, argument) for argument in arguments]))


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _each(function, item) for name, item in value.items()}
    return type(value)(_each(function, v) for v in value) if isinstance(value, list | tuple) else function(value)


def _moved(value: Any) -> Any:
    return Buffer.from_numpy(value).to(DEVICE) if isinstance(value, np.ndarray | np.generic) else value


def _back(value: Any) -> Any:
    assert not isinstance(value, Buffer) or value.device == DEVICE
    return value.to(CPU()).to_numpy() if isinstance(value, Buffer) else value


def outputs(name: str, call: Any) -> list[Array]:
    result = PROGRAMS[name](call)
    return [np.asarray(value) for value in (result if isinstance(result, tuple) else [result])]


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if not record["raises"]])
def test_kernels_have_the_bits_of_the_cpu(name: str) -> None:
    for some, other in zip(outputs(name, call_on_device), outputs(name, compiled().call), strict=True):
        assert_same_bits(some, other, name)


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if record["raises"]])
def test_wrong_calls_are_refused_as_on_the_cpu(name: str) -> None:
    raised = []
    for call in (call_on_device, compiled().call):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (which class it is, the other test says)
            PROGRAMS[name](call)
        raised.append((type(caught.value), getattr(caught.value, "message", str(caught.value))))
    assert raised[0] == raised[1]
