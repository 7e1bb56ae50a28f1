"""Random programs with branches and loops: interpreted and compiled they give the same bits, whatever the vector width,
the number of threads and the fusion; and their values are those of the same program run by numpy.
"""

from __future__ import annotations

import contextlib
import io
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from differential import canonical_bits
from effort import examples
from graphs_both_ways import interpreted_results, unfused
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.compiler.dialects.graph import ApplyOp, PrintOp
from halfulp.runtime import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
F32, I64 = DType.float32, DType.int64
WIDTHS = (128, 256, 512)

quick = settings(max_examples=examples(5), phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
few = settings(quick, max_examples=examples(2))  # each compiles five times
places = st.integers(0, 20)

EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "average": lambda a, b: (a + b) * 0.5,
    "negate": lambda a, b: -a,
}
"""Steps that numpy rounds as we do; on tensors of a graph and on arrays."""

ROUNDED: dict[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "softmax": lambda a, b: ops.softmax(a),
    "sum_of_columns": lambda a, b: ops.sum(a, axis=0) * 0.125 + b,
    "transposed": lambda a, b: ops.transpose(a, 0, 1),
    "reversed": lambda a, b: ops.slice_tensor(b, [slice(None, None, -1)]),
    "product": lambda a, b: ops.tanh(ops.matmul(a, b)),
    "flat": lambda a, b: ops.reshape(ops.reshape(a, [-1]), a.shape),
}
"""Steps on square tensors whose bits only the oracle knows."""

Step = tuple[str, int, int]


@dataclass(frozen=True)
class Region:
    """Steps and, behind them, regions of their own; a loop if ``rounds`` is not None, else a branch.

    A branch is taken if the number of the round around it is even. ``carried`` are places among the values.
    """

    steps: tuple[Step, ...]
    inner: tuple[Region, ...] = ()
    rounds: int | None = None
    carried: tuple[int, ...] = (0, 1)


def regions(names: Sequence[str]) -> st.SearchStrategy[Region]:
    steps = st.lists(st.tuples(st.sampled_from(names), places, places), min_size=1, max_size=3).map(tuple)
    carried = st.lists(places, min_size=1, max_size=3).map(tuple)

    def one(inner: st.SearchStrategy[tuple[Region, ...]]) -> st.SearchStrategy[Region]:
        return st.builds(Region, steps, inner, st.none() | st.integers(0, 3), carried)

    leaf = one(st.just(()))
    return one(st.lists(one(st.lists(leaf, max_size=1).map(tuple)) | leaf, max_size=2).map(tuple))


def build(region: Region, values: list[Any], turn: Any, apply: Callable[[Step, list[Any]], Any], control: Any) -> None:
    """Appends what a region computes to ``values``. ``turn`` is the number of the round around."""
    values += [apply(step, values) for step in region.steps]
    for inner in region.inner:
        start = [values[place % len(values)] for place in inner.carried]
        if inner.rounds is None:
            values += control.branch(inner, list(values), start, turn, apply)
        else:
            values += control.loop(inner, list(values), start, apply)


def taken(values: list[Any], region: Region) -> list[Any]:
    """What a region gives: its last values, in the order of a rotation, so that carried values change places."""
    return [values[-1 - k] for k in range(len(region.carried))]


class InGraph:
    """Branches and loops as ops of a graph."""

    def branch(self, region: Region, around: list[Any], start: list[Any], turn: Any, apply: Any) -> list[Any]:
        def then() -> list[Any]:
            values = [*around]
            build(region, values, turn, apply, self)
            return taken(values, region)

        return ops.cond(ops.equal(turn % 2, 0), [value.type for value in start], then, lambda: start)

    def loop(self, region: Region, around: list[Any], start: list[Any], apply: Any) -> list[Any]:
        def body(turn: TensorValue, *carried: TensorValue) -> list[Any]:
            values = [*around, *carried]
            build(region, values, turn, apply, self)
            return [turn + 1, *taken(values, region)]

        assert region.rounds is not None
        rounds = region.rounds
        return ops.while_loop([ops.constant(0, I64), *start], lambda turn, *_: turn < rounds, body)[1:]


