"""Maps behind a product of matrices are computed in its kernel: the same bits as through memory, and fewer bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from differential import Array, assert_same_bits
from graphs_both_ways import check_graph_both_ways, unfused

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.dialects.tile import KernelOp
from halfulp.compiler.pipeline import lower
from halfulp.ops.samples import moderate
from halfulp.runtime import InferenceSession

Body = Callable[..., TensorValue | list[TensorValue]]
SHAPES: dict[str, list[int | str]] = {
    "x": ["m", "k"],
    "w": ["k", "n"],
    "bias": ["n"],
    "other": ["m", "n"],
    "row": ["m", 1],
    "turned": ["n", "m"],
}

BODIES: dict[str, tuple[Body, int]] = {
    "bias and activation": (lambda x, w, bias, *_: ops.silu(x @ w + bias), 1),
    "residual": (lambda x, w, bias, other, *_: other - x @ w, 1),
    "a map beside it joins": (lambda x, w, bias, other, *_: ops.relu(x @ w) * ops.exp(-ops.abs(other)), 1),
    "a value for each row": (lambda x, w, bias, other, row, turned: (x @ w) * row, 1),
    "a transposed operand": (lambda x, w, bias, other, row, turned: x @ w + turned.T, 1),
    "a scalar": (lambda x, w, *_: (x @ w) * 0.3 + 1.7, 1),
    "to another type": (lambda x, w, *_: ops.cast(x @ w, DType.float64) * 0.3, 1),
    "a slice of an operand": (lambda x, w, bias, *_: (x @ w) * bias[::-1], 3),
    "the product is wanted, too": (lambda x, w, bias, *_: [(y := x @ w), y + bias], 1),
    "two products": (lambda x, w, bias, other, *_: x @ w + x @ (w * 0.5), 3),
    "a chain of products": (lambda x, w, bias, other, *_: ops.relu(x @ w).T @ ops.relu(x), 4),
    "a sum behind it": (lambda x, w, bias, *_: ops.sum(ops.relu(x @ w + bias)), 2),
}
"""What is computed, and by how many kernels: a product of an unknown number of rows counts as one, a slice with a step
is a copy and a check of its size, and a product reads what is turned round from a copy."""
CASES = [(name, DType.float32) for name in BODIES] + [("bias and activation", DType.bfloat16)]


def graph_of(body: Body, dtype: DType) -> Graph:
    return Graph("epilogue", body, [TensorType(dtype, shape) for shape in SHAPES.values()])


def numbers(shape: Sequence[int | str], sizes: dict[str, int]) -> list[int]:
    return [sizes[n] if isinstance(n, str) else n for n in shape]


def inputs_of(dtype: DType, sizes: dict[str, int]) -> list[Array]:
    return [moderate(dtype, numbers(shape, sizes), seed) for seed, shape in enumerate(SHAPES.values())]


def kernels_of(graph: Graph) -> list[str]:
    module = graph.module.clone()
    options = CompileOptions()
    lower(module, "tile", options, host_target(options.vector_bits))
    names = [op.sym_name.data for op in module.ops if isinstance(op, KernelOp)]
    return [name for name in names if not name.startswith("matmul_rows")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_same_bits_as_through_memory(name: str, dtype: DType) -> None:
    body, count = BODIES[name]
    fused = graph_of(body, dtype)
    apart = unfused(fused)
    assert len(kernels_of(fused)) == count
    assert not [kernel for kernel in kernels_of(apart) if kernel.startswith("matmul_")]
    model = InferenceSession().load(apart)
    for sizes in ({"m": 3, "k": 5, "n": 7}, {"m": 40, "k": 33, "n": 70}, {"m": 1, "k": 0, "n": 9}):
        inputs = inputs_of(dtype, sizes)
        together = check_graph_both_ways(fused, inputs)
        for number, (actual, wanted) in enumerate(zip(together, model.execute(*inputs), strict=True)):
            assert_same_bits(actual, wanted.to_numpy(), f"output {number} of {sizes}")


@pytest.mark.parametrize("bits", [128, 256])
def test_narrow_vectors(bits: int) -> None:
    graph = graph_of(BODIES["a transposed operand"][0], DType.float32)
    inputs = inputs_of(DType.float32, {"m": 19, "k": 33, "n": 70})
    check_graph_both_ways(graph, inputs, CompileOptions(vector_bits=bits))


def test_batches() -> None:
    shapes: list[list[int | str]] = [["b", 3, "m", 8], [3, 8, "n"], ["b", 3, "m", "n"], [3, 1, 1]]

    def body(x: TensorValue, w: TensorValue, other: TensorValue, scale: TensorValue) -> TensorValue:
        return ops.gelu((x @ w) * scale) + other

    graph = Graph("batches", body, [TensorType(DType.float32, shape) for shape in shapes])
    assert len(kernels_of(graph)) == 1
    sizes = {"b": 2, "m": 18, "n": 33}
    arrays = [moderate(DType.float32, numbers(shape, sizes), seed) for seed, shape in enumerate(shapes)]
    check_graph_both_ways(graph, arrays)
