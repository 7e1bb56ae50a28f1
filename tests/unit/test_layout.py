"""The house: which packages there are, what their files are called and how long they may get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from halfulp.compiler.passes import class_name, get_all_passes, module_name

ROOT = Path(__file__).parents[2]
TOP_FOLDERS = ("compiler", "ops", "runtime")
SOURCES = sorted(path for top in TOP_FOLDERS for path in (ROOT / top).rglob("*.py"))

# A file that grows beyond this holds more than one idea, a function more than one step. Most are far shorter.
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60  # without the docstring

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
for top in ("compiler", "ops", "runtime"):
    package = importlib.import_module("halfulp." + top)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted(sys.modules))
"""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_packages_in_pyproject_are_those_on_disk() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    on_disk = {".".join(["halfulp", *path.parent.relative_to(ROOT).parts]) for path in SOURCES}
    assert listed == sorted(on_disk)


def test_every_source_folder_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert [name_of(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_halfulp_is_a_namespace_without_files() -> None:
    assert not (ROOT / "halfulp").exists()
    assert not list((ROOT / ".typings" / "halfulp").glob("*.py*"))


@pytest.mark.parametrize("top", TOP_FOLDERS)
def test_type_checkers_see_the_top_folder(top: str) -> None:
    link = ROOT / ".typings" / "halfulp" / top
    assert link.is_symlink()
    assert link.resolve() == ROOT / top


def test_modules_have_no_bare_names_and_import_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", IMPORT_EVERYTHING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    loaded = done.stdout.split()
    assert "halfulp.compiler.opt" in loaded
    assert "halfulp.runtime.cli" in loaded
    assert [name for name in loaded if name.split(".")[0] in TOP_FOLDERS] == []


def test_module_names_say_what_is_inside() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    well_named = re.compile(r"[a-z][a-z0-9_]*|__init__|__main__")
    assert [name_of(path) for path in SOURCES if vague & {path.stem, path.parent.name}] == []
    assert [name_of(path) for path in SOURCES if not well_named.fullmatch(path.stem)] == []


def test_modules_have_docstrings() -> None:
    assert [name_of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))] == []


def test_file_lengths() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_function_lengths() -> None:
    lengths = {
        f"{name_of(path)}:{node.lineno} {node.name}": code_lines(node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


@pytest.mark.parametrize("name", get_all_passes())
def test_pass_has_one_name_in_four_places(name: str) -> None:
    pass_class = get_all_passes()[name]()
    assert pass_class.name == name
    assert pass_class.__name__ == class_name(name)
    assert pass_class.__module__.startswith(f"halfulp.compiler.passes.{module_name(name)}")
    assert (ROOT / "tests" / "filecheck" / "passes" / f"{name}.mlir").is_file()
