"""The pages of the compiler and of the runtime name every module; the table of passes is made from their docstrings.

``python tests/unit/test_compiler_readme.py`` writes it anew.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path

import pytest

from halfulp.compiler.passes import PASSES, module_name

ROOT = Path(__file__).parents[2]
README = ROOT / "compiler" / "README.md"
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


def modules_of(folder: Path) -> list[str]:
    """The modules of a package, without those of packages inside it."""
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def test_table_of_passes_is_current() -> None:
    assert parts()[1] == table(), "run: python tests/unit/test_compiler_readme.py"


@pytest.mark.parametrize("folder", ["compiler", "runtime"])
def test_every_module_has_its_place_on_the_page(folder: str) -> None:
    page = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in modules_of(ROOT / folder) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", ["graph_to_tile", "loops_to_llvm", "tile_to_gpu", "tile_to_loops"])
def test_every_module_of_a_large_pass_is_in_its_reading_order(name: str) -> None:
    order = inspect.getdoc(import_module(f"halfulp.compiler.passes.{name}")) or ""
    assert [name for name in modules_of(ROOT / "compiler" / "passes" / name) if f"``{name}``" not in order] == []


if __name__ == "__main__":
    before, _, after = parts()
    README.write_text(before + table() + after, encoding="utf-8")
    sys.exit(0)
