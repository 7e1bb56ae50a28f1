"""Branches and loops: what they compute, print and need."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    CompileOptions,
    Dim,
    DType,
    Graph,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.runtime import InferenceSession
from halfulp.runtime.errors import ExecutionError

F32, BF16, I64, BOOL = (DType(n) for n in ("float32", "bfloat16", "int64", "bool"))
Array = np.ndarray[Any, np.dtype[Any]]


def run(forward: Callable[..., Any], types: Sequence[TensorType], *inputs: Any, **load: Any) -> list[Array]:
    """What a graph computes; numbers among the inputs become scalars of the input's type."""
    model = InferenceSession().load(Graph("g", forward, types), **load)
    arrays = [np.asarray(x, t.dtype.to_numpy()) for x, t in zip(inputs, types, strict=True)]
    return [buffer.to_numpy() for buffer in model.execute(*arrays)]


def counter(start: int = 0) -> TensorValue:
    return ops.constant(start, I64)


VECTOR, FLAG, COUNT = TensorType(F32, ["n"]), TensorType(BOOL, []), TensorType(I64, [])
X = np.array([1.5, -2.0, 3.25], np.float32)


# -- what they compute


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_gives_constants_captured_values_weights_and_inputs(flag: bool) -> None:
    def forward(x: TensorValue, p: TensorValue) -> list[TensorValue]:
        doubled = x + x
        weight = Weight("w", F32, [2])
        types = [TensorType(F32, []), x.type, x.type, weight.type]
        return ops.cond(
            p,
            types,
            lambda: (ops.constant(7.0, F32), doubled, x, weight * 2),
            lambda: [0.5, x, doubled, weight],
        )

    weights = {"w": np.array([10, 20], np.float32)}
    results = run(forward, [VECTOR, FLAG], X, flag, weights_registry=weights)
    wanted = [7.0, 2 * X, X, [20, 40]] if flag else [0.5, X, 2 * X, [10, 20]]
    for result, value in zip(results, wanted, strict=True):
        assert np.array_equal(result, np.asarray(value, np.float32))


def test_results_go_on_into_fused_kernels_and_may_be_outputs_twice() -> None:
    def forward(x: TensorValue, p: TensorValue) -> list[TensorValue]:
        (y,) = ops.cond(p, [x.type], lambda: ops.exp(x), lambda: x)
        z = ops.softmax(y * 2 + x)
        return [y, z, y, x]

    for flag in (True, False):
        y, z, again, x = run(forward, [VECTOR, FLAG], X, flag)
        wanted = np.exp(X) if flag else X
        assert np.allclose(y, wanted)
        shifted = np.exp(wanted * 2 + X - np.max(wanted * 2 + X))
        assert np.allclose(z, shifted / shifted.sum())
        assert np.array_equal(again, y)
        assert np.array_equal(x, X)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_loop_of_no_round_gives_the_initial_values(rounds: int) -> None:
    def forward(x: TensorValue, n: TensorValue) -> list[TensorValue]:
        return ops.while_loop([counter(), x, x], lambda i, *_: i < n, lambda i, y, z: [i + 1, y + y, z - x])

    i, y, z = run(forward, [VECTOR, COUNT], X, rounds)
    assert i == rounds
    assert np.array_equal(y, X * 2**rounds)
    assert np.array_equal(z, X * (1 - rounds))


def test_carried_values_change_places() -> None:
    """A permutation, of which none may be overwritten before it is read; one stays as it is."""

    def forward(a: TensorValue, b: TensorValue, c: TensorValue, d: TensorValue) -> list[TensorValue]:
        initial = [a, b, c, d, counter()]
        return ops.while_loop(initial, lambda *v: v[-1] < 4, lambda a, b, c, d, i: [b, c, a, d, i + 1])

    a, b, c, d, _ = run(forward, [VECTOR] * 4, *[X + k for k in range(4)])
    assert [value[0] - X[0] for value in (a, b, c, d)] == [1, 2, 0, 3]


