"""`halfulp explain`: what becomes of a graph of a Python file, as text or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from .faults import one_line_errors, writing


@click.command("explain", short_help="What becomes of a graph: kernels, bytes, roundings, memory.")
@click.argument("place", metavar="FILE.py:NAME")
@click.option("-o", "--output", metavar="FILE.html", help="Write a page, readable offline, instead of printing.")
@click.option("--size", "sizes", metavar="NAME=N", multiple=True, help="The value of a symbol. May be repeated.")
@click.option("--option", "settings", metavar="NAME=VALUE", multiple=True, help="A CompileOptions argument.")
def command(place: str, output: str | None, sizes: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Show what becomes of the graph NAME of FILE.py, or of the one that its function NAME returns.

    For each kernel: its ops, the bytes that it reads and writes, its float operations and roundings. Then what
    contracts, and the memory plan. Symbols that --size does not name get a size that keeps inputs moderate.
    """
    from halfulp.compiler.opt import parse_options

    from ..debug.explain import explain_graph
    from ..graph_file import graph_from_file

    with one_line_errors():
        options = parse_options(" ".join(settings), "--option")
        bound = dict(map(_size, sizes))
        graph = graph_from_file(place)
        report = explain_graph(graph, options, bound)
        if output is None:
            click.echo(str(report))
            return
        from ..debug.explain_html import page

        with writing(output):
            Path(output).write_text(page(graph, report), encoding="utf-8")


def _size(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not (name and equals and number.isdecimal()):
        raise click.UsageError(f"--size: '{text}' must be NAME=N, such as batch=8")
    return name, int(number)
