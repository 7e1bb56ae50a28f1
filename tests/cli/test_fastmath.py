"""`halfulp fastmath`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from halfulp.runtime.cli import main

MODEL = """\
from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType

vector = TensorType(DType.float32, ["n"])
axpy = Graph("axpy", lambda a, b, c: ops.add(ops.mul(a, b), c), [vector] * 3)
plain = Graph("plain", lambda a: ops.negate(a), [vector])
strict = Graph("strict", lambda a: ops.mul(a, 2.0, fastmath="contract"), [vector])


def reference(a, b, c):
    return a * b + c
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALFULP_CACHE", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "model.py").write_text(MODEL)
    arrays: dict[str, Any] = {
        name: np.random.default_rng(i).standard_normal(500).astype(np.float32) for i, name in enumerate("abc")
    }
    np.savez(tmp_path / "inputs.npz", **arrays)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fastmath", *arguments])


def output_of(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_help_says_what_the_exit_codes_mean() -> None:
    text = " ".join(output_of("--help").split())
    assert "Exit codes: 0 whether or not anything differs; 1 for a fault in the file, the graph, the inputs" in text
    assert "--bisect" in text


def test_table_of_all_modes_with_seeded_inputs() -> None:
    lines = output_of("model.py:axpy").splitlines()
    assert lines[0] == "graph axpy, inputs seeded with 0: a [4096], b [4096], c [4096]"
    assert lines[1] == "baseline: on; errors are distances from the graph in float64"
    rows = {line.split()[0]: line.split()[1:] for line in lines[5:21]}
    assert rows["fast"][:3] == ["985", "274", "2"]
    assert (rows["fast"][5], rows["on"][5]) == ("closer", "equal")
    assert {"off", "llvm", "reassoc", "all-flags", "round-each", "excess"} <= set(rows)
    assert float(rows["fast"][6]) > 0
    assert "the same bits: fast, llvm, contract, all-flags, excess-fast" in lines


def test_given_inputs_and_baseline() -> None:
    text = output_of("model.py:axpy", "--inputs", "inputs.npz", "--mode", "on", "--baseline", "fast")
    assert text.startswith("graph axpy, inputs given: a [500], b [500], c [500]\nbaseline: fast;")
    assert text.splitlines()[5].split()[6] == "worse"


def test_bisection_with_source_line(folder: Path) -> None:
    text = output_of("model.py:axpy", "--bisect", "--mode", "fast", "--mode", "contract")
    assert text.count("1 op causes it") == 1  # both modes give the same bits
    assert f"  op 1, add: {folder / 'model.py'}:5\n    axpy = Graph(" in text
    assert "it fuses with its operand 0, the mul of" in text
    assert "mode  differ" not in text


def test_bisection_of_nothing() -> None:
    assert output_of("model.py:plain", "--bisect") == (
        "graph plain: no mode changes a bit of an output, so no op makes a difference\n"
    )
    assert output_of("model.py:plain", "--bisect", "--mode", "fast") == (
        "graph plain: none of fast changes a bit of an output, so no op makes a difference\n"
    )


def test_classification_of_a_file(folder: Path) -> None:
    with np.load(folder / "inputs.npz") as stored:
        a, b, c = (stored[name].astype(np.longdouble) for name in "abc")
    np.save(folder / "theirs.npy", (a * b + c).astype(np.float32))
    text = output_of("model.py:axpy", "--inputs", "inputs.npz", "--classify", "theirs.npy")
    assert text.startswith("output_0: 1")
    assert "  fma-left: 1" in text
    assert "as it does every element" in text


def test_json_of_everything(folder: Path) -> None:
    np.save(folder / "theirs.npy", np.zeros(4096, np.float32))
    arguments = ["--matrix", "--bisect", "--mode", "fast", "--json", "--classify", "theirs.npy"]
    read = json.loads(output_of("model.py:axpy", *arguments))
    assert list(read) == ["matrix", "bisections", "classification"]
    assert read["bisections"][0]["sites"][0]["op"] == "add"
    assert read["classification"]["output_0"]["differing"] == 4096
    assert list(json.loads(output_of("model.py:plain", "--bisect", "--json"))) == ["bisections"]


def test_page_is_written(folder: Path) -> None:
    output_of("model.py:axpy", "--mode", "fast", "--bisect", "--html", "page.html")
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert 'class="node op contracted cause"' in text


def test_recorded_outputs_as_reference(folder: Path) -> None:
    np.save(folder / "exact.npy", np.zeros(500))
    text = output_of("model.py:axpy", "--inputs", "inputs.npz", "--mode", "on", "--torch", "exact.npy")
    assert "errors are distances from the outputs given" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["model.py"], 1, "'model.py' must be a file and a name in it, as in model.py:graph"),
        (["none.py:axpy"], 1, "there is no file 'none.py'"),
        (["model.py:apxy"], 1, "model.py defines no 'apxy'; did you mean 'axpy'?"),
        (["model.py:axpy", "--inputs", "none.npz"], 1, "there is no file 'none.npz'"),
        (["model.py:plain", "--inputs", "inputs.npz"], 1, "graph 'plain' has no input 'b'; its inputs are 'a'"),
        (
            ["model.py:axpy", "--inputs", "short.npz"],
            1,
            "graph 'axpy': input 'b' has shape [2], but 'n' is 3 in another input; its type is float32 [n]",
        ),
        (
            ["model.py:axpy", "--inputs", "model.py"],
            1,
            "'model.py' must be a file of tensors: its name must end in .max, .npy, .npz, .safetensors, .pt",
        ),
        (
            ["model.py:axpy", "--torch", "model.py:refrence"],
            1,
            "model.py defines no 'refrence'; did you mean 'reference'?",
        ),
        (["model.py:axpy", "--classify", "none.npy"], 1, "there is no file 'none.npy'"),
        (["model.py:axpy", "--html", "none/x.html"], 1, "cannot write none/x.html: No such file or directory"),
        (
            ["model.py:strict", "--baseline", "off"],
            1,
            "graph.apply \"mul\": it has the fastmath flag 'contract', but fp_contract='off' forbids every "
            "contraction; leave the flag out of the op or of its region, or compile with fp_contract='on'",
        ),
        (["model.py:axpy", "--mode", "nsw"], 2, "--mode: there is no mode 'nsw'; did you mean 'nsz'?"),
        (["model.py:axpy", "--baseline", "none"], 2, "--baseline: there is no mode 'none'; did you mean 'on'?"),
        (
            ["model.py:axpy", "--reference", "torch"],
            2,
            "--reference torch needs to know where torch's result is; add --torch FILE.py:FUNCTION or --torch FILE.pt",
        ),
        (
            ["model.py:axpy", "--torch", "model.py:axpy"],
            1,
            "model.py: 'axpy' must be a function, not Graph('axpy', "
            "inputs=[a: float32 [n] on cpu, b: float32 [n] on cpu, c: float32 [n] on cpu])",
        ),
        ([], 2, "Missing argument 'FILE.py:NAME'."),
    ],
)
def test_faults_are_one_line_with_the_remedy(folder: Path, arguments: list[str], code: int, message: str) -> None:
    short: dict[str, Any] = {name: np.zeros(3 - i % 2, np.float32) for i, name in enumerate("abc")}
    np.savez(folder / "short.npz", **short)
    result = run(*arguments)
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == code
    shown = result.output.partition("Error: ")[2].rstrip("\n")
    assert shown.partition("\n  at ")[0] == message


def test_option_that_does_not_exist() -> None:
    result = run("model.py:axpy", "--matrx")
    assert result.exit_code == 2
    assert "--matrix" in result.output.partition("Error: ")[2]


def test_torch_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("model.py:axpy", "--torch", "model.py:reference")
    assert (result.exit_code, result.output) == (
        1,
        "Error: a reference by torch needs torch, which is not installed; pip install torch\n",
    )