def test_carried_values_change_places_under_other_shapes() -> None:
    """A reshape names the same memory, a transpose reads it elsewhere; both read what the round began with."""

    def body(a: TensorValue, b: TensorValue, i: TensorValue) -> list[TensorValue]:
        return [b.reshape((2, 3)), ops.permute(a, [1, 0]).reshape((6,)), i + 1]

    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        return ops.while_loop([a, b, counter()], lambda a, b, i: i < 3, body)[:2]

    a, b = np.arange(6.0).reshape(2, 3), -np.arange(6.0)
    results = run(forward, [TensorType(F32, [2, 3]), TensorType(F32, [6])], a, b)
    for _ in range(3):
        a, b = b.reshape(2, 3), a.T.reshape(6)
    assert np.array_equal(results[0], a)
    assert np.array_equal(results[1], b)


def test_a_carried_value_reshaped_to_itself_and_one_that_is_captured() -> None:
    def forward(x: TensorValue, m: TensorValue) -> list[TensorValue]:
        def body(i: TensorValue, v: TensorValue, w: TensorValue, c: TensorValue) -> list[Any]:
            return [i + 1, ops.reshape(v, v.shape), x * 3, 4.0]

        start = [counter(), x, x, ops.constant(1.0, F32)]
        return ops.while_loop(start, lambda i, *_: i < m, body)[1:]

    assert [r.tolist() for r in run(forward, [VECTOR, COUNT], X, 2)] == [X.tolist(), (3 * X).tolist(), 4.0]
    assert [r.tolist() for r in run(forward, [VECTOR, COUNT], X, 0)] == [X.tolist(), X.tolist(), 1.0]


