"""`halfulp explain`: text, page, errors; the page in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from halfulp.runtime.cli import main

SOURCE = """
from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType

F32 = DType.float32


def forward(x, w, b):
    hidden = ops.gelu(x @ w + b, "tanh")
    return [ops.softmax(hidden * 2.0 + x @ w), ops.sum(hidden, axis=0)]


mlp = Graph("mlp", forward, [TensorType(F32, ["m", "k"]), TensorType(F32, ["k", "n"]), TensorType(F32, ["n"])])
found = Graph("found", lambda x: ops.nonzero(x, "count") + 1, [TensorType(F32, ["n"])])
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "graphs.py"
    path.write_text(SOURCE)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, arguments)])


def test_text(source: Path) -> None:
    result = run(f"{source}:mlp", "--size", "m=64", "--size", "k=32", "--size", "n=16", "--option", "fp_contract=fast")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "mlp: 4 steps, m = 64, k = 32, n = 16"
    assert lines[1].startswith("  0 matmul_rows_add_gelu, matmul_add_gelu: reads 10.1 KiB, writes 4 KiB, ")
    assert lines[1].endswith(" roundings")
    assert any(line.startswith("contracted: ") and "add fused with its operand 0" in line for line in lines)
    assert any(line.startswith("intermediates: 8192 bytes") for line in lines)


def test_sizes_that_only_data_decides(source: Path) -> None:
    unknown, known = run(f"{source}:found"), run(f"{source}:found", "--size", "count=5", "--size", "n=100")
    assert unknown.exit_code == known.exit_code == 0, unknown.output
    assert "not known before the graph runs:" in unknown.output
    assert "writes ?" in unknown.output
    assert "writes ?" not in known.output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--size", "q=3"], 1, "graph 'mlp' has no symbol 'q'; it has 'm', 'k', 'n'"),
        (["--size", "m"], 2, "--size: 'm' must be NAME=N, such as batch=8"),
        (["-o", "/nowhere/at/all.html"], 1, "/nowhere/at/all.html"),
    ],
)
def test_errors(source: Path, arguments: list[str], code: int, words: str) -> None:
    result = run(f"{source}:mlp", *arguments)
    assert result.exit_code == code
    assert words in result.output


def test_page_is_one_file_without_scripts(source: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run(f"{source}:mlp", "-o", page, "--option", "fp_contract=fast").exit_code == 0
    text = page.read_text()
    assert "<script" not in text
    assert not re.search(r"(src|href)=|url\(|@import|https?://", text)
    for part in ("The graph", "matmul_add_gelu", "2*k*m*n", "Contractions", "Memory between kernels", "buffer_0"):
        assert part in text
    assert 'class="node op kernel1 contracted"' in text


def browser() -> str:
    """A Chromium; without one only a run of continuous integration fails."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        message = f"no browser to look at the page with: none of {', '.join(BROWSERS)} is installed"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def pixels(png: bytes) -> bytes:
    """The raw bytes of the rows of a PNG picture."""
    data, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    return zlib.decompress(data)


def test_page_in_a_browser(source: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    assert run(f"{source}:mlp", "-o", page, "--option", "fp_contract=fast").exit_code == 0
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1200,900"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [browser(), *flags, profile, f"--screenshot={picture}", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert len(set(pixels(picture.read_bytes()))) > 50, "the screenshot is nearly one colour"
