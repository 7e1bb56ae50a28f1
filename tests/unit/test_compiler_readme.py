"""The table of passes in compiler/README.md is made from the docstrings of the pass modules.

``python tests/unit/test_compiler_readme.py`` writes it anew.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path

from halfulp.compiler.passes import PASSES, module_name

README = Path(__file__).parents[2] / "compiler" / "README.md"
START, END = "<!-- passes: ", "<!-- /passes -->"


def table() -> str:
    """The table: each pass with the first sentence of its module's docstring."""
    rows = ["| pass | what it does |", "|---|---|"]
    for name in PASSES:
        module = import_module(f"halfulp.compiler.passes.{module_name(name)}")
        first = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
        sentence = first.partition(": ")[2] or first
        rows.append(f"| `{name}` | {sentence[0].upper()}{sentence[1:]} |")
    return "\n".join(rows) + "\n"


def parts() -> tuple[str, str, str]:
    """The README before, in and after the table."""
    text = README.read_text(encoding="utf-8")
    start = text.index("\n", text.index(START)) + 1
    end = text.index(END)
    return text[:start], text[start:end], text[end:]


def test_table_of_passes_is_current() -> None:
    assert parts()[1] == table(), "run: python tests/unit/test_compiler_readme.py"


if __name__ == "__main__":
    before, _, after = parts()
    README.write_text(before + table() + after, encoding="utf-8")
    sys.exit(0)
