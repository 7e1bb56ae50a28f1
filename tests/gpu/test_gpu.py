"""The same graphs on an NVIDIA GPU as on the CPU, bit for bit. Skipped, with the reason, where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_runs import GPU, BothDevices
from differential import Array, assert_same_bits
from logprobs_adapter import loaded_model as cpu_model
from logprobs_reference import Case, kernel_arguments, recorded_cases
from op_graphs import calls_of, graph_of_calls, graph_of_variants
from op_samples import element_operands, random_values, row_operand

from halfulp.compiler import DType
from halfulp.ops.contract import CONTRACTS
from halfulp.runtime import CPU, Accelerator, Buffer, DeviceError, InferenceSession, OutOfDeviceMemoryError
from halfulp.runtime.cuda.errors import CudaError
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

pytestmark = pytest.mark.gpu

ELEMENTS = 5000
CASES = [case for case in recorded_cases() if case.kind == "normal"]


@pytest.fixture(scope="module")
def device() -> Accelerator:
    try:
        return Accelerator(0)
    except DeviceError as error:
        pytest.skip(str(error))


def ops_of(layout: str) -> list[str]:
    return [name for name, contract in CONTRACTS.items() if contract.layout == layout]


@pytest.mark.parametrize("name", ops_of("elements"))
def test_elements(name: str, device: Accelerator) -> None:
    contract = CONTRACTS[name]
    shapes = [["n"]] * contract.operands
    both = BothDevices(lambda place: graph_of_variants(contract, contract.dtypes, shapes, place), device=device)
    operands: list[Array] = []
    for dtype in contract.dtypes:
        values = element_operands(dtype, contract.operands - contract.conditions, ELEMENTS)
        operands += [np.arange(ELEMENTS) % 3 == 0] * contract.conditions + [array[:ELEMENTS] for array in values]
    size = min(map(len, operands))
    for length in (0, 1, 33, size):
        both.check([array[:length] for array in operands], f"{length} elements,")


@pytest.mark.parametrize("name", ops_of("rows"))
def test_rows(name: str, device: Accelerator) -> None:
    contract = CONTRACTS[name]
    both = BothDevices(
        lambda place: graph_of_variants(contract, contract.dtypes, [["rows", "n"]], place), device=device
    )
    for length in (1, 257, 9000):
        both.check([row_operand(dtype, length)[:3] for dtype in contract.dtypes], f"rows of {length},")


@pytest.mark.parametrize("name", ops_of("examples"))
def test_examples(name: str, device: Accelerator) -> None:
    contract = CONTRACTS[name]
    calls = calls_of(contract, contract.dtypes)
    both = BothDevices(lambda place: graph_of_calls(contract, calls, place), device=device)
    both.check([array for _, example in calls for array in example.operands])


@pytest.mark.parametrize("dtype", CONTRACTS["matmul"].dtypes)
def test_matmul(dtype: DType, device: Accelerator) -> None:
    contract = CONTRACTS["matmul"]
    both = BothDevices(
        lambda place: graph_of_variants(contract, [dtype], [["m", "k"], ["k", "n"]], place), device=device
    )
    for m, k, n in ((3, 5, 7), (1, 300, 2), (170, 640, 130), (2, 0, 3), (0, 4, 5)):
        both.check([random_values(dtype, m * k, 1).reshape(m, k), random_values(dtype, k * n, 2).reshape(k, n)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_log_probabilities(case: Case, device: Accelerator) -> None:
    operands: list[Any] = kernel_arguments(case.arguments)
    model = InferenceSession(devices=[device]).load(log_probabilities_ragged_graph(GPU, levels=case.levels))
    moved = [Buffer.from_numpy(array).to(device) for array in operands[:-1]]
    outputs = model.execute(*moved, operands[-1])
    for some, other in zip(outputs, cpu_model(case.levels).execute(*operands), strict=True):
        assert_same_bits(some.to(CPU()).to_numpy(), other.to_numpy(), case.name)


def test_copies_of_all_sizes(device: Accelerator) -> None:
    for size in (0, 1, 4 << 20, (4 << 20) + 1, 30_000_001):
        array = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
        assert Buffer.from_numpy(array).to(device).copy().to(CPU()).to_numpy().tobytes() == array.tobytes()


def test_errors_have_the_text_of_the_driver(device: Accelerator) -> None:
    with pytest.raises(OutOfDeviceMemoryError, match="needs 4398046511104 bytes on Accelerator"):
        Buffer("uint8", (1 << 42,), device)
    with pytest.raises(CudaError, match="cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX"):
        device.heap.driver.load_module(".version 8.0\n.target sm_80\nnonsense")
    with pytest.raises(DeviceError, match="there is no such GPU"):
        Accelerator(1000)
