"""How many elements are how far apart, as bars, for pages of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

STYLE = """
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; } figure { margin: 0; } figcaption { font-weight: 600; }
.bar { fill: var(--bar); } .axis { fill: var(--soft); font: 10px system-ui, sans-serif; text-anchor: middle; }
"""


def histogram_picture(counts: Sequence[int], label: str) -> str:
    """Bars for the distances 0, 1, 2 to 3, ... up to the largest that occurs; heights are logarithmic.

    Args:
        counts: what `ulps.histogram` gives; the last one is that of the infinitely far elements.
        label: whose distances they are, for those who do not see the picture.
    """
    places = [place for place, count in enumerate(counts) if count]
    if not places:
        return ""
    shown = [*range(places[0], min(places[-1], 32) + 1), *([33] if counts[33] else [])]
    top = max(log10(1 + counts[place]) for place in shown)
    bars = []
    for position, place in enumerate(shown):
        x, height = 8 + position * 34, 90 * log10(1 + counts[place]) / top
        name = "NaN, ∞" if place == 33 else _distances(place)
        bars.append(
            f"<g><title>{name}: {counts[place]} elements</title>"
            f'<rect class="bar" x="{x}" y="{105 - height:.1f}" width="28" height="{height:.1f}"/>'
            f'<text class="axis" x="{x + 14}" y="{101 - height:.1f}">{counts[place] or ""}</text>'
            f'<text class="axis" x="{x + 14}" y="118">{name}</text></g>'
        )
    width = 16 + len(shown) * 34
    return (
        f'<svg viewBox="0 0 {width} 124" width="{width}" height="124" role="img" '
        f'aria-label="distances of {escape(label)}">{"".join(bars)}</svg>'
    )


def _distances(place: int) -> str:
    """The first distance of a bar, or all of them where there is room."""
    if place < 2:
        return str(place)
    if place < 5:
        return f"{2 ** (place - 1)}–{2**place - 1}"
    return f"{2 ** (place - 1)}+" if place < 8 else f"2^{place - 1}"
