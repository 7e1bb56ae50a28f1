"""Interpreted tile IR and compiled code agree bit for bit on the recorded cases, whatever the vector width."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from logprobs_reference import Case, kernel_arguments, recorded_cases
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler import CompileOptions, DeviceRef
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.interpreter import InterpreterResult, interpret
from halfulp.compiler.pipeline import lower
from halfulp.runtime import CPU, InferenceSession, Model
from halfulp.runtime.errors import ExecutionError
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

CASES = [case for case in recorded_cases() if case.kind != "error"]
WIDTHS = (512, 256, 128)


def widths_of_this_machine() -> list[int]:
    return [bits for bits in WIDTHS if bits <= host_target().vector_bits]


@cache
def compiled(levels: int, vector_bits: int) -> Model:
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=levels)
    return InferenceSession(devices=[CPU()]).load(graph, options=CompileOptions(vector_bits=vector_bits))


@cache
def tile_module(levels: int) -> ModuleOp:
    module = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=levels).module.clone()
    lower(module, "tile", CompileOptions(), host_target())
    return module


@cache
def interpreted(name: str) -> InterpreterResult:
    case = next(case for case in CASES if case.name == name)
    operands = [
        array.view(np.int32) if array.dtype == np.uint32 else array for array in kernel_arguments(case.arguments)
    ]

    def output(symbol: str, dtype: Any) -> Any:
        return lambda dims: np.zeros((dims[symbol], 2**case.levels), dtype)

    outputs = [output("out_batch_seq", np.float32), output("out_batch_seq2", np.int32)]
    dims: Mapping[str, int] = {"vocab": operands[0].shape[1]}
    return interpret(tile_module(case.levels), "log_probabilities_ragged", [*operands, *outputs], dims)


def canonical(values: Any) -> bytes:
    """The bits, with all NaNs equal: which NaN an operation gives is not defined."""
    return np.where(np.isnan(values), np.float32(np.nan), values).tobytes()


@pytest.mark.parametrize("vector_bits", widths_of_this_machine())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_code_has_the_bits_of_the_interpreter(case: Case, vector_bits: int) -> None:
    result = interpreted(case.name)
    model = compiled(case.levels, vector_bits)
    if result.failed is not None:
        with pytest.raises(ExecutionError) as raised:
            model.execute(*kernel_arguments(case.arguments))
        assert raised.value.message.startswith(f"model 'log_probabilities_ragged': {result.failed.message} (")
        return
    values, tokens = (buffer.to_numpy() for buffer in model.execute(*kernel_arguments(case.arguments)))
    expected_values, expected_tokens = result.arrays[7:]
    assert expected_values is not None
    assert expected_tokens is not None
    assert canonical(values) == canonical(expected_values)
    assert tokens.tobytes() == expected_tokens.tobytes()
