"""Every op of the library on the emulated accelerator: the bits that it has on the CPU.

Sizes: none, one, odd, more than a block of threads. All element types of ops that work element by element or along
rows; the first of matmul's, and the first and the last of those ops that state examples, which are many graphs each.
"""

from __future__ import annotations

import pytest
from device_runs import BothDevices
from op_graphs import calls_of, graph_of_calls, graph_of_variants, operands_of
from op_samples import random_values, row_operand

from halfulp.compiler import DType
from halfulp.ops.contract import CONTRACTS

LENGTHS = (0, 1, 33, 257)
MATRICES = ((3, 5, 7), (1, 300, 2), (17, 64, 33), (2, 0, 3), (0, 4, 5))


def ops_of(layout: str) -> list[str]:
    return [name for name, contract in CONTRACTS.items() if contract.layout == layout]


@pytest.mark.parametrize("name", ops_of("elements"))
def test_elements(name: str) -> None:
    contract = CONTRACTS[name]
    shapes = [["n"]] * contract.operands
    both = BothDevices(lambda device: graph_of_variants(contract, contract.dtypes, shapes, device))
    operands = [array for dtype in contract.dtypes for array in operands_of(contract, dtype, max(LENGTHS))]
    for length in LENGTHS:
        both.check([array[:length] for array in operands], f"{length} elements,")


@pytest.mark.parametrize("name", ops_of("rows"))
def test_rows(name: str) -> None:
    contract = CONTRACTS[name]
    both = BothDevices(lambda device: graph_of_variants(contract, contract.dtypes, [["rows", "n"]], device))
    for length in LENGTHS[1:]:
        both.check([row_operand(dtype, length)[:3] for dtype in contract.dtypes], f"rows of {length},")


@pytest.mark.parametrize("name", ops_of("matrices"))
def test_matrices(name: str) -> None:
    contract, dtype = CONTRACTS[name], DType.float32
    both = BothDevices(lambda device: graph_of_variants(contract, [dtype], [["m", "k"], ["k", "n"]], device))
    for m, k, n in MATRICES:
        both.check([random_values(dtype, m * k, 1).reshape(m, k), random_values(dtype, k * n, 2).reshape(k, n)])


@pytest.mark.parametrize("name", ops_of("examples"))
def test_examples(name: str) -> None:
    contract = CONTRACTS[name]
    calls = calls_of(contract, list(dict.fromkeys([contract.dtypes[0], contract.dtypes[-1]])))
    both = BothDevices(lambda device: graph_of_calls(contract, calls, device))
    both.check([array for _, example in calls for array in example.operands])
