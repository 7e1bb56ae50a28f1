"""The `halfulp` command. A subcommand imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from .cache import DiskCache


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


@main.group(short_help="What the folder of compiled code holds; empty it.")
def cache() -> None:
    """The folder of compiled code: HALFULP_CACHE_DIR, or halfulp in the user's folder for caches."""


@cache.command()
def info() -> None:
    """Say where the folder is and what it holds."""
    found = _disk_cache().info()
    click.echo(f"folder:  {found.folder}")
    click.echo(f"entries: {found.entries}")
    click.echo(f"size:    {found.nbytes / 2**20:.1f} of {found.limit / 2**20:.0f} MiB")
    if found.problem is not None:
        click.echo(f"not used: it {found.problem}")


@cache.command()
def clear() -> None:
    """Remove all entries. Programs that run keep what they have loaded."""
    found = _disk_cache()
    if problem := found.info().problem:
        raise click.ClickException(f"the cache folder {found.folder} is left alone: it {problem}")
    removed = found.clear()
    click.echo(f"removed {removed} {'entry' if removed == 1 else 'entries'} from {found.folder}")


def _disk_cache() -> DiskCache:
    from halfulp.compiler.errors import HalfulpError

    from .cache import disk_cache

    try:
        found = disk_cache()
    except HalfulpError as error:
        raise click.ClickException(str(error)) from None
    if found is None:
        raise click.ClickException("there is no cache: HALFULP_CACHE turns it off, or there is no home folder")
    return found


if __name__ == "__main__":
    main()