def test_loops_in_branches_in_loops() -> None:
    def forward(x: TensorValue, n: TensorValue) -> TensorValue:
        def inner(v: TensorValue, i: TensorValue) -> TensorValue:
            """Adds 1, then 2, up to i, to the vector."""
            return ops.while_loop([v, counter(1)], lambda v, k: k <= i, lambda v, k: [v + k.cast(F32), k + 1])[0]

        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            even = ops.equal(i % 2, 0)
            (changed,) = ops.cond(even, [v.type], lambda: inner(v, i), lambda: [v * 2 - x])
            return [i + 1, changed]

        return ops.while_loop([counter(), x], lambda i, v: i < n, body)[1]

    for rounds in (0, 1, 2, 5, 6):
        wanted = X.copy()
        for i in range(rounds):
            wanted = wanted + np.float32(i * (i + 1) // 2) if i % 2 == 0 else wanted * 2 - X
        (result,) = run(forward, [VECTOR, COUNT], X, rounds)
        assert np.array_equal(result, wanted)


def test_an_inner_loop_starts_anew_from_a_value_around_it() -> None:
    """What the inner loop starts with must be whole in every round of the outer one."""

    def forward(x: TensorValue) -> TensorValue:
        start = ops.exp(x)

        def body(i: TensorValue, total: TensorValue) -> list[TensorValue]:
            halved = ops.while_loop([start], lambda v: ops.max(v).reshape(()) > 1, lambda v: [v / 2])[0]
            return [i + 1, total + halved]

        return ops.while_loop([counter(), x - x], lambda i, t: i < 3, body)[1]

    (result,) = run(forward, [VECTOR], X)
    halved = np.exp(X)
    while halved.max() > 1:
        halved = halved / 2
    assert np.allclose(result, 3 * halved, rtol=1e-6)


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_a_predicate_is_one_bool_of_any_rank(shape: list[int]) -> None:
    def forward(p: TensorValue, x: TensorValue) -> list[TensorValue]:
        (y,) = ops.cond(p, [x.type], lambda: x + 1, lambda: x - 1)
        return ops.while_loop([p, y], lambda p, y: p, lambda p, y: [ops.logical_not(p), y * 10])

    for flag, wanted in ((True, (X + 1) * 10), (False, X - 1)):
        last, y = run(forward, [TensorType(BOOL, shape), VECTOR], np.full(shape, flag), X)
        assert not last.any()
        assert np.array_equal(y, wanted)


def test_a_python_bool_and_an_input_decide_as_well() -> None:
    def forward(x: TensorValue) -> list[TensorValue]:
        yes = ops.cond(True, [x.type], lambda: x, lambda: -x)
        no = ops.cond(np.bool_(False), [x.type], lambda: x, lambda: -x)
        return [*yes, *no, *ops.while_loop(x, lambda v: False, lambda v: v + 1)]

    yes, no, never = run(forward, [VECTOR], X)
    assert np.array_equal(yes, X)
    assert np.array_equal(no, -X)
    assert np.array_equal(never, X)


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_every_element_type_is_carried(name: str) -> None:
    tensor = TensorType(DType(name), ["n", 3])
    values = np.arange(6).reshape(2, 3) % 2 if name == "bool" else np.arange(6).reshape(2, 3)

    def forward(x: TensorValue, y: TensorValue) -> list[TensorValue]:
        return ops.while_loop([x, y, counter()], lambda x, y, i: i < 3, lambda x, y, i: [y, x, i + 1])[:2]

    x = values.astype(tensor.dtype.to_numpy())
    first, second = run(forward, [tensor, tensor], x, x[::-1].copy())
    assert first.tobytes() == x[::-1].tobytes()
    assert second.tobytes() == x.tobytes()


@pytest.mark.parametrize("size", [0, 1, 5, 5000])
def test_sizes_with_names_and_empty_values(size: int) -> None:
    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        def body(i: TensorValue, joined: TensorValue) -> list[TensorValue]:
            half = ops.slice_tensor(joined, [slice(0, Dim("n"))])
            return [i + 1, ops.concat([joined[Dim("n") :], half + 1])]

        start = ops.concat([x, y])
        return ops.while_loop([counter(), start], lambda i, _: i < 3, body)[1]

    x, y = np.arange(size, dtype=np.float32), -np.arange(size, dtype=np.float32)
    (result,) = run(forward, [VECTOR, VECTOR], x, y)
    joined = np.concatenate([x, y])
    for _ in range(3):
        joined = np.concatenate([joined[size:], joined[:size] + 1])
    assert np.array_equal(result, joined)


def test_sizes_that_the_data_decides_may_be_used_inside() -> None:
    def forward(x: TensorValue, n: TensorValue) -> TensorValue:
        places = ops.nonzero(x, "count")
        first = places.reshape((Dim("count"),))
        (sums,) = ops.while_loop([first], lambda v: ops.sum(v).reshape(()) < n, lambda v: [v + first + 1])
        return sums * 2

    x = np.array([0, 3, 0, 0, 5, 1], np.float32)
    (result,) = run(forward, [TensorType(F32, ["n"]), COUNT], x, 40)
    value = first = np.flatnonzero(x)
    while value.sum() < 40:
        value = value + first + 1
    assert np.array_equal(result, value * 2)


def test_matmul_reductions_views_and_random_access_inside() -> None:
    def forward(a: TensorValue, b: TensorValue) -> TensorValue:
        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            moved = ops.matmul(v, b) * 0.5
            mean = ops.mean(ops.sum(moved, axis=0), axis=-1)
            return [i + 1, ops.gather(ops.transpose(moved, 0, 1), i.reshape((1,)) % 3, axis=0) + v - mean]

        return ops.while_loop([counter(), a], lambda i, v: i < 4, body)[1]

    generator = np.random.default_rng(3)
    a, b = generator.standard_normal((2, 3, 3)).astype(np.float32)
    (result,) = run(forward, [TensorType(F32, [3, 3])] * 2, a, b)
    for i in range(4):
        moved = a @ b * 0.5
        a = moved.T[i % 3] + a - moved.sum(0).mean()
    assert np.allclose(result, a, rtol=1e-4)


def test_only_the_branch_that_is_taken_runs_its_checks() -> None:
    def forward(x: TensorValue, p: TensorValue) -> list[TensorValue]:
        square = TensorType(F32, [2, 2])
        return ops.cond(p, [square], lambda: x.rebind((2, 2), "must be small"), lambda: ops.constant(np.eye(2), F32))

    types = [TensorType(F32, ["n", "n"]), FLAG]
    large, small = np.ones((3, 3)), np.full((2, 2), 5)
    assert np.array_equal(run(forward, types, large, False)[0], np.eye(2))
    assert np.array_equal(run(forward, types, small, True)[0], small)
    with pytest.raises(ExecutionError, match="must be small"):
        run(forward, types, large, True)


def test_a_check_that_fails_ends_the_loop_around_it() -> None:
    """Nothing that the loop computes changes any more, so its own predicate would never be false."""

    def forward(x: TensorValue, n: TensorValue) -> TensorValue:
        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            return [i + 1, ops.gather(v, (i + n).reshape((1,)), axis=0) + v]

        return ops.while_loop([counter(), x], lambda i, v: i < 1000, body)[1]

    model = InferenceSession().load(Graph("g", forward, [TensorType(F32, [4]), COUNT]))
    with pytest.raises(ExecutionError):
        model.execute(np.ones(4, np.float32), np.array(-2000))


def test_a_graph_with_regions_is_called_by_another() -> None:
    def part(x: TensorValue, n: TensorValue) -> list[TensorValue]:
        scale = Weight("scale", F32, [1])
        (y,) = ops.cond(n > 2, [x.type], lambda: x * scale, lambda: x)
        return ops.while_loop([n, y], lambda n, y: n > 0, lambda n, y: [n - 1, y + x])

    called = Graph("part", part, [TensorType(F32, ["k"]), COUNT])

    def forward(x: TensorValue, p: TensorValue) -> list[TensorValue]:
        tripled = ops.concat([x, x, x])
        (chosen,) = ops.cond(
            p,
            [tripled.type],
            lambda: ops.call(called, tripled, counter(3))[1],
            lambda: ops.call(called, tripled, counter(1))[1],
        )
        return [chosen]

    weights = {"scale": np.array([10], np.float32)}
    for flag, factor in ((True, 13), (False, 2)):
        (result,) = run(forward, [VECTOR, FLAG], X, flag, weights_registry=weights)
        assert np.allclose(result, np.concatenate([X, X, X]) * factor)


# -- printing


def test_prints_come_in_the_order_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue, n: TensorValue) -> TensorValue:
        x.print("before")

        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            i.print("round")
            ops.cond(ops.equal(i % 2, 0), None, lambda: v.print("even"), lambda: None)
            return [i + 1, v * 2]

        def going_on(i: TensorValue, v: TensorValue) -> TensorValue:
            more = i < n
            more.print("more")
            return more

        _, last = ops.while_loop([counter(), x], going_on, body)
        last.print("after")
        x.print("before, again")
        return last

    run(forward, [TensorType(F32, [1]), COUNT], [1.5], 3)
    labels = re.findall(r"^([\w, ]+) = ", capsys.readouterr().out, re.MULTILINE)
    rounds = ["more", "round", "even", "more", "round", "more", "round", "even", "more"]
    assert labels == ["before", *rounds, "after", "before, again"]


