"""`halfulp compile`: graphs of Python files."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from halfulp.runtime import InferenceSession
from halfulp.runtime.cli import main

MODEL = """\
from dataclasses import dataclass

from beside import shape
from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType

vector = TensorType(DType.float32, shape)
graph = Graph("double", lambda x: x + x, [vector])


@dataclass
class Size:
    value: int = 1


def make(factor=3):
    return Graph("triple", lambda x: ops.mul(x, float(factor)), [vector])


def scaled(factor, offset):
    return make(factor)


def broken():
    return 1 / 0


def number():
    return Size(7)


def misbuilt():
    return Graph("misbuilt", lambda x: x + "text", [vector])
"""

PRINTING = """\
from halfulp.compiler import DType, Graph, TensorType
from halfulp.ops import pallas as pl


def noisy(x_ref, y_ref):
    pl.debug_print("{}", x_ref[0])
    y_ref[...] = x_ref[...]


call = pl.pallas_call(noisy, pl.ShapeDtypeStruct((4,), "float32"))
graph = Graph("g", lambda x: call(x), [TensorType(DType.float32, [4])])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALFULP_CACHE", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "beside.py").write_text('shape = ["n"]\n')
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compile", *arguments])


def error_of(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit)
    return result.output.partition("Error: ")[2].rstrip("\n")


def test_compile_says_what_it_made() -> None:
    result = run("model.py:graph")
    assert result.exit_code == 0
    assert result.output.startswith("double: 1 kernel, ")
    assert result.output.endswith(" bytes\n")


def test_model_is_written_and_runs() -> None:
    result = run("model.py:make", "-o", "triple.bin")
    assert result.output.endswith(" bytes, written to triple.bin\n")
    model = InferenceSession().load_compiled("triple.bin")
    assert model(np.array([1, 2], np.float32))[0].to_numpy().tolist() == [3, 6]


def test_options_reach_the_compiler() -> None:
    assert run("model.py:graph", "--option", "fp_contract=off", "--option", "vector_bits=128", "-o", "m").exit_code == 0
    options = InferenceSession().load_compiled("m").options
    assert (options.fp_contract, options.vector_bits) == ("off", 128)


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("graph", "graph.graph @double("),
        ("tile", "tile.kernel"),
        ("loops", "func.func"),
        ("ll", "define "),
        ("asm", ".text"),
    ],
)
def test_stages_are_printed(stage: str, text: str) -> None:
    result = run("model.py:graph", "--emit", stage)
    assert result.exit_code == 0
    assert text in result.output


def test_stage_is_written(folder: Path) -> None:
    assert run("model.py:graph", "--emit", "tile", "-o", "double.mlir").output == ""
    assert (folder / "double.mlir").read_text() == run("model.py:graph", "--emit", "tile").output


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("model.py", "'model.py' must be a file and a name in it, as in model.py:graph"),
        ("none.py:graph", "there is no file 'none.py'"),
        ("beside:graph", "there is no file 'beside'"),
        ("model.py:grph", "model.py defines no 'grph'; did you mean 'graph'?"),
        (
            "model.py:other",
            "model.py defines no 'other'; its graphs and functions without arguments are 'graph', 'make', 'broken', "
            "'number', 'misbuilt'",
        ),
        (
            "model.py:scaled",
            "model.py: 'scaled' needs values for 'factor', 'offset'; name a Graph, or a function without arguments",
        ),
        ("model.py:number", "model.py: 'number' must return a Graph, not Size(value=7)"),
        ("model.py:shape", "model.py: 'shape' must be a Graph, or a function that returns one, not ['n']"),
        ("model.py:broken", "model.py:25: ZeroDivisionError: division by zero"),
    ],
)
def test_places_without_a_graph(place: str, message: str) -> None:
    assert error_of(place) == message


def test_error_while_the_graph_is_built_shows_the_line(folder: Path) -> None:
    message = error_of("model.py:misbuilt")
    assert f'{folder / "model.py"}:33: return Graph("misbuilt", lambda x: x + "text", [vector])' in message
    assert "Traceback" not in message


