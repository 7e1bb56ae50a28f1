"""`halfulp compile`: a graph of a Python file becomes a stage's text, or a model in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .faults import one_line_errors, writing

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions
    from halfulp.compiler.steps import Progress


@click.command("compile", short_help="Compile a graph of a Python file: print a stage, or save the model.")
@click.argument("place", metavar="FILE.py:NAME")
@click.option("--emit", metavar="STAGE", help="Print a stage: graph, tile, loops, gpu, llvm, ll, asm, ptx or sass.")
@click.option("--target", metavar="ARCH", help="Compile for a GPU: sm_80, sm_90 or sm_100.")
@click.option("--ptxas-info", is_flag=True, help="Say what each kernel takes of a GPU, as ptxas has it.")
@click.option("-o", "--output", metavar="FILE", help="Write the compiled model, or with --emit the stage, to FILE.")
@click.option("--option", "settings", metavar="NAME=VALUE", multiple=True, help="A CompileOptions argument.")
def command(
    place: str,
    emit: str | None,
    target: str | None,
    ptxas_info: bool,
    output: str | None,
    settings: tuple[str, ...],
) -> None:
    """Compile the graph NAME of FILE.py, or the one that its function NAME returns.

    A model that -o writes is loaded with InferenceSession.load_compiled; weights are not part of it.
    """
    from halfulp.compiler.opt import parse_options

    from ..graph_file import graph_from_file

    with one_line_errors():
        options = parse_options(" ".join(settings), "--option")
        graph = graph_from_file(place)
        if emit is not None:
            _print_stage(graph, emit, options, target, output)
        elif target is not None and not ptxas_info:
            raise click.UsageError("--target: a model for a GPU cannot be saved; use --emit ptx or --ptxas-info")
        elif not ptxas_info:
            _compile_model(graph, options, output)
        if ptxas_info:
            _print_usage(graph, options, target)


def _print_usage(graph: Graph, options: CompileOptions, target: str | None) -> None:
    """A line for each kernel, to stderr, since a stage may go to stdout."""
    from halfulp.compiler.codegen.ptx import DEFAULT_ARCHITECTURE
    from halfulp.compiler.codegen.ptxas import assemble
    from halfulp.compiler.pipeline import emit, faults_of_passes

    arch = target or DEFAULT_ARCHITECTURE
    with faults_of_passes():
        text = emit(graph.module.clone(), "ptx", options, arch)
    _, usage = assemble(text, arch)
    for kernel in usage:
        click.echo(kernel, err=True)


def _print_stage(graph: Graph, stage: str, options: CompileOptions, target: str | None, output: str | None) -> None:
    from halfulp.compiler.errors import near_names
    from halfulp.compiler.pipeline import ALL_STAGES, emit, faults_of_passes

    if stage not in ALL_STAGES:
        hint = near_names(stage, ALL_STAGES) or f"; stages are {', '.join(ALL_STAGES)}"
        raise click.UsageError(f"--emit: there is no stage '{stage}'{hint}")
    with _progress_bar(graph.name) as progress, faults_of_passes():
        text = emit(graph.module.clone(), stage, options, target, progress).rstrip("\n") + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        with writing(output):
            Path(output).write_text(text, encoding="utf-8")


def _compile_model(graph: Graph, options: CompileOptions, output: str | None) -> None:
    from ..loading import load_graph
    from ..precompiled import write_precompiled

    with _progress_bar(graph.name) as progress:
        compiled = load_graph(graph, options, progress).compiled
    if output is not None:
        with writing(output):
            write_precompiled(compiled, Path(output))
    kernels = len(set(compiled.steps) - {"check"})
    where = "" if output is None else f", written to {output}"
    click.echo(
        f"{graph.name}: {kernels} {'kernel' if kernels == 1 else 'kernels'}, {len(compiled.object_code)} bytes{where}"
    )


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
