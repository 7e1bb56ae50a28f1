"""Every op of the library as PTX: ptxas accepts it without spills, and the emulated GPU gives the interpreter's bits.

Sizes: none, one, odd, more than a block of threads. All element types for elementwise ops and for those along rows;
for ops that have examples the first and the last type, since examples are many graphs each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from op_samples import Array, element_operands, random_values, row_operand
from ptx_runs import PtxGraph

from halfulp.compiler import DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.ops.contract import CONTRACTS, Contract, Example

LENGTHS = (0, 1, 33, 257)
MATRICES = ((3, 5, 7), (1, 300, 2), (17, 64, 130), (2, 0, 3), (0, 4, 5))
GPU = DeviceRef.GPU(0)


def ops_of(layout: str) -> list[str]:
    return [name for name, contract in CONTRACTS.items() if contract.layout == layout]


def graph_of(contract: Contract, dtypes: Sequence[DType], shapes: Sequence[Sequence[str]]) -> Graph:
    """All variants on all element types: operands of shapes in the order of ``dtypes``."""

    def forward(*values: TensorValue) -> list[TensorValue]:
        width = len(shapes)
        groups = [values[i : i + width] for i in range(0, len(values), width)]
        return [contract.build(*group, **variant) for group in groups for variant in contract.variants]

    types = [
        TensorType(DType.bool if index < contract.conditions else dtype, shape, GPU)
        for dtype in dtypes
        for index, shape in enumerate(shapes)
    ]
    return Graph(contract.name, forward, types)


@pytest.mark.parametrize("name", ops_of("elements"))
def test_elements(name: str) -> None:
    contract = CONTRACTS[name]
    both = PtxGraph(graph_of(contract, contract.dtypes, [["n"]] * contract.operands))
    both.check_code()
    operands = [array for dtype in contract.dtypes for array in _shuffled(contract, dtype)]
    for length in LENGTHS:
        both.check_bits([array[:length] for array in operands])


def _shuffled(contract: Contract, dtype: DType) -> list[Array]:
    values = element_operands(dtype, contract.operands - contract.conditions, max(LENGTHS))
    order = np.random.default_rng(len(contract.name)).permutation(len(values[0]))[: max(LENGTHS)]
    conditions = [np.arange(len(order)) % 3 == 0] * contract.conditions
    return [*conditions, *(array[order] for array in values)]


@pytest.mark.parametrize("name", ops_of("rows"))
def test_rows(name: str) -> None:
    contract = CONTRACTS[name]
    both = PtxGraph(graph_of(contract, contract.dtypes, [["rows", "n"]]))
    both.check_code()
    for length in LENGTHS[1:]:
        both.check_bits([row_operand(dtype, length)[:3] for dtype in contract.dtypes])


@pytest.mark.parametrize("name", ops_of("matrices"))
@pytest.mark.parametrize("dtype", [DType.float32, DType.bfloat16, DType.int8])
def test_matrices(name: str, dtype: DType) -> None:
    both = PtxGraph(graph_of(CONTRACTS[name], [dtype], [["m", "k"], ["k", "n"]]))
    both.check_code()
    for m, k, n in MATRICES:
        both.check_bits([random_values(dtype, m * k, 1).reshape(m, k), random_values(dtype, k * n, 2).reshape(k, n)])


@pytest.mark.parametrize("name", ops_of("examples"))
def test_examples(name: str) -> None:
    contract = CONTRACTS[name]
    assert contract.examples is not None
    dtypes = dict.fromkeys([contract.dtypes[0], contract.dtypes[-1]])
    examples = [example for dtype in dtypes for example in contract.examples(dtype)]
    both = PtxGraph(_graph_of_examples(contract, examples))
    both.check_code()
    both.check_bits([array for example in examples for array in example.operands])


def _graph_of_examples(contract: Contract, examples: Sequence[Example]) -> Graph:
    def forward(*values: TensorValue) -> list[TensorValue]:
        results: list[TensorValue] = []
        rest = iter(values)
        for example in examples:
            operands = [next(rest) for _ in example.operands]
            made: Any = contract.build(*[operands] if contract.takes_list else operands, **example.parameters)
            results += [made] if isinstance(made, TensorValue) else made
        return results

    arrays = [array for example in examples for array in example.operands]
    return Graph(
        contract.name, forward, [TensorType(DType.from_numpy(array.dtype), array.shape, GPU) for array in arrays]
    )
