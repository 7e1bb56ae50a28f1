"""The `halfulp` command. Each subcommand is a module of its own, imported when it is asked for.

A subcommand ``compare-tensors`` is the object ``command`` of the module ``compare_tensors``, and its name is in
`COMMANDS`. At its top such a module imports click and the standard library only, so that ``--help`` is quick; what
it needs to do its work it imports inside functions.

Exit codes, of every subcommand but ``opt``: 0; 1 for an error in what it was given to work on; 2 for a mistake on
the command line.
"""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = ("cache", "compare-tensors", "compile", "explain", "fastmath", "opt")
"""The subcommands, in the order in which ``--help`` lists them."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all subcommands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of this name, None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f".{cmd_name.replace('-', '_')}", __name__).command
        assert isinstance(found, click.Command)
        return found


@click.group(cls=LazyGroup)
@click.version_option(package_name="halfulp", prog_name="halfulp")
def main() -> None:
    """Compile numeric graphs and kernels with control over every rounding."""
