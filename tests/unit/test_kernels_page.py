"""What docs/kernels.md shows is what happens: its programs run, in order, and print what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halfulp.compiler.registry import unregister_kernel
from halfulp.ops import pallas as pl

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kernels.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_programs_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {}
    ran = 0
    try:
        for number, (language, text) in enumerate(BLOCKS):
            if language != "python":
                continue
            exec(compile(text, f"docs/kernels.md, block {number}", "exec"), namespace)
            printed = capsys.readouterr().out
            following = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "")
            assert printed == (following[1] if following[0] == "text" and printed else "")
            ran += 1
    finally:
        for name in ("scale_rows", "above"):
            unregister_kernel(name)
    assert ran == 14


def test_picture_is_current() -> None:
    drawn = pl.plot_grid((7, 5), pl.BlockSpec((2, 3), lambda i, j: (i, j)), (4, 2))
    assert (DOCS / "images" / "blocks.svg").read_text(encoding="utf-8") == drawn


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", PAGE)
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