def test_a_print_shows_the_value_of_its_round(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            v.print("v")
            return [i + 1, v * 10]

        return ops.while_loop([counter(), x], lambda i, v: i < 3, body)[1]

    run(forward, [TensorType(I64, [2])], [1, 2])
    shown = re.findall(r"v = tensor\(\[\[(\d+), (\d+)\]\]", capsys.readouterr().out)
    assert shown == [("1", "2"), ("10", "20"), ("100", "200")]


# -- rounding


def test_contraction_and_flags_hold_inside() -> None:
    """A product and a sum inside become one fma, and the report names their lines; a region of flags rules inside."""

    def forward(a: TensorValue, b: TensorValue, p: TensorValue) -> list[TensorValue]:
        product = a * b

        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            return [i + 1, v * b + a]

        fused = ops.while_loop([counter(), a], lambda i, v: i < 2, body)[1]
        (captured,) = ops.cond(p, [a.type], lambda: product + a, lambda: product - a)
        (returned,) = ops.cond(p, [a.type], lambda: a * b, lambda: a)
        return [fused, captured, returned + a]

    graph = Graph("g", forward, [VECTOR, VECTOR, FLAG])
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((2, 50)).astype(np.float32)
    exact = a.astype(np.float64), b.astype(np.float64)
    cases: tuple[tuple[Literal["fast", "off"], int], ...] = (("fast", 3), ("off", 0))
    for mode, count in cases:
        model = InferenceSession().load(graph, CompileOptions(fp_contract=mode))
        report = model.numerics_report()
        assert [part.product for part in report] == ["mul"] * count
        assert all(part.location is not None and part.location.filename == __file__ for part in report)
        fused, captured, returned = (r.to_numpy() for r in model.execute(a, b, np.array(True)))
        wanted, product = a, a * b
        for _ in range(2):
            once = (wanted.astype(np.float64) * exact[1] + exact[0]).astype(np.float32)
            wanted = once if mode == "fast" else wanted * b + a
        assert np.array_equal(fused, wanted)
        sums = (exact[0] * exact[1] + exact[0]).astype(np.float32) if mode == "fast" else product + a
        assert np.array_equal(captured, sums)
        assert np.array_equal(returned, product + a), "what a branch returns is rounded"


def test_small_floats_are_rounded_where_they_cross_the_border_of_a_region() -> None:
    def forward(x: TensorValue) -> list[TensorValue]:
        body = lambda i, v: [i + 1, v * 1.01 + x]  # noqa: E731
        return ops.while_loop([counter(), x], lambda i, v: i < 3, body)[1:]

    import ml_dtypes

    x = np.array([1.25, 3.5, -0.75], ml_dtypes.bfloat16)
    graph = Graph("g", forward, [TensorType(BF16, [3])])
    modes: tuple[Literal["round-each", "excess"], ...] = ("round-each", "excess")
    for mode in modes:
        options = CompileOptions(bf16=mode, fp_contract="off")
        (result,) = InferenceSession().load(graph, options).execute(x)
        wanted = x
        for _ in range(3):
            if mode == "excess":
                wide = wanted.astype(np.float32) * np.float32(ml_dtypes.bfloat16(1.01)) + x.astype(np.float32)
                wanted = wide.astype(ml_dtypes.bfloat16)
            else:
                wanted = wanted * ml_dtypes.bfloat16(1.01) + x
        assert result.to_numpy().tobytes() == wanted.tobytes(), mode


# -- memory, caches


def test_the_memory_report_counts_a_value_that_a_loop_needs_as_long_as_the_loop() -> None:
    def forward(x: TensorValue) -> TensorValue:
        wanted = ops.sum(x, axis=0)

        def body(i: TensorValue, v: TensorValue) -> list[TensorValue]:
            return [i + 1, ops.softmax(ops.sum(v, axis=0) + wanted) + v]

        return ops.while_loop([counter(), x + 1], lambda i, v: i < 3, body)[1] * 2

    model = InferenceSession().load(Graph("g", forward, [TensorType(F32, [4, 8])]))
    report = model.memory_report()
    (wanted,) = (use for use in report.buffers if use.shape == (1, 8) and use.writer == "sum" and use.first == 0)
    inside = [use for use in report.buffers if use.shape == (1, 8) and use is not wanted]
    assert inside
    assert all(wanted.first < use.first <= use.last <= wanted.last for use in inside)
    assert report.peak < sum(use.nbytes + 63 for use in report.buffers)


def test_a_model_with_regions_is_saved_cached_and_loaded(tmp_path: Any) -> None:
    def forward(x: TensorValue, n: TensorValue) -> TensorValue:
        return ops.while_loop([counter(), x], lambda i, v: i < n, lambda i, v: [i + 1, v + v])[1]

    session = InferenceSession()
    session.load(Graph("g", forward, [VECTOR, COUNT])).save(tmp_path / "model.bin")
    loaded = session.load_compiled(tmp_path / "model.bin")
    assert np.array_equal(loaded.execute(X, np.array(4))[0].to_numpy(), X * 16)
