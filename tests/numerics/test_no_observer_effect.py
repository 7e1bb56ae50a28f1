"""Looking changes nothing: another output, a print or a kernel boundary anywhere leaves every other bit as it was."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from differential import canonical_bits
from effort import examples
from graphs_both_ways import unfused
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import UnitAttr

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType, TensorValue
from halfulp.compiler.dialects.graph import ApplyOp, PrintOp, PrintTextOp
from halfulp.compiler.passes.fuse_ops import BOUNDARY
from halfulp.runtime import CPU, InferenceSession, NanCheckError, read_max_checkpoint

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

    def run(
        self, graph: Graph, style: str = "COMPACT", directory: Path | None = None, nan_check: bool = False
    ) -> list[bytes]:
        rng = np.random.default_rng(len(self.steps))
        inputs = [rng.standard_normal((ROWS, COLUMNS)).astype(NUMPY[self.dtype]) for _ in range(INPUTS)]
        session = InferenceSession(devices=[CPU()])
        session.set_debug_print_options(style, precision=17, output_directory=directory)
        session.debug.nan_check = nan_check
        model = session.load(graph, self.options)
        return [canonical_bits(y.to_numpy()) for y in model.execute(*inputs)]


# shrinking compiles hundreds of programs, and a failing one is short enough to read as it is
quick = settings(max_examples=examples(10), phases=[Phase.explicit, Phase.reuse, Phase.generate])
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


def add_prints(graph: Graph, chosen: Sequence[int]) -> list[str]:
    """Prints values right where they are computed, inputs included; gives the labels in the order of the program.

    Before each stands a line of text.
    """
    block = graph._op.body.block
    values = [*block.args, *(op.outputs[0] for op in block.ops if isinstance(op, ApplyOp))]
    for number in chosen:
        value = values[number % len(values)]
        op = PrintOp(value, f"value {number}")
        if isinstance(value.owner, ApplyOp):
            block.insert_op_after(op, value.owner)
        else:
            first = block.first_op
            assert first is not None
            block.insert_op_before(op, first)
        block.insert_op_before(PrintTextOp("line"), op)
    return [op.text for op in block.ops if isinstance(op, PrintOp)]


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
@quick
@given(data=st.data())
def test_prints(mode: Any, data: st.DataObject) -> None:
    program = data.draw(programs(fp_contract=mode))
    wanted = program.run(program.graph([0]))

    graph = program.graph([0])
    some = st.lists(st.integers(0, 60), min_size=1, max_size=8)
    labels = add_prints(graph, data.draw(st.just(range(60)) | some, label="prints"))
    style = data.draw(st.sampled_from(["COMPACT", "NONE", "BINARY_MAX_CHECKPOINT"]), label="style")
    with contextlib.redirect_stdout(io.StringIO()) as shown, tempfile.TemporaryDirectory() as directory:
        observed = program.run(graph, style, Path(directory))
        files = sorted(read_max_checkpoint(path).name for path in Path(directory).iterdir())
    assert observed == wanted, "a print changed an output"
    text = re.findall(r"^(?:line$|value \d+(?= = tensor\())", shown.getvalue(), re.MULTILINE)
    if style == "COMPACT":
        assert text == [part for label in labels for part in ("line", label)]
    else:
        assert text == ([] if style == "NONE" else ["line"] * len(labels))
    assert files == (sorted(labels) if style == "BINARY_MAX_CHECKPOINT" else [])


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
@settings(quick, max_examples=examples(5))
@given(data=st.data())
def test_nan_check(mode: Any, data: st.DataObject) -> None:
    program = data.draw(programs(fp_contract=mode))
    everything = range(len(program.steps))
    wanted = program.run(program.graph(everything))
    values = [np.frombuffer(bits, NUMPY[program.dtype]).astype(np.float64) for bits in wanted]
    try:
        observed = program.run(program.graph([0]), nan_check=True)
    except NanCheckError:
        return  # an op inside of a step may make what the step then hides
    assert observed == wanted[:1], "a look at the values changed an output"
    assert all(np.isfinite(value).all() for value in values), "a NaN or an infinity went unseen"


@pytest.mark.parametrize("bf16", ["round-each", "excess"])
@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_a_print_shows_what_an_output_would_be(mode: Any, bf16: Any) -> None:
    """Of a product that a sum contracts with, and of a bf16 value that stays f32 between ops."""
    for dtype in (DType.float32, DType.bfloat16):
        program = Program(dtype, (("mul", 0, 1, 2), ("add", 3, 2, 0)), CompileOptions(fp_contract=mode, bf16=bf16))
        product = np.frombuffer(program.run(program.graph([0, 1]))[1], NUMPY[dtype])
        graph = program.graph([0])
        block = graph._op.body.block
        (op,) = (op for op in block.ops if isinstance(op, ApplyOp) and op.callee.data == "mul")
        block.insert_op_after(PrintOp(op.outputs[0], "product"), op)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            observed = program.run(graph, style="FULL")
        assert observed == program.run(program.graph([0])), "a print changed an output"
        (text,) = re.findall(r"^product = tensor<\w+> \[(.*)\]$", shown.getvalue(), re.MULTILINE)
        assert [float(number) for number in text.split(", ")] == product.astype(np.float64).tolist()


@quick
@given(data=st.data())
def test_on_equals_op_by_op_execution(data: st.DataObject) -> None:
    """Under "on", what an op computes does not depend on its neighbours: every op may have a kernel of its own."""
    program = data.draw(programs(fp_contract="on"))
    whole = program.run(program.graph([0]))
    assert program.run(unfused(program.graph([0]))) == whole
