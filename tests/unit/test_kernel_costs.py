"""Costs of kernels against what can be counted by hand."""

from __future__ import annotations

import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, Dim, DType, Graph, TensorType, TensorValue
from halfulp.compiler.kernel_costs import KernelCost, kernel_costs

F32, BF16 = DType.float32, DType.bfloat16
M, N, K = Dim("m"), Dim("n"), Dim("k")


def costs(body: object, *types: TensorType, options: CompileOptions | None = None) -> list[KernelCost]:
    return kernel_costs(Graph("costs", body, types), options)  # type: ignore[arg-type]


def test_a_chain_of_maps() -> None:
    (cost,) = costs(lambda x, y: (x * y + 1.0) / 3.0, TensorType(F32, [M, N]), TensorType(F32, [M, N]))
    assert cost.read_bytes == 8 * M * N + 8  # the two constants
    assert cost.written_bytes == 4 * M * N
    assert cost.flops == cost.roundings == 3 * M * N
    assert [op.name for op in cost.ops if op.name != "broadcast_to"] == ["mul", "add", "div"]
    assert [use.name for use in cost.reads] == ["x", "y", "constant", "constant"]


def test_contraction_saves_a_rounding() -> None:
    types = [TensorType(F32, [N])] * 3
    (cost,) = costs(lambda x, y, z: x * y + z, *types, options=CompileOptions(fp_contract="fast"))
    assert (cost.flops, cost.roundings) == (2 * N, N)
    (note,) = cost.ops
    assert note.name == "fma"
    assert note.number == 1  # the sum, as it was built
    assert note.location is not None


def test_small_floats_round_once_more() -> None:
    (cost,) = costs(lambda x: x + x, TensorType(BF16, [N]))
    assert (cost.flops, cost.roundings) == (N, 2 * N)  # the sum in f32, then to bf16
    (cost,) = costs(lambda x: ops.cast(x, BF16), TensorType(F32, [N]))
    assert cost.flops == 0
    assert cost.roundings == N


def test_reductions() -> None:
    (cost,) = costs(lambda x: ops.sum(x), TensorType(F32, [M, N]))
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == (M * N, 4 * M * N, 4 * M)
    (cost,) = costs(lambda x: ops.sum(x, axis=0), TensorType(F32, [M, N]))
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == (M * N, 4 * M * N, 4 * N)
    (cost,) = costs(lambda x: ops.max(x), TensorType(F32, [M, N]))
    assert cost.flops == 0


def test_a_product_and_what_is_behind_it() -> None:
    types = [TensorType(F32, [M, K]), TensorType(F32, [K, N]), TensorType(F32, [N])]
    (cost,) = costs(lambda x, w, b: x @ w + b, *types)
    assert cost.flops == 2 * M * N * K + M * N
    assert cost.roundings == M * N * K + M * N
    assert cost.read_bytes == 4 * (M * K + K * N + N)
    assert cost.written_bytes == 4 * M * N


def test_what_an_op_does_not_state_is_unknown() -> None:
    (cost,) = costs(lambda x: list(ops.top_k(x, 3)), TensorType(F32, [M, N]))
    assert cost.flops is cost.roundings is None
    assert cost.written_bytes == 36 * M


def test_branches_and_loops_have_a_depth() -> None:
    def body(x: TensorValue) -> TensorValue:
        (y,) = ops.while_loop([x], lambda v: ops.max(v.reshape([12])).reshape([]) < 9.0, lambda v: [v * 2.0])
        return y

    found = costs(body, TensorType(F32, [3, 4]))
    assert {cost.depth for cost in found} == {1}
    assert ["mul"] in [[op.name for op in cost.ops if op.name != "broadcast_to"] for cost in found]


def test_counting_changes_no_graph() -> None:
    graph = Graph("costs", lambda x: x + x, [TensorType(F32, [N])])
    before = str(graph)
    kernel_costs(graph)
    assert str(graph) == before


@pytest.mark.parametrize("name", ["exp", "tanh", "gelu"])
def test_elementary_functions_count_their_steps(name: str) -> None:
    (cost,) = costs(lambda x: getattr(ops, name)(x), TensorType(F32, [N]))
    assert cost.flops is not None
    assert cost.flops.evaluate({"n": 1}) > 10
