"""What README.md and the docstrings show is what happens."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from halfulp.runtime.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILECHECK_RUNNER = ROOT / "tests" / "filecheck" / "conftest.py"


def block(language: str) -> str:
    """The one code block of the README in this language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return str(text)


def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "README.md", "exec"), {})
    (shown,) = re.findall(r"^Saved as `model.py`, it prints `(.*?)`", README, flags=re.MULTILINE)
    assert capsys.readouterr().out == f"{shown}\n"


@pytest.mark.parametrize("command", ["explain", "fastmath --mode on --mode fast --bisect"])
def test_commands_on_the_python_example(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(block("python"), encoding="utf-8")
    name, *options = command.split()
    assert f"`halfulp {name} model.py:graph" in README
    result = CliRunner().invoke(main, [name, "model.py:graph", *options])
    assert (result.exit_code, result.stderr) == (0, "")


def test_filecheck_example(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(FILECHECK_RUNNER.read_text(encoding="utf-8"))
    pytester.makefile(".mlir", readme=block("mlir"))
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_make_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    shown = re.findall(r"^\$ make ([a-z]+)", README, flags=re.MULTILINE)
    assert shown == ["demo", "test"]
    assert set(shown) <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?://)([^)]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: str, link: str) -> bool:
    """Whether there is such a file or folder and, behind a ``#``, such a heading in it."""
    path, _, anchor = link.partition("#")
    target = ROOT / (path or page)
    if not anchor:
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def modules_with_examples() -> list[str]:
    """The modules of halfulp whose docstrings hold a Python prompt."""
    paths = (path for top in ("compiler", "ops", "runtime") for path in (ROOT / top).rglob("*.py"))
    with_prompt = (path for path in paths if ">>> " in path.read_text(encoding="utf-8"))
    names = (".".join(["halfulp", *path.relative_to(ROOT).with_suffix("").parts]) for path in with_prompt)
    return sorted(name.removesuffix(".__init__") for name in names)


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
