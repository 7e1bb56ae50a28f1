"""What docs/numerics.md shows is what happens: its programs run, in order, and print what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "numerics.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_programs_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {}
    shown = [text for language, text in BLOCKS if language == "text"]
    programs = [text for language, text in BLOCKS if language == "python"]
    for program, text in zip(programs, shown, strict=True):
        exec(compile(program, "axpy.py", "exec"), namespace)
        assert capsys.readouterr().out == text
    assert len(programs) == 7


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", PAGE)
    assert [link for link in links if not (DOCS / link).exists()] == []
