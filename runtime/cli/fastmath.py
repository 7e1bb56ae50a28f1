"""`halfulp fastmath`: a graph of a Python file under every numeric mode."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .faults import one_line_errors, writing

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph

    from ..debug import Bisection, Classification, FastmathMatrix

MODES = "off, on, fast, llvm, a fastmath flag, reassoc-nsz, all-flags, round-each, excess, excess-fast"


@dataclass
class Asked:
    """What the command line asks for."""

    graph: Graph
    inputs: dict[str, Any] | None
    modes: list[str] | None
    baseline: str
    reference: Any
    done: dict[str, Any] = field(default_factory=dict)


@click.command("fastmath", short_help="A graph under every numeric mode: what differs, and which op did it.")
@click.argument("place", metavar="FILE.py:NAME")
@click.option("--inputs", metavar="FILE.npz", help="Inputs and weights by name. Seeded ones are made without it.")
@click.option("--mode", "modes", metavar="MODE", multiple=True, help=f"Only this mode ({MODES}). May be repeated.")
@click.option("--baseline", metavar="MODE", default="on", show_default=True, help="What the modes are compared with.")
@click.option(
    "--reference",
    type=click.Choice(["float64", "torch"]),
    help="What errors are measured from: the graph in float64, or --torch. Default: float64.",
)
@click.option(
    "--torch",
    "torch_place",
    metavar="PLACE",
    help="A function FILE.py:NAME of torch tensors, called in float64, or a file of outputs (.pt, .npz, .npy, ...).",
)
@click.option("--matrix", is_flag=True, help="The table of modes; the default if nothing else is asked for.")
@click.option("--bisect", is_flag=True, help="The smallest set of ops that makes each mode differ from the baseline.")
@click.option("--classify", metavar="FILE", help="Explain another program's outputs bit by bit (.npy, .npz, .pt, ...).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--html", metavar="FILE", help="Write a page with histograms and the graph, all in one file.")
def command(
    place: str,
    inputs: str | None,
    modes: tuple[str, ...],
    baseline: str,
    reference: str | None,
    torch_place: str | None,
    matrix: bool,
    bisect: bool,
    classify: str | None,
    as_json: bool,
    html: str | None,
) -> None:
    """Run the graph NAME of FILE.py, or the one that its function NAME returns, under each numeric mode.

    Exit codes: 0 whether or not anything differs; 1 for a fault in the file, the graph, the inputs or the reference;
    2 for a mistake on the command line, an unknown mode among them.
    """
    _check_command_line(modes, baseline, reference, torch_place)
    with one_line_errors():
        asked = _asked(place, inputs, modes, baseline, torch_place if reference != "float64" else None)
        if matrix or html or not (bisect or classify):
            asked.done["matrix"] = _matrix(asked, timed=True)
        if bisect:
            asked.done["bisections"] = _bisections(asked)
        if classify:
            from ..debug import classify_graph

            asked.done["classification"] = classify_graph(asked.graph, classify, asked.inputs, weights=asked.inputs)
    if html:
        _write_page(asked, html)
    _show(asked, as_json, matrix or not (bisect or classify))


def _check_command_line(modes: tuple[str, ...], baseline: str, reference: str | None, torch_place: str | None) -> None:
    from halfulp.compiler.errors import NotFoundError

    from ..debug.modes import mode_options

    for option, mode in (*(("--mode", mode) for mode in modes), ("--baseline", baseline)):
        try:
            mode_options(mode)
        except NotFoundError as error:
            raise click.UsageError(f"{option}: {error}") from None
    if reference == "torch" and torch_place is None:
        raise click.UsageError(
            "--reference torch needs to know where torch's result is; add --torch FILE.py:FUNCTION or --torch FILE.pt"
        )


def _asked(place: str, inputs: str | None, modes: tuple[str, ...], baseline: str, torch_place: str | None) -> Asked:
    from ..debug.tensor_files import read_tensors
    from ..graph_file import graph_from_file

    graph = graph_from_file(place)
    given = None if inputs is None else read_tensors(inputs)
    reference: Any = "float64" if torch_place is None else _torch_outputs(torch_place)
    return Asked(graph, given, list(modes) or None, baseline, reference)


def _torch_outputs(place: str) -> Any:
    """A function that runs torch, or the tensors of a file in their order."""
    from ..debug.tensor_files import read_tensors
    from ..debug.torch_reference import torch_reference
    from ..graph_file import function_from_file

    if ":" in place:
        return torch_reference(function_from_file(place))
    return list(read_tensors(place).values())


def _matrix(asked: Asked, timed: bool) -> FastmathMatrix:
    from ..debug import fastmath_matrix

    return fastmath_matrix(
        asked.graph,
        asked.inputs,
        weights=asked.inputs,
        modes=asked.modes,
        baseline=asked.baseline,
        reference=asked.reference,
        timed=timed,
    )


def _bisections(asked: Asked) -> list[Bisection]:
    """One for each group of modes that differs from the baseline in the same bits; with none, one that says so."""
    from ..debug import bisect_flags

    found = asked.done.get("matrix") or _matrix(asked, timed=False)
    wanted = [
        result.mode
        for result in found.modes
        if result.same_as is None and any(output.differing for output in result.outputs)
    ]
    with _progress_bar(wanted) as shown:
        return [
            bisect_flags(asked.graph, asked.inputs, mode=mode, baseline=asked.baseline, weights=asked.inputs)
            for mode in shown
        ]


@contextmanager
def _progress_bar(modes: list[str]) -> Iterator[Iterable[str]]:
    """The modes, with a bar on stderr that follows them; none where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield modes
        return
    with click.progressbar(
        modes, label="searching", file=sys.stderr, item_show_func=lambda mode: mode, show_eta=False
    ) as bar:
        yield bar


def _write_page(asked: Asked, html: str) -> None:
    from ..debug.fastmath_html import page

    text = page(asked.graph, asked.done["matrix"], asked.done.get("bisections", ()))
    with writing(html):
        Path(html).write_text(text, encoding="utf-8")


def _show(asked: Asked, as_json: bool, with_matrix: bool) -> None:
    import msgspec

    shown = {key: value for key, value in asked.done.items() if key != "matrix" or with_matrix}
    if as_json:
        click.echo(msgspec.json.encode(shown).decode())
        return
    parts: list[str] = []
    if "matrix" in shown:
        parts.append(str(shown["matrix"]))
    if "bisections" in shown:
        parts += [str(found) for found in shown["bisections"]] or [_nothing_differs(asked)]
    classification: dict[str, Classification] = shown.get("classification", {})
    parts += [f"{name}: {found}" for name, found in classification.items()]
    click.echo("\n\n".join(parts))


def _nothing_differs(asked: Asked) -> str:
    modes = "no mode" if asked.modes is None else f"none of {', '.join(asked.modes)}"
    return f"graph {asked.graph.name}: {modes} changes a bit of an output, so no op makes a difference"
