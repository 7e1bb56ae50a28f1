"""`halfulp cache`: the folder of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .faults import one_line_errors

if TYPE_CHECKING:
    from ..cache import DiskCache


@click.group("cache", short_help="What the folder of compiled code holds; empty it.")
def command() -> None:
    """The folder of compiled code: HALFULP_CACHE_DIR, or halfulp in the user's folder for caches."""


@command.command()
def info() -> None:
    """Say where the folder is and what it holds."""
    found = _disk_cache().info()
    click.echo(f"folder:  {found.folder}")
    click.echo(f"entries: {found.entries}")
    click.echo(f"size:    {found.nbytes / 2**20:.1f} of {found.limit / 2**20:.0f} MiB")
    if found.problem is not None:
        click.echo(f"not used: it {found.problem}")


@command.command()
def clear() -> None:
    """Remove all entries. Programs that run keep what they have loaded."""
    found = _disk_cache()
    if problem := found.info().problem:
        raise click.ClickException(f"the cache folder {found.folder} is left alone: it {problem}")
    removed = found.clear()
    click.echo(f"removed {removed} {'entry' if removed == 1 else 'entries'} from {found.folder}")


def _disk_cache() -> DiskCache:
    from ..cache import disk_cache

    with one_line_errors():
        found = disk_cache()
    if found is None:
        raise click.ClickException("there is no cache: HALFULP_CACHE turns it off, or there is no home folder")
    return found
