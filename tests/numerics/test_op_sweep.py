"""Every op of the library, every element type, many sizes, special values: within the bound that its contract states.

The reference has higher precision. Sizes: none, one, odd, the edge of a vector, more than a block. What a shorter
operand gives must be the same bits as the front of what a longer one gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits
from op_samples import (
    Array,
    distance_in_ulp,
    element_operands,
    epsilon,
    last_bit_is_set,
    refined,
    row_operand,
    smallest,
    widened,
    wrapped,
)
from xdsl.dialects.func import FuncOp

from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.compiler.artifact import BufferRole
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.pipeline import lower
from halfulp.ops.contract import CONTRACTS, CORRECTLY_ROUNDED, Contract
from halfulp.runtime import InferenceSession

BLOCK_AND_MORE = 4500
LENGTHS = (0, 1, 7, 64)
ROW_LENGTHS = (1, 7, 64, 5000)
MATRIX_SIZES = ((3, 5, 7), (1, 300, 2), (17, 64, 130), (2, 0, 3), (0, 4, 5))
ELEMENTS = [name for name, contract in CONTRACTS.items() if contract.layout == "elements"]
ROWS = [name for name, contract in CONTRACTS.items() if contract.layout == "rows"]
TIE = 0.5  # of an ulp


def graph_of(contract: Contract, dtypes: Sequence[DType], shapes: Sequence[Sequence[str]]) -> Graph:
    """All variants on all element types as one graph: operands of shapes in the order of ``dtypes``."""

    def forward(*values: TensorValue) -> list[TensorValue]:
        width = len(shapes)
        groups = [values[i : i + width] for i in range(0, len(values), width)]
        return [contract.build(*group, **variant) for group in groups for variant in contract.variants]

    types = [
        TensorType(DType.bool if index < contract.conditions else dtype, shape)
        for dtype in dtypes
        for index, shape in enumerate(shapes)
    ]
    return Graph(contract.name, forward, types)


def references(contract: Contract, dtype: DType, operands: Sequence[Array]) -> list[Array]:
    wide = [array if array.dtype == bool else widened(array, dtype) for array in operands]
    with np.errstate(all="ignore"):
        results = [np.asarray(contract.reference(*wide, **variant)) for variant in contract.variants]
    if contract.mpmath and dtype is DType.float64:
        return [refined(contract.mpmath, wide, result) for result in results]
    return results


def check_ulp(
    contract: Contract, variant: Mapping[str, Any], got: Array, exact: Array, operands: Sequence[Array]
) -> None:
    """The result is within the contract's bound everywhere; ties are even, zeros have the right sign."""
    dtype = DType.from_numpy(got.dtype)
    where = f"ops.{contract.name}({variant}) on {operands[-1].dtype}"
    if not dtype.is_float:
        wanted = exact.astype(bool) if dtype is DType.bool else wrapped(exact, dtype)
        wrong = got != wanted
    else:
        bound = contract.ulp_for(dtype)
        # a reference of f64 is a longdouble, which has been rounded itself, to 2**-11 ulp of f64
        rounded = exact.dtype == np.longdouble and dtype is DType.float64
        apart = distance_in_ulp(got, exact, dtype)
        wrong = apart > bound + (2.0**-10 if rounded and bound else 0.0)
        if contract.ulp == CORRECTLY_ROUNDED and not rounded:
            wrong |= (apart == TIE) & last_bit_is_set(got, dtype) & np.isfinite(got)
        wrong |= (exact == 0) & (np.signbit(got) != np.signbit(exact))
    if wrong.any():
        at = int(np.argmax(wrong))
        values = ", ".join(repr(operand.ravel()[at]) for operand in operands)
        raise AssertionError(
            f"{where}: {int(wrong.sum())} of {wrong.size} are wrong; of {values} it gives {got.ravel()[at]!r}, "
            f"exact is {exact.ravel()[at]!r}"
        )


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements(name: str) -> None:
    contract = CONTRACTS[name]
    model = InferenceSession().load(graph_of(contract, contract.dtypes, [["n"]] * contract.operands))
    samples = {dtype: _samples(contract, dtype) for dtype in contract.dtypes}
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


