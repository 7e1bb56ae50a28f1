"""What is seen of a call besides its results: failed checks, prints, races; and when a kernel is traced anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from halfulp.compiler import GraphError
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp

Array = npt.NDArray[Any]
F32 = np.float32
X = np.arange(12, dtype=F32)
THREES = pl.BlockSpec((3,), lambda i: i)


@pytest.fixture(params=[True, False], ids=["interpreted", "compiled"])
def interpret(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def shape(*sizes: int, dtype: Any = "float32") -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(sizes, dtype)


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(actual), expected)


# -- checks and observers


def test_blocks_outside_are_errors_where_bounds_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def call(**keywords: Any) -> Any:
        far = pl.BlockSpec((3,), lambda i: i + 2)
        return pl.pallas_call(kernel, shape(12), grid=4, in_specs=[far], out_specs=THREES, **keywords)(X)

    for keywords in ({"interpret": True}, {"debug": True}):
        with pytest.raises(pl.BlockIndexError) as raised:
            call(**keywords)
        assert raised.value.program == (2,)
        assert isinstance(raised.value, IndexError)
        assert str(raised.value) == (
            "kernel 'kernel', program (2,): Out-of-bounds block index (4,) for 'x_ref': its array has shape [12], its "
            "blocks [3], so the block lies outside"
        )
    assert "tile.kernel @kernel" in capsys.readouterr().out
    equal(call(), [*X[6:], *[np.nan] * 6])


def test_dynamic_slices_outside_are_errors_where_bounds_are_checked() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(pl.program_id(0) * 5, 4)]

    def call(**keywords: Any) -> Any:
        spec = pl.BlockSpec((None, 4), lambda i: (i, 0))
        return pl.pallas_call(kernel, shape(3, 4), grid=3, out_specs=spec, **keywords)(X)

    with pytest.raises(pl.BlockIndexError) as raised:
        call(interpret=True)
    assert str(raised.value) == (
        "kernel 'kernel', program (2,): Out-of-bounds slice pl.ds(10, 4) of axis 0 of 'x_ref', which has 12 elements"
    )
    equal(call()[2], [10, 11, np.nan, np.nan])


@pytest.mark.parametrize("index", [lambda i: i * 6, lambda i: (pl.iota((1,)) + i) * 6], ids=["scalar", "block"])
def test_single_indices_are_checked_under_debug(index: Callable[[Any], Any]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[0:1] = jnp.reshape(x_ref[index(pl.program_id(0))], (1,))

    with pytest.raises(pl.BlockIndexError, match="Out-of-bounds index 12 of axis 0 of 'x_ref', which has 12 elements"):
        pl.pallas_call(kernel, shape(12), grid=3, debug=True)(X)
    equal(pl.pallas_call(kernel, shape(12), grid=3)(X)[0], 11)


def test_first_failing_check_is_reported(interpret: bool) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)
        pl.check(i * 2 + j < 3, "program {} of row {} is too far", j, i)
        o_ref[...] = x_ref[...]

    with pytest.raises(pl.KernelCheckError) as raised:
        pl.pallas_call(kernel, shape(12), grid=(4, 2), interpret=interpret)(X)
    assert str(raised.value) == "kernel 'kernel', program (1, 1): program 1 of row 1 is too far"
    assert raised.value.program == (1, 1)


def test_debug_print_is_in_the_order_of_the_grid(interpret: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        pl.debug_print("pid={} x={}", i, x_ref[...])
        o_ref[...] = x_ref[...]

        @pl.when(i == 1)
        def _() -> None:
            pl.debug_print("{} {}", jnp.sum(x_ref[...]).astype("bfloat16"), i > 0)

    pairs = pl.BlockSpec((2,), lambda i: i)
    pl.pallas_call(kernel, shape(6), grid=3, in_specs=[pairs], out_specs=pairs, interpret=interpret)(X[:6])
    assert capsys.readouterr().out.splitlines() == ["pid=0 x=[0. 1.]", "pid=1 x=[2. 3.]", "5 True", "pid=2 x=[4. 5.]"]


def test_debug_trace_prints_programs_and_accesses(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    sixes = pl.BlockSpec((6,), lambda i: i)
    pl.pallas_call(kernel, shape(12), grid=2, in_specs=[sixes], out_specs=sixes, debug="trace")(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-7:] == [
        "kernel kernel",
        "  program (0,)",
        "    load [0:6] of a buffer of shape [12]",
        "    store [0:6] of a buffer of shape [12]",
        "  program (1,)",
        "    load [6:12] of a buffer of shape [12]",
        "    store [6:12] of a buffer of shape [12]",
    ]


def test_overlap_detector() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def call(out_map: Callable[..., Any], **keywords: Any) -> Any:
        return pl.pallas_call(
            kernel,
            shape(12),
            grid=4,
            in_specs=[THREES],
            out_specs=pl.BlockSpec((3,), out_map),
            interpret=pl.InterpretParams(detect_overlaps=True),
            **keywords,
        )(X)

    equal(call(lambda i: i), X)
    with pytest.raises(pl.OverlapError) as raised:
        call(lambda i: i % 3)
    assert str(raised.value) == (
        "kernel 'kernel': program (0,) writes element (0,) of 'o_ref', and program (3,) writes it, too; give each "
        "element to one program, or declare the axes along which programs share it as 'arbitrary' in "
        "dimension_semantics"
    )
    equal(call(lambda i: i % 3, compiler_params={"dimension_semantics": ("arbitrary",)})[:3], X[9:])


def test_overlap_detector_finds_reads() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[i] = x_ref[i] + o_ref[i - 1]

    with pytest.raises(
        pl.OverlapError, match=r"program \(0,\) writes element \(0,\) of 'o_ref', and program \(1,\) reads"
    ):
        pl.pallas_call(kernel, shape(12), grid=3, interpret=pl.InterpretParams(detect_overlaps=True))(X)


# -- caching


def test_closure_values_are_part_of_the_cache() -> None:
    def scaled(factor: float, calls: list[int]) -> Any:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            calls.append(1)
            o_ref[...] = x_ref[...] * factor

        return pl.pallas_call(kernel, shape(12))(X)

    equal(scaled(2.0, []), X * 2)
    equal(scaled(3.0, []), X * 3)


FACTOR = 2.0


def global_factor(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * FACTOR * pl.num_programs(0)


def test_globals_and_grid_are_part_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(grid: int) -> Any:
        return pl.pallas_call(global_factor, shape(12), grid=grid)(X)

    equal(call(1), X * 2)
    equal(call(2), X * 4)
    monkeypatch.setitem(global_factor.__globals__, "FACTOR", 5.0)
    equal(call(1), X * 5)


def test_a_call_made_again_sees_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    factor, shift, counts = 2.0, 0, [1]

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * factor * FACTOR

    def listed(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * counts[0]

    specs = [pl.BlockSpec((3,), lambda i: (i + shift) % 4)]
    call = pl.pallas_call(kernel, shape(12), grid=4, in_specs=specs, out_specs=THREES)
    with_a_list = pl.pallas_call(listed, shape(12))
    for _ in range(2):
        equal(call(X), X * 4)
        equal(with_a_list(X), X)
    factor, counts[0] = 3.0, 7
    specs[0] = pl.BlockSpec()  # too late: the call has its own list
    equal(call(X), X * 6)
    equal(with_a_list(X), X * 7)
    monkeypatch.setitem(global_factor.__globals__, "FACTOR", 5.0)
    equal(call(X), X * 15)
    shift = 1
    equal(call(X), np.roll(X, -3) * 15)
    with pytest.raises(GraphError, match=r"Block shape for args\[0\]"):
        call(X[:5].reshape(1, 5))


def test_threads_trace_and_run_at_once() -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * number + pl.program_id(0)

        call = pl.pallas_call(kernel, shape(12), grid=4, in_specs=[THREES], out_specs=THREES)
        results[number] = call(X)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        equal(results[number], X * number + np.repeat(np.arange(4), 3))


def test_equal_calls_are_traced_once() -> None:
    from halfulp.ops.pallas.prepare import traced_kernels

    def call(factor: float) -> Any:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * factor

        return pl.pallas_call(kernel, shape(12), grid=4, in_specs=[THREES], out_specs=THREES)(X)

    call(17.0)
    known = len(traced_kernels)
    call(17.0)
    assert len(traced_kernels) == known
    call(18.0)
    assert len(traced_kernels) == known + 1
