"""Every op of the library as PTX, and the log-probabilities: ptxas accepts it, and no kernel spills.

What it computes is tested in ``tests/emulated``.
"""

from __future__ import annotations

import pytest
from op_graphs import calls_of, graph_of_calls, graph_of_variants

from halfulp.compiler import DeviceRef, Graph
from halfulp.compiler.codegen.ptxas import assemble
from halfulp.compiler.compile_ptx import compile_graph_to_ptx
from halfulp.ops.contract import CONTRACTS
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

GPU = DeviceRef.GPU(0)
SHAPES = {"elements": [["n"]], "rows": [["rows", "n"]], "matrices": [["m", "k"], ["k", "n"]]}


def check_code(graph: Graph, target: str) -> None:
    ptx = compile_graph_to_ptx(graph, target=target).ptx
    _, usage = assemble(ptx, target) if ptx else (b"", [])
    assert [str(kernel) for kernel in usage if kernel.spill_stores or kernel.stack_bytes] == []


@pytest.mark.parametrize("name", CONTRACTS)
def test_ops(name: str) -> None:
    """All element types; of ops that have examples the first and the last one, since examples are many graphs each."""
    contract = CONTRACTS[name]
    if contract.layout == "examples":
        ends = dict.fromkeys([contract.dtypes[0], contract.dtypes[-1]])
        graph = graph_of_calls(contract, calls_of(contract, list(ends)), GPU)
    else:
        shapes = SHAPES[contract.layout]
        count = contract.operands if contract.layout == "elements" else 1
        graph = graph_of_variants(contract, contract.dtypes, shapes * count, GPU)
    check_code(graph, "sm_80")


@pytest.mark.parametrize("levels", [1, 3, 7])
def test_log_probabilities(levels: int) -> None:
    check_code(log_probabilities_ragged_graph(GPU, levels=levels), "sm_90")
