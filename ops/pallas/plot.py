"""`plot_grid`: a picture of which program of a grid sees which block of an array, as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from halfulp.compiler import DType

from .errors import fault
from .grid import normalised_grid
from .mapping import BlockMapping, block_mapping
from .specs import BlockSpec

CELL = 28
"""Points along one side of an element."""
MARGIN = 24
COLOURS = ("#cfe3f6", "#fde3c4", "#d6efcf", "#f3d2d8", "#e3d7f2", "#f6f0bd", "#cdeeea", "#e6e0d4")
MOST_PROGRAMS = 4096


def plot_grid(x_shape: Sequence[int], spec: BlockSpec, grid: Any, path: str | Path | None = None) -> str:
    """Draws the blocks that the programs of a grid see of an array of one or two axes.

    Each block is a rectangle with the ids of its programs in it; what of a block lies beyond the array is hatched.

    Args:
        x_shape: the shape of the array.
        spec: its block spec.
        grid: the number of programs along each axis, ints.
        path: where to write the picture, a file that ends in ``.svg``; None writes none.

    Returns:
        The picture as SVG.

    Raises:
        GraphError: the array has more than two axes, the grid has sizes that are not known or more than 4096 programs,
            or the spec does not fit.
    """
    sizes = normalised_grid(grid)
    if not 1 <= len(x_shape) <= 2:
        raise fault(f"pl.plot_grid draws arrays of one or two axes, not of shape {tuple(x_shape)}; leave axes out")
    if any(not isinstance(size, int) for size in sizes):
        raise fault(f"pl.plot_grid: the grid must be made of ints, not {sizes!r}")
    mapping = block_mapping("x", spec, x_shape, DType.float32)
    programs = list(itertools.islice(itertools.product(*map(range, sizes)), MOST_PROGRAMS + 1))
    if len(programs) > MOST_PROGRAMS:
        raise fault(
            f"pl.plot_grid draws at most {MOST_PROGRAMS} programs, and grid {sizes} has more; take a smaller one"
        )
    picture = _svg(tuple(x_shape), mapping, _programs_by_block(mapping, programs, sizes))
    if path is not None:
        target = Path(path)
        if target.suffix != ".svg":
            raise fault(f"pl.plot_grid writes SVG, so the path must end in .svg, not {str(path)!r}")
        target.write_text(picture, encoding="utf-8")
    return picture


def _programs_by_block(
    mapping: BlockMapping, programs: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """The programs that share a block, by its first element."""
    blocks: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for program in programs:
        starts = tuple(int(start) for start in mapping.compute_start_indices(program, sizes))
        blocks.setdefault(starts, []).append(program)
    return blocks


def _label(programs: Sequence[tuple[int, ...]]) -> str:
    """The programs of a block: one, or the first and the last."""
    texts = [",".join(map(str, program)) for program in programs]
    return texts[0] if len(texts) == 1 else f"{texts[0]} … {texts[-1]}"


def _svg(shape: tuple[int, ...], mapping: BlockMapping, blocks: dict[tuple[int, ...], list[tuple[int, ...]]]) -> str:
    rows, columns = shape if len(shape) == 2 else (1, *shape)
    height, width = mapping.block_shape if len(shape) == 2 else (1, *mapping.block_shape)
    places = [(starts if len(starts) == 2 else (0, *starts), programs) for starts, programs in blocks.items()]
    tops, lefts = ([place[axis] for place, _ in places] for axis in (0, 1))
    first_row, first_column = min([0, *tops]), min([0, *lefts])
    last_row = max([rows, *(top + height for top in tops)])
    last_column = max([columns, *(left + width for left in lefts)])
    size = (
        (last_column - first_column) * CELL + 2 * MARGIN,
        (last_row - first_row) * CELL + 2 * MARGIN,
    )

    def x(column: int) -> int:
        return (column - first_column) * CELL + MARGIN

    def y(row: int) -> int:
        return (row - first_row) * CELL + MARGIN

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        'font-family="sans-serif" font-size="11">',
        '<defs><pattern id="beyond" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<path d="M0 6 L6 0" stroke="#888" stroke-width="1"/></pattern></defs>',
    ]
    for number, ((top, left), programs) in enumerate(places):
        colour = COLOURS[number % len(COLOURS)]
        box = f'x="{x(left)}" y="{y(top)}" width="{width * CELL}" height="{height * CELL}"'
        lines.append(f'<rect {box} fill="{colour}" stroke="#333"/>')
        if top < 0 or left < 0 or top + height > rows or left + width > columns:
            lines.append(f'<rect {box} fill="url(#beyond)" stroke="none" clip-path="url(#outside)"/>')
        centre = f'x="{x(left) + width * CELL / 2:g}" y="{y(top) + height * CELL / 2 + 4:g}"'
        lines.append(f'<text {centre} text-anchor="middle">{escape(_label(programs))}</text>')
    whole = f"M0 0 H{size[0]} V{size[1]} H0 Z"
    array = f"M{x(0)} {y(0)} H{x(columns)} V{y(rows)} H{x(0)} Z"
    lines.append(f'<clipPath id="outside"><path clip-rule="evenodd" d="{whole} {array}"/></clipPath>')
    lines.append(f'<path d="{array}" fill="none" stroke="#b00" stroke-width="2"/>')
    lines.append("</svg>")
    return "\n".join(lines) + "\n"
