"""Looking changes nothing: another output, or a kernel boundary anywhere, leaves every other bit as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import UnitAttr

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.compiler.dialects.graph import ApplyOp
from halfulp.compiler.passes.fuse_ops import BOUNDARY
from halfulp.runtime import CPU, InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
CPU_0 = DeviceRef.CPU()
ROWS, COLUMNS = 3, 70
NUMPY = {
    DType.float32: np.float32,
    DType.float64: np.float64,
    DType.float16: np.float16,
    DType.bfloat16: ml_dtypes.bfloat16,
}
INPUTS = 3

Step = Callable[[TensorValue, TensorValue, TensorValue], TensorValue]
STEPS: dict[str, Step] = {
    "mul": lambda a, b, c: ops.mul(a, b),
    "add": lambda a, b, c: ops.add(a, b),
    "sub": lambda a, b, c: ops.sub(a, b),
    "product_and_sum": lambda a, b, c: ops.add(ops.mul(a, b), c),
    "two_products": lambda a, b, c: ops.sub(ops.mul(a, b), ops.mul(b, c)),
    "div": lambda a, b, c: ops.div(a, b),
    "fma": lambda a, b, c: ops.fma(a, b, c),
    "negate": lambda a, b, c: ops.negate(a),
    "sqrt": lambda a, b, c: ops.sqrt(ops.abs(a)),
    "exp": lambda a, b, c: ops.exp(ops.negate(ops.abs(a))),
    "maximum": lambda a, b, c: ops.maximum(a, b),
    "where": lambda a, b, c: ops.where(ops.less(a, b), b, c),
    "sum": lambda a, b, c: ops.sum(a),
    "sum_of_columns": lambda a, b, c: ops.sum(a, axis=0),
    "mean": lambda a, b, c: ops.mean(ops.mul(a, b)),
    "softmax": lambda a, b, c: ops.softmax(a),
    "through_f32": lambda a, b, c: ops.cast(ops.mul(ops.cast(a, DType.float32), 0.7), a.dtype),
}


@dataclass(frozen=True)
class Program:
    """Steps on earlier values: (name, three places among the values)."""

    dtype: DType
    steps: tuple[tuple[str, int, int, int], ...]
    options: CompileOptions

    def graph(self, outputs: Sequence[int]) -> Graph:
        """The program as a graph whose outputs are these values (places counted from the last one)."""
        tensor = TensorType(self.dtype, ["rows", COLUMNS], CPU_0)
        with Graph("program", input_types=[tensor] * INPUTS) as graph:
            values = list(graph.inputs)
            for name, *places in self.steps:
                # a step works on values of full shape too: what has size 1 along an axis is broadcast
                result = STEPS[name](*(values[place % len(values)] for place in places))
                values.append(ops.broadcast_to(result, graph.inputs[0].shape))
            graph.output(*(values[-1 - place % len(values)] for place in outputs))
        return graph

    def run(self, graph: Graph) -> list[bytes]:
        rng = np.random.default_rng(len(self.steps))
        inputs = [rng.standard_normal((ROWS, COLUMNS)).astype(NUMPY[self.dtype]) for _ in range(INPUTS)]
        model = InferenceSession(devices=[CPU()]).load(graph, self.options)
        return [canonical(y.to_numpy()) for y in model.execute(*inputs)]


def canonical(array: Array) -> bytes:
    """The bits, all NaN being one."""
    return np.where(array != array, np.array(np.nan, array.dtype), array).tobytes()


# shrinking compiles hundreds of programs, and a failing one is short enough to read as it is
quick = settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
places = st.integers(0, 20)
steps = st.tuples(st.sampled_from(sorted(STEPS)), places, places, places)


@st.composite
def programs(draw: st.DrawFn, /, **options: Any) -> Program:
    dtype = draw(st.sampled_from(sorted(NUMPY, key=str)))
    chosen = CompileOptions(bf16=draw(st.sampled_from(["round-each", "excess"])), **options)
    return Program(dtype, tuple(draw(st.lists(steps, min_size=2, max_size=7))), chosen)


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
@quick
@given(data=st.data())
def test_outputs_and_boundaries(mode: Any, data: st.DataObject) -> None:
    program = data.draw(programs(fp_contract=mode))
    wanted = program.run(program.graph([0]))[0]

    outputs = [0, *data.draw(st.lists(places, min_size=1, max_size=4), label="further outputs")]
    observed = program.run(program.graph(outputs))
    assert observed[0] == wanted, "another output changed this one"

    graph = program.graph(outputs)
    applied = [op for op in graph._op.walk() if isinstance(op, ApplyOp)]
    for place in data.draw(st.lists(places, min_size=1, max_size=3), label="boundaries"):
        if applied:
            applied[place % len(applied)].attributes[BOUNDARY] = UnitAttr()
    assert program.run(graph) == observed, "a kernel boundary changed an output"


@quick
@given(data=st.data())
def test_on_equals_op_by_op_execution(data: st.DataObject) -> None:
    """Under "on", what an op computes does not depend on its neighbours: every op may have a kernel of its own."""
    program = data.draw(programs(fp_contract="on"))
    whole = program.run(program.graph([0]))
    graph = program.graph([0])
    for op in graph._op.walk():
        if isinstance(op, ApplyOp):
            op.attributes[BOUNDARY] = UnitAttr()
    assert program.run(graph) == whole
