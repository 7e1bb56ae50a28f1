"""The `halfulp` command."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from click.testing import CliRunner

from halfulp.runtime.cli import main

SQUARE = "func.func @square(%x: f32) -> f32 {\n  func.return %x : f32\n}\n"


def test_help_lists_the_subcommands() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "opt  Read IR, run passes, print any stage." in result.output


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
