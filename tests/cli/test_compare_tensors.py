"""`halfulp compare-tensors`: options, texts, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from torch_archive import write_pt

from halfulp.runtime import save_max_buffer
from halfulp.runtime.cli import main

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(torch: str, other: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["compare-tensors", "--torch-tensor", torch, "--max-tensor", other, *options])


def dumps(**arrays: tuple[Array, Array]) -> tuple[str, str]:
    for folder in ("torch", "max"):
        Path(folder).mkdir()
    for name, (ours, theirs) in arrays.items():
        write_pt(Path("torch") / f"{name}.pt", ours)
        save_max_buffer(f"max/{name}.max", theirs, name)
    return "torch", "max"


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_lone_rtol_on_a_difference_of_a_half_fails() -> None:
    result = run(*dumps(x=(f32(1, 2), f32(1, 2.5))), "--rtol", "1e-9")
    assert result.exit_code == 1
    assert "Greatest absolute difference: 0.5 at index (1,)\n" in result.output
    assert "Mismatched elements: 1 / 2 (50%)\n" in result.output
    assert result.output.endswith("1 pairs compared, 0 tensors not compared; 1 pairs are not within rtol 1e-09\n")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--atol", "0.5"], 0),
        (["--atol", "0.4"], 1),
        (["--rtol", "0.25"], 0),
        (["--ulp", "3000000"], 0),
        (["--ulp", "1"], 1),
        (["--rtol", "0"], 1),
    ],
)
def test_exit_code_tells_whether_all_is_within_tolerance(options: list[str], code: int) -> None:
    assert run(*dumps(x=(f32(1, 2), f32(1, 2.5))), *options).exit_code == code


def test_text_as_the_tools_that_it_follows_write_it() -> None:
    result = run(*dumps(mlp_A_input=(f32(1, 2), f32(1, 2)), mlp_B_gate=(f32(4), f32(4))))
    assert result.output.startswith(
        "Found 2 matching tensor pair(s)\n\n"
        "Tensor: mlp_A_input vs mlp_A_input\n"
        "  Shapes: torch(2,), max(2,)\n"
        "  Greatest absolute difference: 0 at index (0,)\n"
        "  Greatest relative difference: 0 at index (0,)\n"
    )
    assert result.output.endswith("\n\nNo bit differs\n2 pairs compared, 0 tensors not compared; no tolerance given\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rtol", "-1"], "--rtol must be 0 or more, not -1.0"),
        (["--ulp", "nan"], "--ulp must be 0 or more, not nan"),
        (["--map", "nothing"], "--map must be TORCH=MAX, such as model.h=decoder.layers, not 'nothing'"),
        (["--sort", "size"], "'size' is not one of"),
        (["--rtol", "small"], "'small' is not a valid float"),
    ],
)
def test_mistakes_on_the_command_line(options: list[str], message: str) -> None:
    result = run(*dumps(x=(f32(1), f32(1))), *options)
    assert result.exit_code == 2
    assert message in result.output


def test_missing_paths_and_options() -> None:
    ours, theirs = dumps(x=(f32(1), f32(1)))
    result = run("none", theirs)
    assert result.exit_code == 2
    assert "Error: --torch-tensor: there is no file or folder 'none'\n" in result.output
    result = run(ours, "none.max")
    assert result.exit_code == 2
    assert "Error: --max-tensor: there is no file or folder 'none.max'\n" in result.output
    assert CliRunner().invoke(main, ["compare-tensors", "--torch-tensor", ours]).exit_code == 2


def test_nothing_to_compare() -> None:
    Path("empty").mkdir()
    result = run("empty", "empty")
    assert result.exit_code == 3
    assert result.output == (
        "Found 0 matching tensor pair(s)\n\nNothing was compared\n0 pairs compared, 0 tensors not compared; "
        "no tolerance given\n"
    )


def test_pt_that_holds_code_is_refused() -> None:
    write_pt(Path("evil.pt"), b"cos\nsystem\n(X\x0a\x00\x00\x00touch evil\x94tR")
    save_max_buffer("x.max", f32(1), "x")
    result = run("evil.pt", "x.max")
    assert result.exit_code == 3
    assert (
        "  torch: evil.pt: 'evil.pt' holds more than tensors, which is not read: os.system, at byte 2; "
        in result.output
    )
    assert not Path("evil").exists()


def test_what_was_not_compared_is_said_before_differences_decide() -> None:
    ours, theirs = dumps(x=(f32(1), f32(1)), y=(f32(1), f32(2)))
    save_max_buffer("max/z.max", np.zeros(3), "z")
    reason = "torch has no tensor of a layer like 'z', and none of its shape and values"
    text = f"Not compared: 1\n  max: z float64(3,): {reason}\n"
    for options, code in (([], 3), (["--atol", "1"], 3), (["--atol", "0"], 1)):
        result = run(ours, theirs, *options)
        assert result.exit_code == code
        assert text in result.output


def test_nan_differs_on_request() -> None:
    ours, theirs = dumps(x=(f32(np.nan), f32(np.nan)))
    assert run(ours, theirs, "--atol", "0").exit_code == 0
    assert run(ours, theirs, "--atol", "0", "--nan-differs").exit_code == 1


def test_reshaping_and_renaming() -> None:
    ours, theirs = dumps(x=(np.zeros((2, 3)), np.zeros(6)))
    assert run(ours, theirs).exit_code == 3
    assert run(ours, theirs, "--allow-reshape").exit_code == 0
    write_pt(Path("torch/h.0.fc-output.pt"), f32(1))
    save_max_buffer("max/stack.0.dense-output.max", f32(2), "x")
    assert run(ours, theirs, "--allow-reshape").exit_code == 3
    assert run(ours, theirs, "--allow-reshape", "--map", "h=stack", "--map", "fc=dense").exit_code == 0


def test_sorting_puts_the_worst_first() -> None:
    ours, theirs = dumps(a=(f32(1), f32(1)), b=(f32(100), f32(103)), c=(f32(1), f32(2)))

    def order(*options: str) -> list[str]:
        return re.findall(r"^Tensor: (\w)", run(ours, theirs, *options).output, flags=re.MULTILINE)

    assert order() == ["a", "b", "c"]
    assert order("--sort") == ["b", "c", "a"]
    assert order("--sort", "rel") == ["c", "b", "a"]
    assert order("--sort", "cosine") == ["a", "b", "c"]
    assert order("--sort", "name") == ["a", "b", "c"]


def test_json() -> None:
    result = run(*dumps(x=(f32(1, 2), f32(1, 2.5))), "--atol", "0", "--json")
    found = json.loads(result.output)
    assert (found["atol"], found["rtol"], found["first_failure"]) == (0, None, 0)
    assert found["pairs"][0]["max_abs"] == 0.5
    assert result.exit_code == 1


def test_html_is_one_page_with_everything_inside() -> None:
    ours, theirs = dumps(**{"a<b": (f32(1, np.nan), f32(1, 2)), "same": (f32(1), f32(1)), "other": (f32(1), f32(2))})
    save_max_buffer("max/left.max", np.zeros(3), "z")
    assert run(ours, theirs, "--atol", "0", "--html", "page.html").exit_code == 1
    page = Path("page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert not re.search(r"<script|<link|https?://|url\(|@import", page)
    assert "a&lt;b" in page
    assert "a<b" not in page
    assert page.count('<tr class="first">') == 1
    assert page.count("<section id=") == 3
    assert page.count("<svg") == 2
    assert "This is the first pair with a bit that differs and the first pair that is not within tolerance." in page
    assert "<td>left</td><td>max</td><td>float64 (3,)</td>" in page
    assert '<td style="--heat: 65%">inf</td>' in page


def test_page_that_cannot_be_written() -> None:
    result = run(*dumps(x=(f32(1), f32(1))), "--html", "none/page.html")
    assert result.exit_code == 1
    assert "Error: cannot write none/page.html: No such file or directory\n" in result.output
