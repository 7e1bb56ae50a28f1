"""No pass leaves a fastmath flag that was not there; the two whose purpose it is are ``set-fastmath-flags`` and, under
``strategy=llvm``, ``contract-fma``."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.fastmath import own_flags
from halfulp.compiler.options import FASTMATH_FLAGS
from halfulp.compiler.passes import PASSES, get_all_passes
from halfulp.compiler.pipeline import STAGES, passes_of


def graph_with(flag: str) -> Graph:
    """Equal and unequal ops with and without ``flag`` side by side, for passes that merge or reassociate."""
    x = TensorType(DType.float32, ["m", 64], DeviceRef.CPU())
    with Graph("g", input_types=[x, x]) as graph:
        a, b = graph.inputs
        flagged = [ops.add(ops.add(ops.mul(a, b, fastmath=f), b, fastmath=f), a, fastmath=f) for f in (flag, "none")]
        mixed = ops.add(ops.add(a, 1.0, fastmath=flag), 2.0, fastmath="none")
        graph.output(*flagged, ops.mul(a, b), ops.exp(mixed), ops.div(mixed, b, fastmath="none"))
    return graph


def flags_in(module: ModuleOp) -> frozenset[str]:
    return frozenset().union(*(own_flags(op) or frozenset() for op in module.walk()))


def unflagged(module: ModuleOp) -> int:
    return sum(own_flags(op) == frozenset() for op in module.walk())


@pytest.mark.parametrize("flag", FASTMATH_FLAGS)
@pytest.mark.parametrize("mode", ["on", "fast"])
def test_no_pass_adds_a_flag(flag: str, mode: str) -> None:
    module = graph_with(flag).module
    options, target = CompileOptions(fp_contract=mode), host_target(None)  # type: ignore[arg-type]
    passes = [each for stage in STAGES[:4] for each in passes_of(stage, options, target)]
    assert {name for name, _ in passes} <= set(PASSES), "passes of xDSL's, such as canonicalize, widen flags"
    for name, arguments in passes:
        before, flags = unflagged(module), flags_in(module)
        get_all_passes()[name]()(**arguments).apply(Context(), module)
        assert flags_in(module) <= flags, name
        assert unflagged(module) or not before, f"{name}: an op without flags must stay one"
