"""Models through the driver's interface to a GPU: a fake driver whose GPU is the emulator. All but the GPU is run."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_runs import GPU, BothDevices
from differential import assert_same_bits
from fake_cuda import EmulatedCuda
from logprobs_adapter import loaded_model as cpu_model
from logprobs_reference import kernel_arguments, recorded_cases

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.ops import pallas as pl
from halfulp.runtime import CPU, Accelerator, Buffer, InferenceSession
from halfulp.runtime import device as devices
from halfulp.runtime.pipelines import log_probabilities_ragged_graph


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> EmulatedCuda:
    fake: Any = EmulatedCuda()
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    bindings.driver = fake  # type: ignore[attr-defined]
    for name, module in (("cuda", package), ("cuda.bindings", bindings), ("cuda.bindings.driver", fake)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(devices, "_heaps", {})  # no later test gets this GPU
    return fake  # type: ignore[no-any-return]


def test_log_probabilities(cuda: EmulatedCuda) -> None:
    device = Accelerator(0)
    case = next(case for case in recorded_cases() if case.kind == "normal")
    operands: list[Any] = kernel_arguments(case.arguments)
    model = InferenceSession(devices=[device]).load(log_probabilities_ragged_graph(GPU, levels=case.levels))
    moved = [Buffer.from_numpy(array).to(device) for array in operands[:-1]]
    outputs = model.execute(*moved, operands[-1])
    for some, other in zip(outputs, cpu_model(case.levels).execute(*operands), strict=True):
        assert_same_bits(some.to(CPU()).to_numpy(), other.to_numpy(), case.name)
    assert "cuLaunchKernel" in cuda.names()


def test_a_graph_with_checks_branches_and_sizes_from_data(cuda: EmulatedCuda) -> None:
    def build(place: DeviceRef) -> Graph:
        def forward(x: TensorValue, i: TensorValue) -> list[TensorValue]:
            taken = ops.gather(x, i, axis=0)
            (chosen,) = ops.cond(ops.reshape(ops.sum(taken), []) > 0.0, [x.type], lambda: x + 1.0, lambda: x * 2.0)
            return [taken, chosen, ops.nonzero(x, "found")]

        return Graph("g", forward, [TensorType(DType.float32, ["n"], place), TensorType(DType.int64, ["k"], place)])

    both = BothDevices(build, device=Accelerator(0))
    x = np.array([1, 0, -3, 0, 5], np.float32)
    both.check([x, np.array([0, 4], np.int64)])
    both.check([x, np.array([2], np.int64)])
    assert isinstance(both.check([x, np.array([9], np.int64)]), str)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float64"])
def test_eager_kernels_of_all_widths(cuda: EmulatedCuda, dtype: str) -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    call = pl.pallas_call(kernel, pl.ShapeDtypeStruct((3,), dtype))
    array = np.array([1, 0, 1]).astype(DType(dtype).to_numpy())
    there = Buffer.from_numpy(array).to(Accelerator(0))
    np.testing.assert_array_equal(call(there).to(CPU()).to_numpy(), array)


def test_modules_and_memory_are_given_back(cuda: EmulatedCuda) -> None:
    device = Accelerator(0)
    model = InferenceSession(devices=[device]).load(Graph("g", ops.exp, [TensorType(DType.float32, ["n"], GPU)]))
    outputs = model(Buffer("float32", (5,), device))
    assert outputs[0].to(CPU()).to_numpy().tolist() == [1] * 5
    del model, outputs
    gc.collect()
    device.heap.trim()
    assert "cuModuleUnload" in cuda.names()
    assert cuda.emulator.memory.used == 0
