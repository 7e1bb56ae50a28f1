"""Prints inside kernels and entry functions: compiled code calls back, and shows what the interpreter shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differential import check_both_ways

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.compiler.artifact import PrintSite
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, register_kernel, unregister_kernel
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import ExecutionError, InferenceSession

F32 = DType.float32
FOURS = pl.BlockSpec((4,), lambda i: i)
Kernel = Callable[..., None]


def in_fours(kernel: Kernel, x: Any, **keywords: Any) -> Any:
    """The kernel on blocks of four."""
    out = pl.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (pl.cdiv(x.shape[0], 4),)
    return pl.pallas_call(kernel, out, grid=grid, in_specs=[FOURS], out_specs=FOURS, **keywords)(x)


def graph_of(kernel: Kernel, **keywords: Any) -> Graph:
    with Graph("g", input_types=[TensorType(F32, ["n"])]) as graph:
        graph.output(in_fours(kernel, graph.inputs[0] * 2.0, **keywords))
    return graph


def printing(x_ref: Any, o_ref: Any) -> None:
    x = x_ref[...]
    pl.debug_print("{}: {} sum {}", pl.program_id(0), x, jnp.sum(x))
    o_ref[...] = x + 1


LINES = ["0: [0. 2. 4. 6.] sum 12.0", "1: [ 8. 10. nan nan] sum nan"]


@pytest.mark.parametrize(
    "keywords", [{}, {"interpret": True}, {"compiler_params": {"dimension_semantics": ("parallel",)}}]
)
def test_kernel_in_a_graph_prints_in_the_order_of_its_grid(
    keywords: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    model = InferenceSession().load(graph_of(printing, **keywords))
    for _ in range(2):
        (y,) = model.execute(np.arange(6, dtype=np.float32))
        assert capsys.readouterr().out.splitlines() == LINES
        np.testing.assert_array_equal(y.to_numpy(), np.arange(6, dtype=np.float32) * 2 + 1)


def test_prints_survive_saving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    InferenceSession().load(graph_of(printing)).save(tmp_path / "printing.model")
    InferenceSession().load_compiled(tmp_path / "printing.model").execute(np.arange(6, dtype=np.float32))
    assert capsys.readouterr().out.splitlines() == LINES


def test_style_none_silences_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    session = InferenceSession()
    session.set_debug_print_options("NONE")
    session.load(graph_of(printing)).execute(np.arange(6, dtype=np.float32))
    assert capsys.readouterr().out == ""


def test_object_code_without_prints_has_no_callback() -> None:
    from halfulp.compiler.pipeline import emit

    def silent(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1

    assert "report_print" in emit(graph_of(printing).module.clone(), "ll", CompileOptions())
    assert "report_print" not in emit(graph_of(silent).module.clone(), "ll", CompileOptions())


VALUES = """
tile.kernel @all(%x: {ref}<[?, 3], {type}, global>) grid(%i of %n) axes [ordered] {{
  %z = arith.constant 0 : index
  %0 = tile.window %x[%i, %z] blocked [2, 3] squeezed []
    : {ref}<[?, 3], {type}, global> -> {ref}<[2, 3], {type}, global>
  %1 = tile.load %0 : {ref}<[2, 3], {type}, global> -> tensor<2x3x{type}>
  %2 = tile.extract %1[%z, %i] : tensor<2x3x{type}> -> {type}
  tile.print "{{}} {{}} {{}}" values %i, %1, %2 : index, tensor<2x3x{type}>, {type} as ["i64", "{name}", "{name}"]
  tile.return
}}
func.func @main(%x: {ref}<[?, 3], {type}, global>) {{
  %n = arith.constant 2 : index
  tile.launch @all grid(%n) (%x) : {ref}<[?, 3], {type}, global>
  func.return
}}
"""


@pytest.mark.parametrize("dtype", DType)
def test_values_of_every_type(dtype: DType) -> None:
    x = np.array([[0, 1, 2], [3, 4, 5], [0, 1, 0], [1, 0, 1]])
    x = (-x if dtype.is_signed else x + 250 if dtype.is_integral else x).astype(dtype.to_numpy())
    run = check_both_ways(VALUES.format(ref="!tile.ref", type=dtype.to_element_type(), name=dtype.ir_name), [x])
    assert run.lines == [f"0 {x[:2]} {x[0, 0]!s}", f"1 {x[2:]} {x[2, 1]!s}"]


def test_branches_and_loops_print_as_often_as_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        def body(j: Any, total: Any) -> Any:
            @pl.when(j % 2 == 1)
            def _() -> None:
                pl.debug_print("{} {}", j, total)

            return total + x_ref[j]

        o_ref[...] = jnp.full((4,), pl.fori_loop(0, 4, body, 0.0))

    InferenceSession().load(graph_of(kernel)).execute(np.arange(4, dtype=np.float32))
    assert capsys.readouterr().out.splitlines() == ["1 0.0", "3 6.0"]


def test_a_print_changes_no_bit(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        y = jnp.exp(x) * 1.1 + x
        o_ref[...] = y * x - jnp.sum(y)

    def loud(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        y = jnp.exp(x) * 1.1 + x
        pl.debug_print("{} {}", y, jnp.sum(y))
        o_ref[...] = y * x - jnp.sum(y)

    x = np.random.default_rng(0).normal(size=64).astype(np.float32)
    silent, printed = (InferenceSession().load(graph_of(f)).execute(x)[0].to_numpy() for f in (kernel, loud))
    assert len(capsys.readouterr().out.splitlines()) == 16
    np.testing.assert_array_equal(silent.view(np.int32), printed.view(np.int32))


@pytest.mark.parametrize("interpret", [False, True])
def test_a_call_that_fails_prints_nothing(interpret: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        printing(x_ref, o_ref)
        pl.check(pl.program_id(0) < 1, "too many programs")

    with pytest.raises(pl.KernelCheckError):
        in_fours(kernel, np.zeros(8, np.float32), interpret=interpret)
    with pytest.raises(ExecutionError):
        InferenceSession().load(graph_of(kernel)).execute(np.zeros(8, np.float32))
    assert capsys.readouterr().out == ""


def test_an_exception_while_printing_comes_after_the_execution(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = InferenceSession().load(graph_of(printing))
    calls: list[int] = []

    def refuse(self: PrintSite, arrays: Sequence[Any]) -> str:
        calls.append(len(calls))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PrintSite, "line", refuse)
        with pytest.raises(KeyboardInterrupt):
            model.execute(np.arange(6, dtype=np.float32))
    assert calls == [0]
    assert capsys.readouterr().out == ""
    model.execute(np.arange(6, dtype=np.float32))
    assert capsys.readouterr().out.splitlines() == LINES


def test_threads_do_not_mix_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    model = InferenceSession().load(graph_of(printing))
    x = np.arange(6, dtype=np.float32)
    threads = [threading.Thread(target=lambda: [model.execute(x) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().out.splitlines() == LINES * 80


@pytest.fixture
def showing_kernel() -> Iterator[str]:
    """Shows its operands as tensors, the second one of them without axes, and copies the first one."""

    def build(entry: Any, call: Any, operands: Any, outputs: Any) -> None:
        entry.print_tensor(operands[0], "x", F32)
        entry.print_tensor(operands[1], "n", DType.uint8, is_scalar=True)
        entry.print("{} rows", [entry.dim(operands[0], 0)], [DType.int64])

        def copy(k: Any) -> None:
            source, target = k.arguments
            k.store(k.load(k.window(source, [k.program_ids[0]], [8])), k.window(target, [k.program_ids[0]], [8]))

        size = (entry.dim(operands[0], 0) + 7) // 8
        entry.launch("copy", [operands[0], outputs[0]], [size], copy)

    operands = (OperandSpec("x", F32, ("n",)), OperandSpec("n", DType.uint8, ()))
    register_kernel(KernelDef("show", operands, (OutputSpec("y", F32, ("n",)),), build))
    yield "show"
    unregister_kernel("show")


@pytest.mark.parametrize("size", [0, 3])
def test_entry_shows_tensors_in_the_style_of_the_session(
    showing_kernel: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with Graph("g", input_types=[TensorType(F32, ["n"]), TensorType(DType.uint8, [])]) as graph:
        x, n = graph.inputs
        graph.output(*ops.custom(showing_kernel, DeviceRef.CPU(), [x, n], [x.type]))
    InferenceSession().load(graph).execute(np.arange(size, dtype=np.float32), np.uint8(200))
    shown = "[[0.0000, 1.0000, 2.0000]]" if size else "[[]]"
    assert capsys.readouterr().out.splitlines() == [
        f"x = tensor({shown}, dtype=f32, shape=[{size}])",
        "n = tensor(200, dtype=ui8, shape=[])",
        f"{size} rows",
    ]
