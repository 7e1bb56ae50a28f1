"""The `halfulp` command."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from halfulp.runtime import cli
from halfulp.runtime.cache import DiskCache
from halfulp.runtime.cli import COMMANDS, main

SQUARE = "func.func @square(%x: f32) -> f32 {\n  func.return %x : f32\n}\n"


def test_help_lists_the_subcommands() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert re.search(r"^  opt +Read IR, run passes, print any stage\.$", result.output, re.MULTILINE)
    assert re.search(r"^  cache +What the folder of compiled code holds; empty it\.$", result.output, re.MULTILINE)


def test_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"halfulp, version {version('halfulp')}\n"


def test_opt_is_halfulp_opt() -> None:
    result = CliRunner().invoke(main, ["opt", "-p", "dce", "--print-op-generic"], input=SQUARE)
    assert result.exit_code == 0
    assert '"func.return"(%x) : (f32) -> ()' in result.output


@pytest.mark.parametrize(("arguments", "status"), [(["no-such-file"], 1), (["-p", "no-such-pass"], 2)])
def test_opt_passes_the_exit_status_on(arguments: list[str], status: int) -> None:
    assert CliRunner().invoke(main, ["opt", *arguments]).exit_code == status


def test_help_of_opt_is_that_of_halfulp_opt() -> None:
    result = CliRunner().invoke(main, ["opt", "--help"])
    assert result.exit_code == 0
    assert result.output.startswith("usage: halfulp-opt ")
    assert "--emit STAGE" in result.output


def test_cache_says_what_it_holds_and_clears_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "1")
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HALFULP_CACHE_SIZE", "7")
    DiskCache(tmp_path / "cache").put("key", bytes(300_000))
    text = f"folder:  {tmp_path / 'cache'}\nentries: 1\nsize:    0.3 of 7 MiB\n"
    assert CliRunner().invoke(main, ["cache", "info"]).output == text
    assert CliRunner().invoke(main, ["cache", "clear"]).output == f"removed 1 entry from {tmp_path / 'cache'}\n"
    assert CliRunner().invoke(main, ["cache", "clear"]).output == f"removed 0 entries from {tmp_path / 'cache'}\n"
    (tmp_path / "cache").chmod(0o777)
    problem = "can be written by other users; run chmod go-w on it"
    assert CliRunner().invoke(main, ["cache", "info"]).output.endswith(f"not used: it {problem}\n")
    refused = CliRunner().invoke(main, ["cache", "clear"])
    assert (refused.exit_code, refused.output) == (
        1,
        f"Error: the cache folder {tmp_path / 'cache'} is left alone: it {problem}\n",
    )


def test_cache_that_is_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "0")
    result = CliRunner().invoke(main, ["cache", "info"])
    assert result.exit_code == 1
    assert result.output == "Error: there is no cache: HALFULP_CACHE turns it off, or there is no home folder\n"


def test_each_subcommand_is_a_module_and_the_list_is_sorted() -> None:
    folder = Path(cli.__file__).parent
    modules = {path.stem.replace("_", "-") for path in folder.glob("*.py") if not path.stem.startswith("__")}
    assert sorted(COMMANDS) == list(COMMANDS)
    assert set(COMMANDS) == modules - {"faults"}
