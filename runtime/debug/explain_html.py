"""`GraphReport` as one page: the graph coloured by kernel, the kernels' costs, what contracts, the memory plan."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from halfulp.compiler.graph import Graph
from halfulp.compiler.kernel_costs import KernelCost, Use
from halfulp.compiler.types import shape_text

from ..memory_report import BufferUse, MemoryReport
from .contractions import contracted_ops
from .explain import GraphReport, byte_text, quantity
from .graph_picture import STYLE as PICTURE_STYLE
from .graph_picture import graph_picture
from .html_page import html_page, table

COLOURS = 8
_FILLS = [f".kernel{n} rect {{ fill: hsl({n * 360 // COLOURS} 65% var(--tint)); }}" for n in range(COLOURS)]
STYLE = "\n".join(
    [
        ":root { --tint: 85%; } @media (prefers-color-scheme: dark) { :root { --tint: 25%; } }",
        *(f".node{fill}\n.kernel{fill}" for fill in _FILLS),
        ".kernel rect { stroke: var(--line); } .kernel text { fill: var(--ink); font: 11px ui-monospace, monospace; }",
        ".axis { fill: var(--soft); font: 10px system-ui, sans-serif; }",
        "td:nth-child(-n+3), th:nth-child(-n+3) { text-align: left; }",
    ]
)
"""Neighbouring kernels get different colours; they repeat after a while."""

COLUMN, BAR_HEIGHT, MOST_HEIGHT = 74, 22, 640


def page(graph: Graph, report: GraphReport) -> str:
    """The page, as HTML; everything is inside it."""
    sizes = ", ".join(f"{name} = {size}" for name, size in report.sizes.items())
    options = f"fp_contract {report.options.fp_contract}, bf16 {report.options.bf16}"
    parts = [
        f'<p class="soft">{escape(sizes or "No symbols.")} · {escape(options)}</p>',
        *_graph_section(graph, report),
        *_kernel_section(report),
        *_contraction_section(report),
        *_memory_section(report.memory),
    ]
    return html_page(f"Graph {graph.name}", parts, PICTURE_STYLE + STYLE)


def _graph_section(graph: Graph, report: GraphReport) -> Iterator[str]:
    marks: dict[int, list[str]] = {}
    for number, cost in enumerate(report.kernels):
        for op in cost.ops:
            if op.number is not None:
                marks.setdefault(op.number, []).append(f"kernel{number % COLOURS}")
    for total, product in contracted_ops(graph, report.options).items():
        marks.setdefault(total, []).append("contracted")
        marks.setdefault(product, []).append("product")
    picture = graph_picture(graph, {number: " ".join(names) for number, names in marks.items()})
    yield "<h2>The graph</h2>"
    yield "<p>Ops of one colour are one kernel; a strong outline marks what contracts. Point at an op for its line.</p>"
    yield f'<div class="scroll">{picture}</div>' if picture else "<p>The graph is too large for a picture.</p>"


def _kernel_section(report: GraphReport) -> Iterator[str]:
    headings = ("", "kernels", "ops", "reads", "writes", "float operations", "roundings", "operations a byte")
    yield "<h2>Kernels</h2>"
    yield "<p>In the order in which they run. Each buffer counts once; an fma is two operations and one rounding.</p>"
    rows = [list(_kernel_row(report, number, cost)) for number, cost in enumerate(report.kernels)]
    yield table(headings, rows)
    moved = [report.number(cost.read_bytes + cost.written_bytes) for cost in report.kernels]
    yield f'<p class="soft">All of them move {byte_text(None if None in moved else sum(filter(None, moved)))}.</p>'
    yield "<h3>As formulas</h3>"
    formulas = [
        [
            ", ".join(cost.kernels),
            _uses(cost.reads),
            _uses(cost.writes),
            str(cost.read_bytes + cost.written_bytes),
            "not stated" if cost.flops is None else str(cost.flops),
            "not stated" if cost.roundings is None else str(cost.roundings),
        ]
        for cost in report.kernels
    ]
    yield table(("kernels", "reads", "writes", "bytes", "float operations", "roundings"), formulas)


def _kernel_row(report: GraphReport, number: int, cost: KernelCost) -> Iterator[str]:
    moved, flops = report.number(cost.read_bytes + cost.written_bytes), report.number(cost.flops)
    yield f"{'· ' * cost.depth}{number}"
    yield ", ".join(cost.kernels)
    yield ", ".join(op.name if op.number is None else f"{op.number} {op.name}" for op in cost.ops)
    yield byte_text(report.number(cost.read_bytes))
    yield byte_text(report.number(cost.written_bytes))
    yield quantity(flops)
    yield quantity(report.number(cost.roundings))
    yield "?" if flops is None or not moved else f"{flops / moved:.3g}"


def _uses(uses: tuple[Use, ...]) -> str:
    return ", ".join(f"{use.name} {use.dtype.ir_name} {shape_text(use.shape)}" for use in uses)


def _contraction_section(report: GraphReport) -> Iterator[str]:
    yield "<h2>Contractions</h2>"
    if report.contractions:
        yield f"<pre>{escape(chr(10).join(map(str, report.contractions)))}</pre>"
    else:
        yield "<p>No product and sum became one fma across ops.</p>"


def _memory_section(memory: MemoryReport) -> Iterator[str]:
    yield "<h2>Memory between kernels</h2>"
    yield (
        f"<p>{byte_text(memory.peak)} for intermediate results; {byte_text(memory.lower_bound)} of them are alive at "
        f"once. Inputs {byte_text(memory.inputs)}, outputs {byte_text(memory.outputs)}, weights "
        f"{byte_text(memory.weights)}, constants {byte_text(memory.constants)}.</p>"
    )
    for stage in sorted({use.stage for use in memory.buffers}):
        yield _arena_picture([use for use in memory.buffers if use.stage == stage], stage)
    if memory.buffers:
        headings = ("buffer", "type", "bytes", "at", "from", "to")
        yield table(
            headings,
            (
                [
                    use.name,
                    f"{use.dtype} {list(use.shape)}",
                    str(use.nbytes),
                    str(use.offset),
                    f"{use.first} {use.writer}",
                    f"{use.last} {use.reader}",
                ]
                for use in memory.buffers
            ),
        )
    if memory.unknown:
        yield f"<p>Not known before the graph runs: {escape(', '.join(memory.unknown))}.</p>"


def _arena_picture(uses: list[BufferUse], stage: int) -> str:
    """Buffers as boxes: steps to the right, offsets downwards."""
    first, last = min(use.first for use in uses), max(use.last for use in uses)
    size = max(use.offset + use.nbytes for use in uses) or 1
    height = min(MOST_HEIGHT, max(len(uses) * BAR_HEIGHT, 60))
    boxes = []
    for place, use in enumerate(uses):
        x, y = (use.first - first) * COLUMN, use.offset / size * height
        wide, tall = (use.last - use.first + 1) * COLUMN - 2, max(use.nbytes / size * height - 1, 3)
        title = f"{use.name}: {use.nbytes} bytes at {use.offset}, {use.writer} to {use.reader}"
        label = f'<text x="{x + 4}" y="{y + 14:.1f}">{escape(use.name)}</text>' if tall >= 16 else ""
        boxes.append(
            f'<g class="kernel kernel{place % COLOURS}"><title>{escape(title)}</title>'
            f'<rect x="{x}" y="{y:.1f}" width="{wide}" height="{tall:.1f}"/>{label}</g>'
        )
    steps = "".join(
        f'<text class="axis" x="{(step - first) * COLUMN + 4}" y="{height + 14}">step {step}</text>'
        for step in range(first, last + 1)
    )
    width, full = (last - first + 1) * COLUMN, height + 20
    return (
        f'<div class="scroll"><svg viewBox="0 0 {width} {full}" width="{width}" height="{full}" role="img" '
        f'aria-label="memory plan, arena {stage}">{"".join(boxes)}{steps}</svg></div>'
    )
