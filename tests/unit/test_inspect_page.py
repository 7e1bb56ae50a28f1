"""What docs/inspect.md shows is what happens: its programs and commands run, in order, and print what stands below."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "inspect.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def run_command(text: str) -> str:
    """What a block of shell prints; the ``halfulp`` of this interpreter comes first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.stderr == ""
    return done.stdout


def test_what_runs_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    ran = 0
    for number, (language, text) in enumerate(BLOCKS):
        following = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "")
        wanted = following[1] if following[0] == "text" else ""
        if language == "python":
            exec(compile(text, f"docs/inspect.md, block {number}", "exec"), namespace)
            assert capsys.readouterr().out == wanted
        elif language == "sh":
            assert run_command(text) == wanted
        ran += language in ("python", "sh")
    assert ran == len([language for language, _ in BLOCKS if language != "text"])
    assert ran >= 6


def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    anchors = {f"#{heading.lower().replace(' ', '-')}" for heading in headings}
    links = re.findall(r"\]\((?!https?://)([^)]+)\)", PAGE)
    assert links
    assert [link for link in links if link not in anchors and not (DOCS / link).exists()] == []
