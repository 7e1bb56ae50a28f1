"""Runs `*.mlir` and `*.py` files as FileCheck tests, each RUN line a test of its own, without starting a process.

A file begins with lines such as

    // RUN: halfulp-opt %s -p cse | filecheck %s --check-prefix=CSE

where `%s` is the file itself. A line that ends in a backslash goes on in the next `// RUN:` line. In a Python file the
line reads `# RUN: python %s | filecheck %s`, and what the file prints is checked.
"""

from __future__ import annotations

import re
import runpy
import shlex
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser

from halfulp.compiler.opt import main as halfulp_opt

RUN_LINE = re.compile(r"^\s*(?://|#)\s*RUN:(.*)$")
CHECK_LINE = re.compile(r"^\s*(?://|#)\s*([A-Z][A-Z0-9_-]*)(?:\{LITERAL\})?:")
DIRECTIVE = re.compile(r"-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)$")
NOT_CHECKS = {"RUN", "COM"}


class FileCheckError(Exception):
    """A RUN line whose program failed or whose output does not match; the text is the report."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    if file_path.suffix == ".mlir" or (file_path.suffix == ".py" and file_path.parent.name == "kernels"):
        return FileCheckFile.from_parent(parent, path=file_path)
    return None


class FileCheckFile(pytest.File):
    """One `.mlir` or `.py` file."""

    def collect(self) -> Iterator[RunLine]:
        text = self.path.read_text(encoding="utf-8")
        prefixes: set[str] = set()
        for number, command in enumerate(run_commands(text), start=1):
            program, options = split_command(command, self.path)
            prefixes.update(options.check_prefixes)
            name = f"RUN{number}-{'+'.join(options.check_prefixes)}"
            yield RunLine.from_parent(self, name=name, command=command, arguments=program, options=options)
        if not prefixes:
            raise self.CollectError(f"{self.path}: no RUN line")
        if unread := check_prefixes(text) - prefixes:
            raise self.CollectError(f"{self.path}: no RUN line reads the checks {', '.join(sorted(unread))}")


class RunLine(pytest.Item):
    """One RUN line: the program and its arguments, and what filecheck makes of its output."""

    def __init__(self, *, command: str, arguments: list[str], options: Options, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.command = command
        self.arguments = arguments
        self.options = options

    def runtest(self) -> None:
        output, errors = StringIO(), StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            status = run_program(self.arguments)
        if status:
            reason = f"{self.arguments[0]} failed with exit status {status}:\n{errors.getvalue()}"
        else:
            reason = match(output.getvalue(), self.options)
        if reason:
            shown = output.getvalue() or "(nothing)\n"
            raise FileCheckError(f"RUN:{self.command}\n\n{reason}\noutput of {self.arguments[0]}:\n{shown}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, FileCheckError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.name}"


def run_commands(text: str) -> list[str]:
    """The RUN lines, continued ones joined."""
    joined = "\n".join(found[1] for line in text.splitlines() if (found := RUN_LINE.match(line)))
    return joined.replace("\\\n", "").splitlines()


def check_prefixes(text: str) -> set[str]:
    """The prefixes of all lines that look like checks."""
    labels = {found[1] for line in text.splitlines() if (found := CHECK_LINE.match(line))}
    return {DIRECTIVE.sub("", label) for label in labels} - NOT_CHECKS


def split_command(command: str, path: Path) -> tuple[list[str], Options]:
    """`PROGRAM A... | filecheck B...` as the program with the arguments A and the options B, with `%s` replaced."""
    program, pipe, checker = command.partition("|")
    arguments = [word.replace("%s", str(path)) for word in shlex.split(program)]
    checks = [word.replace("%s", str(path)) for word in shlex.split(checker)]
    program_name = "python" if path.suffix == ".py" else "halfulp-opt"
    if not pipe or arguments[:1] != [program_name] or checks[:1] != ["filecheck"]:
        raise pytest.Collector.CollectError(
            f"{path}: a RUN line must read '{program_name} ... | filecheck ...', not '{command.strip()}'"
        )
    return arguments, parse_argv_options(checks)


def run_program(command: list[str]) -> int:
    """Exit status of halfulp-opt, also where argparse ends the program, or of a Python file."""
    try:
        if command[0] == "python":
            return run_file(command[1])
        return halfulp_opt(command[1:])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


def run_file(path: str) -> int:
    """0 if the file runs to its end; else its traceback is printed."""
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def match(output: str, options: Options) -> str:
    """What filecheck has to say about `output`: nothing when it matches."""
    matcher = Matcher(options, FInput("<output>", output), Parser.from_opts(options))
    matcher.stderr = StringIO()
    return matcher.stderr.getvalue() if matcher.run() else ""
