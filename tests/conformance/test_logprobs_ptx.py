"""The recorded cases of ragged log-probabilities on the emulated GPU: the interpreter's bits and failed checks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits, entry_of
from logprobs_reference import Case, kernel_arguments, recorded_cases
from ptx_runs import PtxLaunches, run_entry
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler import CompileOptions, DeviceRef
from halfulp.compiler.codegen.ptx import ptx_target
from halfulp.compiler.codegen.ptxas import assemble
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.pipeline import lower
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

CASES = [case for case in recorded_cases() if case.kind != "error"]
TARGET = "sm_90"


@cache
def compiled(levels: int) -> tuple[ModuleOp, PtxLaunches]:
    """The graph as tile IR, and its kernels on the emulator."""
    module = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=levels).module.clone()
    lower(module, "tile", CompileOptions(), ptx_target(TARGET))
    return module, PtxLaunches(module, TARGET, CompileOptions())


@pytest.mark.parametrize("levels", sorted({case.levels for case in CASES}))
def test_ptxas_accepts_the_kernels_without_spills(levels: int) -> None:
    _, usage = assemble(compiled(levels)[1].ptx, TARGET)
    assert len(usage) > 1
    assert [str(kernel) for kernel in usage if kernel.spill_stores or kernel.stack_bytes] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ptx_has_the_bits_of_the_interpreter(case: Case) -> None:
    operands = [
        array.view(np.int32) if array.dtype == np.uint32 else array for array in kernel_arguments(case.arguments)
    ]

    def output(symbol: str, dtype: Any) -> Any:
        return lambda dims: np.zeros((dims[symbol], 2**case.levels), dtype)

    outputs = [output("out_batch_seq", np.float32), output("out_batch_seq2", np.int32)]
    dims: Mapping[str, int] = {"vocab": operands[0].shape[1]}
    module, launches = compiled(case.levels)
    expected = interpret(module, entry_of(module).sym_name.data, [*operands, *outputs], dims)
    actual = run_entry(module, launches, [*operands, *outputs], dims)
    assert actual.failed == expected.failed
    for number, (some, other) in enumerate(zip(actual.arrays[7:], expected.arrays[7:], strict=True)):
        assert (some is None) == (other is None)
        if some is not None and other is not None and expected.failed is None:
            assert_same_bits(some, other, f"output {number}")
