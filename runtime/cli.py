"""The `halfulp` command. A subcommand imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions
    from halfulp.compiler.steps import Progress

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


@main.command("compile", short_help="Compile a graph of a Python file: print a stage, or save the model.")
@click.argument("place", metavar="FILE.py:NAME")
@click.option("--emit", metavar="STAGE", help="Print a stage: graph, tile, loops, llvm, ll or asm.")
@click.option("-o", "--output", metavar="FILE", help="Write the compiled model, or with --emit the stage, to FILE.")
@click.option("--option", "settings", metavar="NAME=VALUE", multiple=True, help="A CompileOptions argument.")
def compile_(place: str, emit: str | None, output: str | None, settings: tuple[str, ...]) -> None:
    """Compile the graph NAME of FILE.py, or the one that its function NAME returns.

    A model that -o writes is loaded with InferenceSession.load_compiled; weights are not part of it.
    """
    from halfulp.compiler.errors import HalfulpError
    from halfulp.compiler.opt import CommandLineError, parse_options

    from .graph_file import graph_from_file

    try:
        options = parse_options(" ".join(settings), "--option")
        graph = graph_from_file(place)
        if emit is not None:
            _print_stage(graph, emit, options, output)
        else:
            _compile_model(graph, options, output)
    except CommandLineError as error:
        raise click.UsageError(str(error)) from None
    except HalfulpError as error:
        raise click.ClickException(str(error)) from None


def _print_stage(graph: Graph, stage: str, options: CompileOptions, output: str | None) -> None:
    from halfulp.compiler.errors import near_names
    from halfulp.compiler.pipeline import STAGES, emit

    if stage not in STAGES:
        hint = near_names(stage, STAGES) or f"; stages are {', '.join(STAGES)}"
        raise click.UsageError(f"--emit: there is no stage '{stage}'{hint}")
    text = emit(graph.module.clone(), stage, options).rstrip("\n") + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        with _writing(output):
            Path(output).write_text(text, encoding="utf-8")


def _compile_model(graph: Graph, options: CompileOptions, output: str | None) -> None:
    from .loading import load_graph
    from .precompiled import write_precompiled

    with _progress_bar(graph.name) as progress:
        compiled = load_graph(graph, options, progress).compiled
    if output is not None:
        with _writing(output):
            write_precompiled(compiled, Path(output))
    kernels = len(set(compiled.steps) - {"check"})
    where = "" if output is None else f", written to {output}"
    click.echo(
        f"{graph.name}: {kernels} {'kernel' if kernels == 1 else 'kernels'}, {len(compiled.object_code)} bytes{where}"
    )


@contextmanager
def _writing(output: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write {output}: {error.strerror or error}") from None


@contextmanager
def _progress_bar(name: str) -> Iterator[Progress | None]:
    """A bar on stderr that follows a compilation; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(
        length=1, label=f"compiling {name}", file=sys.stderr, item_show_func=lambda step: step, show_eta=False
    ) as bar:

        def show(done: int, total: int, step: str) -> None:
            bar.length = total
            bar.update(done - bar.pos, step)

        yield show


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
