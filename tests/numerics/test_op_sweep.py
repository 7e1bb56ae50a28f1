"""Every op of the library, every element type, many sizes, special values: within the bound that its contract states.

The reference has higher precision. Sizes: none, one, odd, the edge of a vector, more than a block. What a shorter
operand gives must be the same bits as the front of what a longer one gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits
from graphs_both_ways import check_graph_both_ways
from op_bounds import check_result, check_ulp, references, wide_operands
from op_graphs import calls_of, graph_of_calls, graph_of_variants, operands_of
from op_samples import Array, row_operand

from halfulp.compiler import DType
from halfulp.ops.contract import CONTRACTS
from halfulp.runtime import InferenceSession

BLOCK_AND_MORE = 4500
LENGTHS = (0, 1, 7, 64)
ROW_LENGTHS = (1, 7, 64, 5000)
MATRIX_SIZES = ((3, 5, 7), (1, 300, 2), (17, 64, 130), (2, 0, 3), (0, 4, 5))
ELEMENTS = [name for name, contract in CONTRACTS.items() if contract.layout == "elements"]
ROWS = [name for name, contract in CONTRACTS.items() if contract.layout == "rows"]
EXAMPLES = [name for name, contract in CONTRACTS.items() if contract.layout == "examples"]


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements(name: str) -> None:
    contract = CONTRACTS[name]
    model = InferenceSession().load(graph_of_variants(contract, contract.dtypes, [["n"]] * contract.operands))
    samples = {dtype: operands_of(contract, dtype, BLOCK_AND_MORE) for dtype in contract.dtypes}
    size = min(len(arrays[-1]) for arrays in samples.values())
    full = _outputs(model, [array[:size] for arrays in samples.values() for array in arrays])
    results = iter(full)
    for dtype, arrays in samples.items():
        cut = [array[:size] for array in arrays]
        for variant, exact in zip(contract.variants, references(contract, dtype, cut), strict=True):
            check_ulp(contract, variant, next(results), exact, cut)
    for length in LENGTHS:
        short = _outputs(model, [array[:length] for arrays in samples.values() for array in arrays])
        for number, (some, all_of_it) in enumerate(zip(short, full, strict=True)):
            assert_same_bits(some, all_of_it[:length], f"output {number} of {length} elements")


def _outputs(model: Any, arrays: Sequence[Array]) -> list[Array]:
    return [buffer.to_numpy() for buffer in model.execute(*arrays)]


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    contract = CONTRACTS[name]
    model = InferenceSession().load(graph_of_variants(contract, contract.dtypes, [["rows", "n"]]))
    for length in ROW_LENGTHS:
        operands = [row_operand(dtype, length) for dtype in contract.dtypes]
        rows = min(len(operand) for operand in operands)
        operands = [operand[:rows] for operand in operands]
        results = iter(_outputs(model, operands))
        for dtype, operand in zip(contract.dtypes, operands, strict=True):
            for variant, exact in zip(contract.variants, references(contract, dtype, [operand]), strict=True):
                check_result(contract, variant, next(results), exact, [operand])


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    contract = CONTRACTS[name]
    calls = calls_of(contract, contract.dtypes)
    model = InferenceSession().load(graph_of_calls(contract, calls))
    results = iter(_outputs(model, [array for _, example in calls for array in example.operands]))
    for dtype, example in calls:
        with np.errstate(all="ignore"):
            exact = contract.reference(*wide_operands(dtype, example.operands), **example.parameters)
        for part in exact if isinstance(exact, tuple | list) else [exact]:
            got = next(results)
            assert got.shape == part.shape, f"ops.{name}({dict(example.parameters)})"
            check_result(contract, example.parameters, got, np.asarray(part), example.operands)
    assert not list(results)


def test_matmul() -> None:
    contract = CONTRACTS["matmul"]
    model = InferenceSession().load(graph_of_variants(contract, contract.dtypes, [["m", "k"], ["k", "n"]]))
    for m, k, n in MATRIX_SIZES:
        generator = np.random.default_rng(m * k * n)
        pairs = [[_matrix(generator, dtype, shape) for shape in ((m, k), (k, n))] for dtype in contract.dtypes]
        results = _outputs(model, [array for pair in pairs for array in pair])
        for dtype, pair, got in zip(contract.dtypes, pairs, results, strict=True):
            (exact,) = references(contract, dtype, pair)
            check_result(contract, {}, got, exact if exact.size else exact.astype(np.float64), pair)


def _matrix(generator: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    numbers = generator.standard_normal(shape) * 3
    return (numbers if dtype.is_float else np.rint(numbers).astype(np.int64)).astype(dtype.to_numpy())


@pytest.mark.parametrize("name", [*ELEMENTS, *ROWS])
def test_interpreted_equals_compiled(name: str) -> None:
    contract = CONTRACTS[name]
    dtypes = contract.dtypes[:1] if DType.float32 in contract.dtypes else contract.dtypes[:2]
    shape = ["n"] if contract.layout == "elements" else ["rows", "n"]
    graph = graph_of_variants(contract, dtypes, [shape] * contract.operands)
    if contract.layout == "elements":
        inputs = [array[:300] for dtype in dtypes for array in operands_of(contract, dtype, BLOCK_AND_MORE)]
    else:
        inputs = [row_operand(dtype, 70) for dtype in dtypes]
    check_graph_both_ways(graph, inputs)


@pytest.mark.parametrize("name", EXAMPLES)
def test_interpreted_equals_compiled_of_examples(name: str) -> None:
    contract = CONTRACTS[name]
    calls = calls_of(contract, contract.dtypes[:1])
    inputs = [array for _, example in calls for array in example.operands]
    check_graph_both_ways(graph_of_calls(contract, calls), inputs)
