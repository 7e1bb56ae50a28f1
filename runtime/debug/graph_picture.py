"""A graph as an SVG picture: ops in rows from the inputs down, marked ops coloured, source lines as tooltips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from xdsl.ir import Operation, SSAValue

from halfulp.compiler.dialects.graph import ConstantOp, GraphOp, OutputOp, RegisteredOp, WeightOp
from halfulp.compiler.dialects.graph.types import tensor_type
from halfulp.compiler.graph import Graph
from halfulp.compiler.locations import location_of
from halfulp.compiler.op_numerics import numbered_ops
from halfulp.compiler.types import shape_text

WIDTH, HEIGHT, GAP, ROW = 132, 30, 18, 62
MOST_NODES = 600
"""A larger graph is no picture any more; the page lists what is marked."""

STYLE = """
.node rect { fill: var(--card); stroke: var(--line); }
.node text { fill: var(--ink); font: 12px ui-monospace, monospace; text-anchor: middle; }
.node .note { font-size: 10px; fill: var(--soft); }
.value rect { stroke-dasharray: 3 2; }
.contracted rect { fill: var(--mark); stroke: var(--strong); stroke-width: 2; }
.product rect { fill: var(--mark2); stroke: var(--strong); }
.cause rect { stroke: var(--cause); stroke-width: 3; }
.edge { fill: none; stroke: var(--line); }
"""
"""For the page's style sheet, which gives the colours."""


@dataclass
class _Node:
    """A box: what is written in it, its tooltip, the values that it reads, and its number if it is an op."""

    label: str
    note: str
    title: str
    kind: str
    reads: list[SSAValue]
    number: int | None = None
    row: int = 0
    x: float = 0.0

    @property
    def y(self) -> float:
        return 10.0 + self.row * ROW


def graph_picture(graph: Graph, marks: Mapping[int, str]) -> str | None:
    """The picture, as one ``<svg>`` element; None of a graph that is too large.

    Args:
        graph: a complete graph.
        marks: by the number of an op, the classes of its box (`STYLE`): ``contracted``, ``product``, ``cause``.
    """
    module = graph.module
    (op,) = (part for part in module.body.block.ops if isinstance(part, GraphOp))
    numbers: dict[Operation, int] = {each: number for number, each in numbered_ops(module)}
    nodes, made = _nodes(op, numbers)
    if len(nodes) > MOST_NODES:
        return None
    rows = _place(nodes, made)
    width = max(len(row) for row in rows) * (WIDTH + GAP) + GAP if rows else 100
    height = len(rows) * ROW
    for row in rows:
        free = width - len(row) * (WIDTH + GAP) + GAP
        for place, node in enumerate(row):
            node.x = free / 2 + place * (WIDTH + GAP)
    edges = [_edge(made[value], node) for node in nodes for value in node.reads if value in made]
    boxes = [_box(node, marks.get(node.number, "") if node.number is not None else "") for node in nodes]
    label = escape(f"graph {graph.name}")
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{label}">{"".join(edges)}{"".join(boxes)}</svg>'
    )


def _nodes(graph: GraphOp, numbers: Mapping[Operation, int]) -> tuple[list[_Node], dict[SSAValue, _Node]]:
    """A box for each input, weight, constant, op and output; and who makes each value."""
    nodes: list[_Node] = []
    made: dict[SSAValue, _Node] = {}
    for name, argument in graph.inputs.items():
        nodes.append(_Node(name, _type_text(argument), f"input {name}", "value", []))
        made[argument] = nodes[-1]
    for op in graph.body.block.ops:
        node = _node(op, numbers)
        if node is not None:
            nodes.append(node)
            made.update(dict.fromkeys(op.results, node))
    return nodes, made


def _node(op: Operation, numbers: Mapping[Operation, int]) -> _Node | None:
    note = _type_text(op.results[0]) if op.results else ""
    location = location_of(op)
    title = op.name if location is None else location.with_source()
    if isinstance(op, RegisteredOp):
        number = numbers[op]
        return _Node(f"{number} {op.callee.data}", note, title, "op", list(op.arguments), number)
    if isinstance(op, WeightOp):
        return _Node(op.weight_name.data, note, title, "value", [])
    if isinstance(op, ConstantOp):
        return _Node("constant", note, title, "value", [])
    if isinstance(op, OutputOp):
        return _Node("outputs", "", title, "value", list(op.values))
    reads = [value for inner in op.walk() for value in inner.operands]
    return _Node(op.name, note, title, "op", reads) if op.results else None


def _type_text(value: SSAValue) -> str:
    tensor = tensor_type(value)
    return f"{tensor.dtype.ir_name} {shape_text(tensor.shape)}"


def _place(nodes: list[_Node], made: Mapping[SSAValue, _Node]) -> list[list[_Node]]:
    """Rows by the longest way from an input; what reads nothing stands just above its first reader."""
    for node in nodes:
        node.row = max((made[value].row + 1 for value in node.reads if value in made), default=0)
    for node in reversed(nodes):
        if not node.reads:
            readers = [other.row for other in nodes if any(made.get(value) is node for value in other.reads)]
            node.row = max(min(readers, default=1) - 1, 0)
    rows: list[list[_Node]] = [[] for _ in range(max((node.row for node in nodes), default=-1) + 1)]
    for node in nodes:
        rows[node.row].append(node)
    return rows


def _edge(source: _Node, target: _Node) -> str:
    x1, y1, x2, y2 = source.x + WIDTH / 2, source.y + HEIGHT, target.x + WIDTH / 2, target.y
    middle = (y1 + y2) / 2
    return f'<path class="edge" d="M{x1:g} {y1:g}C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}"/>'


def _box(node: _Node, marks: str) -> str:
    classes = " ".join(filter(None, ("node", node.kind, marks)))
    middle = node.x + WIDTH / 2
    return (
        f'<g class="{classes}"><title>{escape(node.title)}</title>'
        f'<rect x="{node.x:g}" y="{node.y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
        f'<text x="{middle:g}" y="{node.y + 13:g}">{escape(_short(node.label, 18))}</text>'
        f'<text class="note" x="{middle:g}" y="{node.y + 25:g}">{escape(_short(node.note, 24))}</text></g>'
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
