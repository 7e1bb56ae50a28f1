"""`halfulp opt`: the same program as `halfulp-opt`."""

from __future__ import annotations

import sys

import click


# The options belong to the program behind the command; `--help` too is passed on.
@click.command(
    "opt",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    short_help="Read IR, run passes, print any stage.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Read IR, run passes, print any stage: the same program as halfulp-opt."""
    from halfulp.compiler.opt import main as opt_main

    sys.exit(opt_main(arguments))
