"""A matrix of modes as one page without scripts: tables, histograms in ulp, the graph with what contracts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from halfulp.compiler.graph import Graph
from halfulp.compiler.locations import location_of
from halfulp.compiler.op_numerics import numbered_ops

from .bisect import Bisection
from .comparison import OutputResult
from .contractions import contracted_ops
from .fastmath import FastmathMatrix, ModeResult
from .fastmath_text import HEADINGS, matrix_row, same_bits_groups
from .graph_picture import STYLE as PICTURE_STYLE
from .graph_picture import graph_picture
from .histogram_picture import STYLE as HISTOGRAM_STYLE
from .histogram_picture import histogram_picture
from .html_page import html_page
from .modes import mode_options

CONTRACTING = ("fast", "excess-fast")
"""The modes whose contractions the picture marks: the second one finds those of bf16 and f16."""

STYLE = """
.closer { color: var(--good); } .worse { color: var(--bad); }
.key { display: inline-block; width: 0.9em; height: 0.9em; border: 2px solid var(--strong); vertical-align: -0.1em; }
"""


def page(graph: Graph, matrix: FastmathMatrix, bisections: Sequence[Bisection] = ()) -> str:
    """The page, as HTML; everything is inside it."""
    title = f"Numeric modes of graph {matrix.graph}"
    worked = [result for result in matrix.modes if result.problem is None]
    parts = [
        f"<p>Inputs {escape(matrix.inputs)}. Baseline: {escape(matrix.baseline)}. Errors are distances from "
        f"{escape(matrix.reference)}.</p>",
        *(_output_section(worked, index) for index in range(len(worked[0].outputs) if worked else 0)),
        _groups(matrix.modes, worked),
        *_causes(bisections),
        _graph_section(graph, bisections),
    ]
    return html_page(title, parts, STYLE + HISTOGRAM_STYLE + PICTURE_STYLE)


def _output_section(worked: Sequence[ModeResult], index: int) -> str:
    first = worked[0].outputs[index]
    head = f"{first.output}: {first.dtype} [{', '.join(map(str, first.shape))}], {first.elements} elements"
    rows = "".join(_row(result, result.outputs[index]) for result in worked)
    headings = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADINGS)
    charts = "".join(
        f"<figure><figcaption>{escape(', '.join(group))}</figcaption>"
        f"{histogram_picture(output.histogram, output.output)}</figure>"
        for group, output in _distinct(worked, index)
    )
    note = (
        '<p class="soft">How many elements are how many numbers away from the baseline\'s; heights are logarithmic.</p>'
        f'<div class="charts">{charts}</div>'
        if charts
        else '<p class="soft">No mode changes a bit of it.</p>'
    )
    return (
        f'<h2>{escape(head)}</h2>\n<div class="scroll"><table><thead><tr>{headings}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n{note}"
    )


def _row(result: ModeResult, output: OutputResult) -> str:
    cells = matrix_row(result, output)
    kinds = {"closer": ' class="closer"', "worse": ' class="worse"'}
    return "<tr>" + "".join(f"<td{kinds.get(cell, '')}>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _distinct(worked: Sequence[ModeResult], index: int) -> list[tuple[list[str], OutputResult]]:
    """The groups of modes with equal bits that differ from the baseline in this output."""
    outputs = {result.mode: result.outputs[index] for result in worked}
    return [(group, outputs[group[0]]) for group in same_bits_groups(worked) if outputs[group[0]].differing]


def _groups(modes: Sequence[ModeResult], worked: Sequence[ModeResult]) -> str:
    lines = [f"The same bits: {', '.join(group)}." for group in same_bits_groups(worked) if len(group) > 1]
    lines += [f"{result.mode} is not possible: {result.problem}" for result in modes if result.problem is not None]
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else ""


def _causes(bisections: Sequence[Bisection]) -> list[str]:
    return ["<h2>Which ops make the difference</h2>"] * bool(bisections) + [
        f"<pre>{escape(str(found))}</pre>" for found in bisections
    ]


def _graph_section(graph: Graph, bisections: Sequence[Bisection]) -> str:
    marks: dict[int, list[str]] = {}
    sums: dict[int, int] = {}
    for mode in CONTRACTING:
        sums |= contracted_ops(graph, mode_options(mode))
    for number, product in sums.items():
        marks.setdefault(number, []).append("contracted")
        marks.setdefault(product, []).append("product")
    for found in bisections:
        for site in found.sites:
            marks.setdefault(site.number, []).append("cause")
    picture = graph_picture(graph, {number: " ".join(dict.fromkeys(names)) for number, names in marks.items()})
    shown = f'<div class="scroll">{picture}</div>' if picture else "<p>The graph is too large for a picture.</p>"
    lines = {number: location_of(op) for number, op in numbered_ops(graph.module) if number in sums}
    places = [f"op {number}: {at.with_source() if at else 'no source line is known'}" for number, at in lines.items()]
    listed = f"<pre>{escape(chr(10).join(places))}</pre>" if places else "<p>Nothing contracts.</p>"
    return (
        '<h2>The graph</h2>\n<p><span class="key" style="background: var(--mark)"></span> a sum that becomes one fma '
        'under <b>fast</b>, <span class="key" style="background: var(--mark2)"></span> the product in it'
        f"{', red outline: found by bisection' if bisections else ''}. Point at an op for its source line.</p>\n"
        f"{shown}\n<h3>Contracted sites</h3>\n{listed}"
    )
