"""Which ops make the difference between two modes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, GraphError, NotFoundError, TensorType, TensorValue
from halfulp.compiler.op_numerics import numbered_ops
from halfulp.compiler.passes.set_op_numerics import SetOpNumericsPass
from halfulp.runtime.debug import bisect_flags
from halfulp.runtime.debug.bisect import smallest_set
from halfulp.runtime.debug.running import run_once

F32, BF16 = DType.float32, DType.bfloat16
OPS = 60


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")


def chain(planted: dict[int, Callable[[TensorValue, TensorValue], TensorValue]]) -> Graph:
    """60 ops that cannot contract, but for what is planted in the place of one of them (which counts as two)."""

    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        value, number = x, 0
        while number < OPS:
            if number in planted:
                value = planted[number](value, y)
                number += 2
                continue
            steps = (lambda v: ops.add(v, y), ops.negate, lambda v: ops.maximum(v, x), ops.abs)
            value = steps[number % 4](value)
            number += 1
        return value

    return Graph("chain", forward, [TensorType(F32, ["n"])] * 2)


def fused(value: TensorValue, y: TensorValue) -> TensorValue:
    return ops.add(ops.mul(value, y), y)  # the planted line


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def test_one_planted_contraction_of_sixty_ops_is_named_alone() -> None:
    graph = chain({22: fused})
    assert sum(1 for _ in numbered_ops(graph.module)) == OPS
    found = bisect_flags(graph)
    (site,) = found.sites
    assert (site.number, site.op) == (23, "add")
    assert site.location == f"{__file__}:{line_of('# the planted line')}"
    assert site.source == "return ops.add(ops.mul(value, y), y)  # the planted line"
    assert site.effect == f"it fuses with its operand 0, the mul of {site.location}: one rounding instead of two"
    assert 0 < site.alone == found.differing < found.elements == 4096
    assert not found.interacting
    assert str(found).splitlines()[1] == f"fast against on: {site.alone} of 4096 elements differ; 1 op causes it"


def test_without_contraction_it_says_so() -> None:
    found = bisect_flags(chain({}))
    assert (found.sites, found.differing, found.interacting) == ((), 0, False)
    assert str(found).splitlines()[1:] == ["fast against on: no bit differs, so no op makes a difference"]


def test_two_interacting_contractions_are_both_named() -> None:
    found = bisect_flags(chain({20: fused, 23: fused}))
    assert [site.number for site in found.sites] == [21, 24]
    assert found.interacting
    assert "They interact: some values come about only when several of them change together." in str(found)


def test_neither_of_two_changes_a_bit_alone() -> None:
    """Two roundings of bf16 one behind the other: the second undoes what leaving out the first one gains."""
    graph = Graph("g", lambda x: ops.sub(ops.add(x, 1.0), 1.0), [TensorType(BF16, ["n"])])
    inputs = [np.full(3, 2.0**-12).astype(BF16.to_numpy())]
    found = bisect_flags(graph, inputs, mode="excess")
    assert [(site.op, site.alone) for site in found.sites] == [("add", 3)]
    assert found.sites[0].effect == "its result is not rounded before the next op"

    twice = Graph("g", lambda x: ops.sub(ops.mul(ops.add(x, 1.0), 1.0), 1.0), [TensorType(BF16, ["n"])])
    both = bisect_flags(twice, inputs, mode="excess")
    assert [(site.op, site.alone) for site in both.sites] == [("add", 0), ("mul", 0)]
    assert both.interacting


def test_independent_sites_do_not_interact() -> None:
    graph = Graph(
        "g",
        lambda a, b: [ops.add(ops.mul(a, b), a), ops.sub(b, ops.mul(a, a))],
        [TensorType(F32, ["n"])] * 2,
    )
    found = bisect_flags(graph)
    assert [site.op for site in found.sites] == ["add", "sub"]
    assert not found.interacting
    assert sum(site.alone for site in found.sites) == found.differing
    assert "They do not interact: each value that differs is explained by one of them alone." in str(found)


def test_same_arguments_same_answer() -> None:
    graph = chain({10: fused, 30: fused, 50: fused})
    assert bisect_flags(graph) == bisect_flags(graph)


def test_fma_of_a_matrix_product_is_an_op_too() -> None:
    types = [TensorType(F32, [8, 300]), TensorType(F32, [300, 8])]
    found = bisect_flags(Graph("g", lambda a, b: ops.exp(ops.matmul(a, b)), types), mode="off")
    assert [(site.op, site.effect) for site in found.sites] == [("matmul", "fp_contract is off instead of on")]


def test_flags_of_an_op() -> None:
    found = bisect_flags(Graph("g", lambda x: ops.exp(ops.div(x, 3.0)), [TensorType(F32, ["n"])]), mode="arcp")
    assert [(site.op, site.effect) for site in found.sites] == [("div", "its fastmath flags are arcp")]


def test_baseline_may_be_the_richer_mode() -> None:
    found = bisect_flags(chain({22: fused}), mode="on", baseline="fast")
    assert [site.number for site in found.sites] == [23]


def test_contraction_by_llvm_takes_the_product_too() -> None:
    graph = Graph("g", lambda a, b, c: ops.add(ops.mul(a, b), c), [TensorType(F32, ["n"])] * 3)
    found = bisect_flags(graph, mode="llvm")
    assert [site.op for site in found.sites] == ["mul", "add"]
    assert found.interacting


def test_own_flags_of_an_op_stay_what_they_are() -> None:
    graph = Graph("g", lambda a, b, c: ops.add(ops.mul(a, b), c, fastmath="none"), [TensorType(F32, ["n"])] * 3)
    assert bisect_flags(graph).sites == ()


def test_llvm_against_a_contracting_baseline_is_refused() -> None:
    with pytest.raises(GraphError) as error:
        bisect_flags(chain({}), mode="llvm", baseline="fast")
    assert error.value.message == (
        "graph 'chain': ops that we contract and ops that LLVM contracts cannot be mixed, so strategy='llvm' is "
        "bisected against a mode without contraction; choose the baseline 'on' or 'off'"
    )


def test_unknown_mode() -> None:
    with pytest.raises(NotFoundError, match=r"^there is no mode 'fats'; did you mean 'fast'\?$"):
        bisect_flags(chain({}), mode="fats")


def test_json_has_every_field() -> None:
    found = bisect_flags(chain({22: fused}))
    read = json.loads(found.to_json())
    assert read["sites"][0]["number"] == 23
    assert set(read) == set(found.__struct_fields__)


def test_mode_on_every_op_is_the_mode_of_the_graph() -> None:
    """What the bisection rests on, for small floats, flags and contraction at once."""

    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        total = ops.add(ops.mul(a, b), ops.broadcast_to(ops.sum(a), a.shape))
        return [ops.softmax(total), ops.matmul(total, ops.permute(b, [1, 0])), ops.sub(total, ops.mul(b, b))]

    for dtype in (F32, BF16):
        graph = Graph("g", forward, [TensorType(dtype, [6, 70])] * 2)
        inputs = [np.random.default_rng(i).standard_normal((6, 70)).astype(dtype.to_numpy()) for i in range(2)]
        everything = tuple(number for number, _ in numbered_ops(graph.module))
        for contract, bf16 in itertools.product(("off", "fast"), ("round-each", "excess")):
            numerics: dict[str, Any] = {"fp_contract": contract, "bf16": bf16}
            own = SetOpNumericsPass(ops=everything, **numerics)
            changed = graph.rewritten(partial(own.apply, Context()))
            expected = run_once(graph, CompileOptions(fastmath="none", **numerics), inputs, {})
            found = run_once(changed, CompileOptions(fp_contract="on", fastmath="none"), inputs, {})
            assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]


@given(st.sets(st.integers(0, 29), max_size=4), st.integers(1, 30))
def test_smallest_set_of_a_monotone_cause(cause: set[int], count: int) -> None:
    cause = {number for number in cause if number < count} or {0}
    assert set(smallest_set(tuple(range(count)), lambda subset: cause <= set(subset))) == cause


def test_single_element_is_found_where_several_would_do_as_well() -> None:
    def reproduces(subset: tuple[int, ...]) -> bool:
        return {1, 2} <= set(subset) or subset == (7,)

    assert smallest_set(tuple(range(8)), reproduces) == (7,)
