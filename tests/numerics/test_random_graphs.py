"""Random graphs of more than twenty ops: fused, unfused and interpreted, they give the same bits.

Every op is within its bound: it is held to the reference of its contract on the very operands that it got, so
errors do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from differential import assert_same_bits
from effort import examples
from graphs_both_ways import check_graph_both_ways, unfused
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from op_bounds import check_result, wide_operands
from op_samples import Array

from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.ops.contract import CONTRACTS
from halfulp.ops.samples import moderate
from halfulp.runtime import InferenceSession

INPUTS = 3
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """A call of ``ops.<name>`` on earlier values of one shape, with parameters that may depend on that shape."""

    name: str
    operands: int
    parameters: Callable[[Sequence[Any]], Parameters] = lambda shape: {}
    transposed: int = -1
    """The operand that has the axes of the first one the other way round."""


def _plain(operands: int, names: str) -> list[Step]:
    return [Step(name, operands) for name in names.split()]


FLOAT_STEPS = [
    *_plain(1, "negate abs sqrt exp log tanh sin erf rsqrt floor relu sigmoid silu"),
    *_plain(2, "add sub mul div maximum minimum"),
    *_plain(3, "fma"),
    *_plain(1, "softmax logsoftmax"),
    *(Step(name, 1, lambda shape: {"axis": -1}) for name in ("sum", "mean", "max", "min", "var")),
    Step("cumsum", 1, lambda shape: {"axis": 0, "exclusive": True}),
]
INTEGER_STEPS = [
    *_plain(1, "negate abs relu bitwise_not"),
    *_plain(2, "add sub mul floor_div mod maximum minimum bitwise_and bitwise_xor shift_left shift_right"),
    *(Step(name, 1, lambda shape: {"axis": -1}) for name in ("sum", "prod", "max", "min")),
]
SHAPE_STEPS = [
    Step("matmul", 2, transposed=1),
    Step("transpose", 1, lambda shape: {"first": 0, "second": 1}),
    Step("concat", 2, lambda shape: {"axis": 0}),
    Step("flatten", 1, lambda shape: {"start_dim": 0, "end_dim": 1}),
    Step("slice_tensor", 1, lambda shape: {"indices": (slice(None, None, -1),)}),
]


@dataclass
class Trace:
    """A graph as it is built: its values, and which op made which from which."""

    values: list[TensorValue]
    made: list[tuple[Step, Parameters, tuple[int, ...]]] = field(default_factory=list)

    def add(self, step: Step, places: Sequence[int]) -> None:
        """One more op, if there are operands that fit."""
        chosen = self._operands(step, places)
        if chosen is None:
            return
        contract, operands = CONTRACTS[step.name], [self.values[place] for place in chosen]
        parameters = step.parameters(operands[0].shape)
        result = contract.build(*[operands] if contract.takes_list else operands, **parameters)
        if result.rank == 1:
            result = result.reshape([1, *result.shape])
        self.values.append(result)
        self.made.append((step, parameters, chosen))

    def _operands(self, step: Step, places: Sequence[int]) -> tuple[int, ...] | None:
        first = places[0] % len(self.values)
        chosen = [first]
        for number in range(1, step.operands):
            shape = self.values[first].shape
            wanted = shape[::-1] if number == step.transposed else shape
            fitting = [place for place, value in enumerate(self.values) if value.shape == wanted]
            if not fitting:
                return None
            chosen.append(fitting[places[number] % len(fitting)])
        return tuple(chosen)


@dataclass(frozen=True)
class Program:
    dtype: DType
    steps: tuple[tuple[Step, tuple[int, int, int]], ...]
    fp_contract: Any

    @property
    def options(self) -> CompileOptions:
        return CompileOptions(fp_contract=self.fp_contract)

    def build(self, outputs: Sequence[int] | None) -> tuple[Graph, Trace]:
        """The graph with these values as outputs, or all that ops make; and how it was made."""
        shapes: list[list[str]] = [["rows", "columns"], ["rows", "columns"], ["columns", "rows"]]
        with Graph("random", input_types=[TensorType(self.dtype, shape) for shape in shapes]) as graph:
            trace = Trace(list(graph.inputs))
            for step, places in self.steps:
                trace.add(step, places)
            made = trace.values[INPUTS:]
            graph.output(*made if outputs is None else [made[place % len(made)] for place in outputs])
        return graph, trace

    def inputs(self, rows: int, columns: int) -> list[Array]:
        shapes = [(rows, columns), (rows, columns), (columns, rows)]
        return [moderate(self.dtype, shape, seed) for seed, shape in enumerate(shapes)]


places = st.integers(0, 100)
sizes = st.sampled_from([(3, 70), (5, 1), (1, 9)])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    dtype = draw(st.sampled_from([DType.float32, DType.float32, DType.bfloat16, DType.float64, DType.int32]))
    usual = [
        step for step in (FLOAT_STEPS if dtype.is_float else INTEGER_STEPS) if dtype in CONTRACTS[step.name].dtypes
    ]
    # what changes the shape is one step in six, or values of one shape would be rare
    kinds = st.one_of(*[st.sampled_from(usual)] * 5, st.sampled_from(SHAPE_STEPS))
    steps = draw(st.lists(st.tuples(kinds, st.tuples(places, places, places)), min_size=24, max_size=32))
    return Program(dtype, tuple(steps), draw(st.sampled_from(["off", "on"])))


# two graphs of dozens of ops take seconds to compile; shrinking would compile hundreds, and a failing one names the op
@settings(max_examples=examples(4), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(program=programs(), outputs=st.lists(places, min_size=1, max_size=3), size=sizes)
def test_fused_unfused_and_interpreted(program: Program, outputs: list[int], size: tuple[int, int]) -> None:
    inputs = program.inputs(*size)
    fused, _ = program.build(outputs)
    results = check_graph_both_ways(fused, inputs, program.options)
    everything, trace = program.build(None)
    model = InferenceSession().load(unfused(everything), program.options)
    values = [buffer.to_numpy() for buffer in model.execute(*inputs)]
    for number, place in enumerate(outputs):
        assert_same_bits(results[number], values[place % len(values)], f"output {number}, fused")
    check_bounds(program.dtype, trace, [*inputs, *values])


def check_bounds(dtype: DType, trace: Trace, values: Sequence[Array]) -> None:
    """Every value is within the bound of its op, given its operands."""
    for number, (step, parameters, chosen) in enumerate(trace.made):
        contract, got = CONTRACTS[step.name], values[INPUTS + number]
        operands = [values[place] for place in chosen]
        given = {} if contract.layout == "rows" else parameters  # such references always run along the last axis
        with np.errstate(all="ignore"):
            exact = np.asarray(contract.reference(*wide_operands(dtype, operands), **given))
        check_result(contract, given, got, exact.reshape(got.shape), operands)


def test_a_wrong_value_is_noticed() -> None:
    program = Program(DType.float32, ((Step("add", 2), (0, 0, 0)),), "on")
    _, trace = program.build(None)
    inputs = program.inputs(3, 70)
    check_bounds(program.dtype, trace, [*inputs, inputs[0] + inputs[0]])
    with pytest.raises(AssertionError, match=r"ops\.add"):
        check_bounds(program.dtype, trace, [*inputs, inputs[0] + inputs[1]])