def _samples(contract: Contract, dtype: DType) -> list[Array]:
    """Operands that all element types have equally many of."""
    values = element_operands(dtype, contract.operands - contract.conditions, BLOCK_AND_MORE)
    order = np.random.default_rng(len(contract.name)).permutation(len(values[0]))
    size = len(order)
    conditions = [np.arange(size) % 3 == 0] * contract.conditions
    return [*conditions, *(array[order] for array in values)]


def _outputs(model: Any, arrays: Sequence[Array]) -> list[Array]:
    return [buffer.to_numpy() for buffer in model.execute(*arrays)]


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    contract = CONTRACTS[name]
    model = InferenceSession().load(graph_of(contract, contract.dtypes, [["rows", "n"]]))
    for length in ROW_LENGTHS:
        operands = [row_operand(dtype, length) for dtype in contract.dtypes]
        rows = min(len(operand) for operand in operands)
        operands = [operand[:rows] for operand in operands]
        results = iter(_outputs(model, operands))
        for dtype, operand in zip(contract.dtypes, operands, strict=True):
            for variant, exact in zip(contract.variants, references(contract, dtype, [operand]), strict=True):
                check_result(contract, variant, next(results), exact, [operand])


def check_result(
    contract: Contract, variant: Mapping[str, Any], got: Array, exact: Array, operands: Sequence[Array]
) -> None:
    """Within the tolerance of the contract, if it has one, plus what rounding the result costs."""
    dtype = DType.from_numpy(got.dtype)
    if contract.tolerance is None or not dtype.is_float:
        check_ulp(contract, variant, got, exact, operands)
        return
    wide = [widened(array, dtype) for array in operands]
    computed_in = dtype if dtype.bits >= 32 else DType.float32
    with np.errstate(all="ignore"):
        # the relative bounds hold above the subnormals; each step may lose half the smallest of them
        allowed = contract.tolerance(epsilon(computed_in), *wide) + wide[0].shape[-1] * smallest(computed_in)
        if computed_in is not dtype:
            allowed = allowed + np.maximum(epsilon(dtype) / 2 * np.abs(exact), smallest(dtype) / 2)
        error = np.abs(got.astype(np.longdouble) - exact)
    fine = np.where(np.isfinite(exact), error <= allowed, (np.isnan(got) & np.isnan(exact)) | (got == exact))
    assert fine.all(), (
        f"ops.{contract.name} on {operands[0].dtype} {operands[0].shape}: {int((~fine).sum())} of {fine.size} are off, "
        f"first {got[~fine][0]!r}, exact is {exact[~fine][0]!r}"
    )


def test_matmul() -> None:
    contract = CONTRACTS["matmul"]
    model = InferenceSession().load(graph_of(contract, contract.dtypes, [["m", "k"], ["k", "n"]]))
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
    graph = graph_of(contract, dtypes, [shape] * contract.operands)
    options = CompileOptions()
    model = InferenceSession().load(graph, options)
    if contract.layout == "elements":
        inputs = [array[:300] for dtype in dtypes for array in _samples(contract, dtype)]
        dims = {"n": 300}
    else:
        inputs = [row_operand(dtype, 70) for dtype in dtypes]
        dims = {"rows": len(inputs[0]), "n": 70}
    module = graph.module
    lower(module, "tile", options, host_target(options.vector_bits))
    entry = next(op.sym_name.data for op in module.ops if isinstance(op, FuncOp))
    compiled = _outputs(model, inputs)
    constants = [
        np.frombuffer(spec.data or b"", spec.dtype.to_numpy()).copy()
        for spec in model._compiled.buffers
        if spec.role is BufferRole.CONSTANT
    ]
    result = interpret(module, entry, [*inputs, *constants, *map(np.zeros_like, compiled)], dims)
    assert result.failed is None
    for number, (array, wanted) in enumerate(zip(result.arrays[-len(compiled) :], compiled, strict=True)):
        assert array is not None
        assert_same_bits(array, wanted, f"output {number}")
