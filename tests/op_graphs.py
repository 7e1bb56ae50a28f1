"""Graphs that call an op of the library as its contract says it can be called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from op_samples import Array, element_operands

from halfulp.compiler import DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.ops.contract import Contract, Example

Call = tuple[DType, Example]


def graph_of_variants(
    contract: Contract, dtypes: Sequence[DType], shapes: Sequence[Sequence[str]], device: DeviceRef | None = None
) -> Graph:
    """All variants on all element types as one graph: operands of shapes in the order of ``dtypes``."""

    def forward(*values: TensorValue) -> list[TensorValue]:
        width = len(shapes)
        groups = [values[i : i + width] for i in range(0, len(values), width)]
        return [contract.build(*group, **variant) for group in groups for variant in contract.variants]

    types = [
        TensorType(DType.bool if index < contract.conditions else dtype, shape, device)
        for dtype in dtypes
        for index, shape in enumerate(shapes)
    ]
    return Graph(contract.name, forward, types)


def operands_of(contract: Contract, dtype: DType, count: int) -> list[Array]:
    """At least ``count`` elements of each operand, special values anywhere among them."""
    values = element_operands(dtype, contract.operands - contract.conditions, count)
    order = np.random.default_rng(len(contract.name)).permutation(len(values[0]))
    conditions = [np.arange(len(order)) % 3 == 0] * contract.conditions
    return [*conditions, *(array[order] for array in values)]


def calls_of(contract: Contract, dtypes: Sequence[DType]) -> list[Call]:
    assert contract.examples is not None
    return [(dtype, example) for dtype in dtypes for example in contract.examples(dtype)]


def graph_of_calls(contract: Contract, calls: Sequence[Call], device: DeviceRef | None = None) -> Graph:
    """All calls as one graph, operands and results in their order."""

    def forward(*values: TensorValue) -> list[TensorValue]:
        results: list[TensorValue] = []
        rest = iter(values)
        for _, example in calls:
            operands = [next(rest) for _ in example.operands]
            made = contract.build(*[operands] if contract.takes_list else operands, **example.parameters)
            results += [made] if isinstance(made, TensorValue) else made
        return results

    arrays = [array for _, example in calls for array in example.operands]
    types = [TensorType(DType.from_numpy(array.dtype), array.shape, device) for array in arrays]
    return Graph(contract.name, forward, types)
