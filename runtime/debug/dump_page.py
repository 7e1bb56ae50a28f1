"""A comparison of tensors as one page without scripts: a heat map of all pairs, a histogram of each, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import inf, isfinite, log10
from typing import TYPE_CHECKING

from .dump_text import pair_lines, side_text, summary_lines
from .histogram_picture import STYLE as HISTOGRAM_STYLE
from .histogram_picture import histogram_picture
from .html_page import html_page, table
from .shape_matching import shape_tuple

if TYPE_CHECKING:
    from .dump_comparison import TensorComparison, TensorPair

STYLE = """
body { max-width: 90rem; }
.heat td { border-bottom-color: var(--paper); white-space: nowrap; }
.heat td[style] { background: color-mix(in srgb, var(--strong) var(--heat), transparent); }
.heat th { position: sticky; top: 0; background: var(--paper); } .heat a { color: inherit; }
.heat tr.first td:first-child { box-shadow: inset 4px 0 var(--cause); }
.far td, .far th { text-align: left; vertical-align: top; }
.rule { color: var(--soft); padding-left: 0.6em; } .mark { color: var(--cause); font-weight: 600; }
section { border-top: 1px solid var(--line); margin-top: 1rem; } h3 { overflow-wrap: anywhere; }
"""

_Number = Callable[["TensorPair"], float | None]

COLUMNS: tuple[tuple[str, _Number], ...] = (
    ("absolute", lambda pair: pair.max_abs),
    ("relative", lambda pair: pair.max_rel),
    ("ulp", lambda pair: pair.max_ulp),
    ("ulp of operand", lambda pair: pair.max_ulp_of_operand),
    ("RMSE", lambda pair: pair.rmse),
    ("1 - cosine", lambda pair: None if pair.cosine is None else 1 - pair.cosine),
    ("bits differ", lambda pair: pair.differing / pair.elements if pair.elements else None),
    ("failing", lambda pair: pair.failing_share),
)
"""What the heat map shows of each pair."""


def page(found: TensorComparison) -> str:
    """The page, as HTML; everything is inside it."""
    summary = "<br>".join(map(escape, summary_lines(found)))
    parts = [
        f"<p>torch: {escape(found.torch)}<br>max: {escape(found.max)}</p>",
        f"<p><b>{summary}</b></p>",
        _heat_map(found) if found.pairs else "",
        _unpaired(found) if found.unpaired else "",
        "<h2>Each pair</h2>" if found.pairs else "",
        *(_section(found, number) for number in range(len(found.pairs))),
    ]
    return html_page("Tensors of two programs", parts, STYLE + HISTOGRAM_STYLE)


def _heat_map(found: TensorComparison) -> str:
    shown = [(name, [number(pair) for pair in found.pairs]) for name, number in COLUMNS]
    shown = [(name, values) for name, values in shown if any(value is not None for value in values)]
    heats = [_heats(values) for _, values in shown]
    headings = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("tensor", *(name for name, _ in shown)))
    rows = []
    for number, pair in enumerate(found.pairs):
        cells = "".join(_cell(values[number], heat[number]) for (_, values), heat in zip(shown, heats, strict=True))
        first = ' class="first"' if number in (found.first_difference, found.first_failure) else ""
        name = f'<a href="#pair-{number}">{escape(side_text(pair.torch, pair.torch_part))}</a>'
        rows.append(f'<tr{first}><td>{name}<span class="rule">{escape(pair.rule)}</span></td>{cells}</tr>')
    return (
        '<h2>Heat map</h2>\n<p class="soft">In the order of execution; the darker, the nearer to the column\'s largest '
        "number, by its logarithm. A red edge marks the first pair that differs, and the first that fails.</p>\n"
        f'<div class="scroll"><table class="heat"><thead><tr>{headings}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _heats(values: Sequence[float | None]) -> list[float]:
    """From 0 to 1: zeros are 0, the smallest other number 0.1, the largest and infinities 1."""
    logarithms = [log10(value) for value in values if value is not None and value > 0 and isfinite(value)]
    low, high = min(logarithms, default=0.0), max(logarithms, default=0.0)
    found = []
    for value in values:
        if value is None or value <= 0:
            found.append(0.0)
        elif value == inf or high == low:
            found.append(1.0)
        else:
            found.append(0.1 + 0.9 * (log10(value) - low) / (high - low))
    return found


def _cell(value: float | None, heat: float) -> str:
    text = "-" if value is None else f"{value:.3g}"
    return f'<td style="--heat: {65 * heat:.0f}%">{text}</td>' if heat else f"<td>{text}</td>"


def _unpaired(found: TensorComparison) -> str:
    rows = [
        (left.name, left.side, "-" if left.shape is None else f"{left.dtype} {shape_tuple(left.shape)}", left.reason)
        for left in found.unpaired
    ]
    return f'<h2>Not compared</h2>\n<div class="far">{table(("tensor", "side", "type", "why"), rows)}</div>'


def _section(found: TensorComparison, number: int) -> str:
    pair = found.pairs[number]
    head, *lines = pair_lines(pair)
    marks = []
    if number == found.first_difference:
        marks.append("the first pair with a bit that differs")
    if number == found.first_failure:
        marks.append("the first pair that is not within tolerance")
    mark = f'<p class="mark">This is {escape(" and ".join(marks))}.</p>' if marks else ""
    picture = histogram_picture(pair.histogram, pair.torch) if pair.differing else ""
    text = "\n".join(line.strip() for line in lines)
    return (
        f'<section id="pair-{number}"><h3>{escape(head.removeprefix("Tensor: "))}</h3>{mark}'
        f"<pre>{escape(text)}</pre>{picture}</section>"
    )