class InPython:
    """The same on arrays."""

    def branch(self, region: Region, around: list[Any], start: list[Any], turn: Any, apply: Any) -> list[Any]:
        if turn % 2:
            return start
        values = [*around]
        build(region, values, turn, apply, self)
        return taken(values, region)

    def loop(self, region: Region, around: list[Any], start: list[Any], apply: Any) -> list[Any]:
        assert region.rounds is not None
        for turn in range(region.rounds):
            values = [*around, *start]
            build(region, values, turn, apply, self)
            start = taken(values, region)
        return start


def graph_of(region: Region, steps: Mapping[str, Callable[..., Any]]) -> Graph:
    """The outputs are the last three values."""

    def forward(x: TensorValue, y: TensorValue, turn: TensorValue) -> list[TensorValue]:
        values = [x, y]
        build(region, values, turn, chosen(steps), InGraph())
        return values[-3:]

    square = TensorType(F32, ["n", "n"])
    return Graph("random", forward, [square, square, TensorType(I64, [])])


def chosen(steps: Mapping[str, Callable[..., Any]]) -> Callable[[Step, list[Any]], Any]:
    return lambda step, values: steps[step[0]](values[step[1] % len(values)], values[step[2] % len(values)])


def compiled(graph: Graph, inputs: Sequence[Array], **options: Any) -> list[bytes]:
    model = InferenceSession().load(graph, CompileOptions(**options))
    return [canonical_bits(buffer.to_numpy()) for buffer in model.execute(*inputs)]


def interpreted(graph: Graph, inputs: Sequence[Array], **options: Any) -> list[bytes]:
    model = InferenceSession().load(graph, CompileOptions(**options))
    return [canonical_bits(array) for array in interpreted_results(graph, model, inputs)]


def inputs_for(size: int, turn: int) -> list[Array]:
    x, y = np.random.default_rng(size).standard_normal((2, size, size)).astype(np.float32)
    return [x, y, np.array(turn)]


@quick
@given(region=regions(sorted(EXACT)), turn=st.integers(0, 1))
def test_values_are_those_of_numpy(region: Region, turn: int) -> None:
    inputs = inputs_for(5, turn)
    values: list[Any] = [inputs[0], inputs[1]]
    with np.errstate(all="ignore"):
        build(region, values, turn, chosen(EXACT), InPython())
    wanted = [canonical_bits(np.asarray(value, np.float32)) for value in values[-3:]]
    assert compiled(graph_of(region, EXACT), inputs, fp_contract="off") == wanted


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
@few
@given(region=regions([*sorted(EXACT), *sorted(ROUNDED)]), turn=st.integers(0, 1), size=st.sampled_from([1, 3, 17]))
def test_interpreted_compiled_and_unfused_give_the_same_bits(mode: Any, region: Region, turn: int, size: int) -> None:
    inputs = inputs_for(size, turn)
    steps = EXACT | ROUNDED
    graph = graph_of(region, steps)
    wanted = interpreted(graph, inputs, fp_contract=mode, vector_bits=WIDTHS[0])
    for bits in WIDTHS:
        assert compiled(graph, inputs, fp_contract=mode, vector_bits=bits) == wanted, f"{bits} bits"
    assert compiled(unfused(graph), inputs, fp_contract=mode) == wanted, "op by op"
    printing = graph_of(region, steps)
    applied = [op for op in printing._op.walk() if isinstance(op, ApplyOp)]
    for op in applied[:: max(len(applied) // 8, 1)]:
        block = op.parent
        assert block is not None
        block.insert_op_after(PrintOp(op.outputs[0], "looked at"), op)
    with contextlib.redirect_stdout(io.StringIO()):
        assert compiled(printing, inputs, fp_contract=mode) == wanted, "printing"


def test_launches_in_loops_are_shared_among_threads() -> None:
    """Large enough for several threads; the bits are those of one."""
    inner = Region((("product", 0, 2), ("average", 3, 4)), (), None, (2, 3))
    loop = Region((("sum_of_columns", 2, 0), ("softmax", 3, 1), ("add", 4, 2)), (inner,), 5, (0, 1))
    graph = graph_of(Region((("add", 0, 1),), (loop,)), EXACT | ROUNDED)
    inputs = inputs_for(200, 0)
    wanted = compiled(graph, inputs, threads=1)
    for threads in (2, 5):
        assert compiled(graph, inputs, threads=threads) == wanted, f"{threads} threads"