def test_file_that_is_no_python(folder: Path) -> None:
    (folder / "text.txt").write_text("graph")
    (folder / "wrong.py").write_text("graph = (\n")
    assert error_of("text.txt:graph") == "text.txt is no Python file; its name must end in .py"
    assert error_of("wrong.py:graph") == f"{folder / 'wrong.py'}:1: SyntaxError: '(' was never closed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emit", "tyle"], "--emit: there is no stage 'tyle'; did you mean 'tile'?"),
        (
            ["--emit", "x"],
            "--emit: there is no stage 'x'; stages are graph, tile, loops, gpu, llvm, ll, asm, ptx, sass",
        ),
        (
            ["--emit", "asm", "--target", "sm_90"],
            "there is no stage asm on the way to nvptx64/sm_90; stages are graph, tile, gpu, llvm, ll, ptx, sass",
        ),
        (
            ["--emit", "ptx", "--target", "sm_70"],
            "target 'sm_70' is none that halfulp compiles for; use 'sm_80', 'sm_90', 'sm_100'",
        ),
        (
            ["--target", "sm_90"],
            "--target: a model for a GPU cannot be saved; use --emit ptx or --ptxas-info",
        ),
        (["--option", "fast"], "--option takes name=value, not 'fast'"),
        (["--option", "opt_level=9"], "--option: opt_level must be one of 0, 1, 2, 3, not 9"),
        (["-o", "none/m.bin"], "cannot write none/m.bin: No such file or directory"),
        (["--emit", "tile", "-o", "none/m.mlir"], "cannot write none/m.mlir: No such file or directory"),
    ],
)
def test_faults_of_the_command_line(arguments: list[str], message: str) -> None:
    assert error_of("model.py:graph", *arguments) == message


@pytest.mark.parametrize(
    ("arguments", "start", "last"),
    [
        ([], "double: 1 kernel, ", "emit-object"),
        (["--emit", "tile"], "builtin.module", "mark-parallel-axes|clear-fastmath-flags"),
        (["--emit", "ll"], "define ", "emit-llvm"),
        (["--emit", "asm"], "\t.", "emit-asm"),
    ],
)
def test_bar_on_a_terminal_only(folder: Path, arguments: list[str], start: str, last: str) -> None:
    command = [sys.executable, "-m", "halfulp.runtime.cli", "compile", "model.py:graph", *arguments]
    quiet = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (quiet.stdout.startswith(start), quiet.stderr) == (True, "")
    ours, theirs = pty.openpty()
    try:
        shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
        bar = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.stdout == quiet.stdout
    assert "compiling double  [" in bar
    assert re.search(f"100%  ({last})", bar)


def test_machine_code_for_a_gpu_and_what_its_kernels_take() -> None:
    result = CliRunner().invoke(
        main, ["compile", "model.py:graph", "--target", "sm_90", "--emit", "sass", "--ptxas-info"]
    )
    assert result.exit_code == 0
    assert "FADD" in result.stdout
    assert re.fullmatch(
        r"kernel_add: \d+ registers, 0 bytes of shared memory, 0 of stack, 0 of spill stores, 0 of spill loads\n",
        result.stderr,
    )


@pytest.mark.parametrize("wanted", [["--emit", "ptx"], ["--ptxas-info"]])
def test_a_kernel_that_prints_is_refused_in_one_line(folder: Path, wanted: list[str]) -> None:
    (folder / "printing.py").write_text(PRINTING)
    assert error_of("printing.py:graph", "--target", "sm_90", *wanted) == (
        "tile.print: kernel @noisy prints, which it cannot do on a GPU; run it on the CPU"
    )


def test_gpu_stages_without_a_target_are_for_a_common_gpu() -> None:
    result = CliRunner().invoke(main, ["compile", "model.py:graph", "--emit", "ptx"])
    assert ".target sm_90" in result.stdout
    assert "gpu.thread_id" in CliRunner().invoke(main, ["compile", "model.py:graph", "--emit", "gpu"]).stdout
