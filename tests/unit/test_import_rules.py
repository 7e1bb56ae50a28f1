"""Who may import whom.

`ops -> compiler <- runtime`: the compiler knows neither, and of the runtime only the pipelines and the
debugging tools know the ops. Inside a top folder imports are relative, across they are absolute.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_FOLDERS = ("compiler", "ops", "runtime")
SOURCES = sorted(path for top in TOP_FOLDERS for path in (ROOT / top).rglob("*.py"))

# Which other top folders a file may import, by the longest prefix of its path.
MAY_IMPORT = {
    "compiler/": set[str](),
    "ops/": {"compiler"},
    "runtime/": {"compiler"},
    "runtime/debug/": {"compiler", "ops"},
    "runtime/pipelines/": {"compiler", "ops"},
}
MAY_IMPORT_LLVMLITE = ("compiler/codegen/", "runtime/loader")  # loader.py or a package
MODULE_OF_PACKAGE = {"cuda-bindings": "cuda"}  # where the two names differ


@dataclass(frozen=True)
class Import:
    """One imported module: its absolute name, how it was written and where."""

    module: str
    relative: bool
    deferred: bool  # inside a function, or for type checkers only
    line: int


def imports_of(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """The imports of a module that lies in `package`, such as ("halfulp", "compiler")."""
    tree = ast.parse(source)
    deferred = {id(inner) for node in ast.walk(tree) if defers(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, False, id(node) in deferred, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                module = ".".join([*base, alias.name])
                yield Import(module, node.level > 0, id(node) in deferred, node.lineno)


def defers(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def faults(source: str, path: str, dependencies: set[str], optional: set[str]) -> Iterator[str]:
    """What breaks a rule in the file with this text and this path below the root."""
    top = path.split("/")[0]
    package = ("halfulp", *Path(path).parent.parts)
    allowed = MAY_IMPORT[max((prefix for prefix in MAY_IMPORT if path.startswith(prefix)), key=len)]
    for found in imports_of(source, package):
        parts = found.module.split(".")
        if parts[0] == "halfulp":
            if found.relative and parts[1:2] != [top]:
                yield f"{path}:{found.line} leaves {top}/ by a relative import; write {found.module}"
            elif not found.relative and parts[1] == top:
                yield f"{path}:{found.line} must import {found.module} relatively"
            elif parts[1] != top and parts[1] not in allowed:
                yield f"{path}:{found.line} must not import {found.module}"
        elif parts[0] == "llvmlite" and not path.startswith(MAY_IMPORT_LLVMLITE):
            yield f"{path}:{found.line} must not import llvmlite"
        elif parts[0] not in sys.stdlib_module_names | dependencies:
            if parts[0] not in optional:
                yield f"{path}:{found.line} imports {parts[0]}, which pyproject.toml does not list"
            elif not found.deferred:
                yield f"{path}:{found.line} must import {parts[0]}, an optional package, inside a function"


def modules(requirements: list[str]) -> set[str]:
    names = [re.split(r"[<>=!~;\[ ]", requirement)[0] for requirement in requirements]
    return {MODULE_OF_PACKAGE.get(name, name.replace("-", "_")) for name in names}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = modules(PROJECT["dependencies"])
OPTIONAL = modules([r for extra, rs in PROJECT["optional-dependencies"].items() if extra != "test" for r in rs])


def test_imports_follow_the_rules() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in SOURCES}
    assert [f for path, text in texts.items() for f in faults(text, path, DEPENDENCIES, OPTIONAL)] == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("compiler/a.py", "from halfulp import ops", "compiler/a.py:1 must not import halfulp.ops"),
        ("compiler/a.py", "import halfulp.runtime.model", "compiler/a.py:1 must not import halfulp.runtime.model"),
        ("compiler/a.py", "from halfulp.compiler import b", "compiler/a.py:1 must import halfulp.compiler.b rel"),
        ("compiler/p/a.py", "from ...ops import b", "compiler/p/a.py:1 leaves compiler/ by a relative import"),
        ("ops/a.py", "def f():\n  from halfulp.runtime import b", "ops/a.py:2 must not import halfulp.runtime.b"),
        ("runtime/a.py", "from halfulp.ops import b", "runtime/a.py:1 must not import halfulp.ops.b"),
        ("runtime/a.py", "def f():\n  import llvmlite.binding", "runtime/a.py:2 must not import llvmlite"),
        ("runtime/a.py", "import numpy\nimport torch", "runtime/a.py:2 must import torch, an optional package"),
        ("runtime/a.py", "def f():\n  import scipy", "runtime/a.py:2 imports scipy, which pyproject.toml"),
    ],
)
def test_fault_is_found(path: str, source: str, fault: str) -> None:
    (message,) = faults(source, path, {"numpy"}, {"torch"})
    assert message.startswith(fault)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("compiler/p/a.py", "from ..dims import Dim\nfrom . import b\nimport numpy.linalg"),
        ("ops/a.py", "from halfulp.compiler import Graph"),
        ("runtime/pipelines/a.py", "from halfulp import ops\nfrom ..model import Model"),
        ("runtime/a.py", "import os.path\ndef f():\n  import torch"),
        ("compiler/codegen/a.py", "import llvmlite.binding"),
    ],
)
def test_allowed_import_is_not_a_fault(path: str, source: str) -> None:
    assert list(faults(source, path, {"numpy", "llvmlite"}, {"torch"})) == []


def loaded_after(statement: str, folder: Path) -> set[str]:
    command = [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_does_not_load_llvm(tmp_path: Path) -> None:
    loaded = loaded_after("import halfulp.compiler, halfulp.ops, halfulp.runtime", tmp_path)
    assert loaded & {"llvmlite", *OPTIONAL} == set()


def test_command_line_starts_without_the_compiler(tmp_path: Path) -> None:
    loaded = loaded_after("import halfulp.runtime.cli", tmp_path)
    assert loaded & {"numpy", "xdsl", "llvmlite"} == set()
