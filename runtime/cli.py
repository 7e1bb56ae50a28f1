"""The `halfulp` command. A subcommand imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import sys

import click


@click.group()
@click.version_option(package_name="halfulp", prog_name="halfulp")
def main() -> None:
    """Compile numeric graphs and kernels with control over every rounding."""


# The options belong to the program behind the command; `--help` too is passed on.
@main.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    short_help="Read IR, run passes, print any stage.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def opt(arguments: tuple[str, ...]) -> None:
    """Read IR, run passes, print any stage: the same program as halfulp-opt."""
    from halfulp.compiler.opt import main as opt_main

    sys.exit(opt_main(arguments))


if __name__ == "__main__":
    main()
