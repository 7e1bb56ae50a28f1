"""The examples run as they are, and stay short."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = 80


def output_of(name: str) -> str:
    run = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, encoding="utf-8", check=True, timeout=120
    )
    return run.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_listed(path: Path) -> None:
    assert len(path.read_text().splitlines()) < LINES
    assert f"[{path.name}]({path.name})" in (EXAMPLES / "README.md").read_text()


def test_log_probabilities_of_real_logits() -> None:
    output = output_of("01_log_probabilities.py")
    for prompt in json.loads((EXAMPLES / "data" / "smollm2_logits.json").read_text())["prompts"]:
        assert repr(prompt) in output
    assert "' Paris'        -0.26   ' Paris' -0.26  ' the' -2.74  ' London' -4.39  ' Le' -4.62  ' New' -4.68" in output
    difference = re.search(r"largest difference from float64: (\S+)", output)
    assert difference is not None
    assert float(difference[1]) < 4e-6
    assert re.search(r"^compile time: \d+\.\d+ s$", output, re.MULTILINE)
    assert re.search(r"^kernel: \d+\.\d GB of logits per second$", output, re.MULTILINE)


def test_text_is_generated_in_a_loop_of_the_graph() -> None:
    """Three lines that start with the characters asked for; what follows depends on numpy's generator."""
    lines = output_of("02_control_flow.py").splitlines()
    assert [line[1] for line in lines] == ["d", "f", "g"]
    assert all(len(line) > 3 for line in lines)


def test_contraction_under_the_three_modes() -> None:
    lines = output_of("03_fp_contract.py").splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["off", "0"], ["on", "0"], ["fast", "23448"]]
    assert re.search(r"03_fp_contract.py:\d+: add fused with its operand 0, the mul of ", lines[3])


def test_bisection_finds_the_planted_contraction() -> None:
    output = output_of("04_bisect_contraction.py")
    assert "1 op causes it" in output
    assert "    x = ops.sub(x, ops.mul(x, y))\n    it fuses with its operand 1, the mul of " in output
