"""Why a tensor has no partner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from .chunks import flat_piece, relative_distance
from .shape_matching import rows_of, shape_tuple
from .tensor_names import FUSED
from .value_alignment import NEAR

if TYPE_CHECKING:
    from .alignment import Entry, Leftover, Side, Stage
    from .tensor_files import StoredTensor

_LOOKED_AT = 1 << 26
"""Bytes of a tensor up to which its rows are looked at."""


def reasons(stage: Stage, torch: Iterable[Entry], other: Iterable[Entry]) -> list[Leftover]:
    """A reason for each tensor that is left; ``torch`` and ``other`` are all that there were."""
    from .alignment import Leftover  # that module imports this one

    partners: dict[int, str] = {}
    for match in stage.found.matches:
        partners.setdefault(id(match.torch), match.max.name)
        partners.setdefault(id(match.max), match.torch.name)
    found: list[Leftover] = []
    sides: list[tuple[Side, list[Entry], str, list[Entry]]] = [
        ("torch", stage.torch, "max", list(other)),
        ("max", stage.max, "torch", list(torch)),
    ]
    alone = all(len(everything) == 1 for *_, everything in sides)  # then their names do not matter
    for side, left, opposite, everything in sides:
        explain = _Explaining(opposite, everything, partners, alone)
        found += [Leftover(side, entry.tensor, explain.reason(entry)) for entry in left]
    return found


class _Explaining:
    """What is known of the side that has no partner to offer."""

    def __init__(self, side: str, everything: list[Entry], partners: dict[int, str], alone: bool) -> None:
        self.side = side
        self.partners = partners
        self.by_place: dict[Hashable, list[Entry]] = defaultdict(list)
        self.by_path: dict[Hashable, list[Entry]] = defaultdict(list)
        for entry in everything:
            self.by_place[(entry.name.path, entry.name.port)].append(entry)
            self.by_path[entry.name.path].append(entry)
        self.only = everything if alone else []
        self.layers = {path[:end] for entry in everything for path in [entry.name.path] for end in range(len(path))}

    def reason(self, entry: Entry) -> str:
        name, layer = entry.name, ".".join(entry.tensor.name.rpartition("-")[0].split(".")) or entry.tensor.name
        alike = self.by_place.get((name.path, name.port), self.only)
        exact = [other for other in alike if other.name == name]
        if exact or alike:
            return self._about_shapes(entry, exact or alike)
        if name.path in self.by_path:
            kinds = {"input": "no input", "output": "no output", "": "nothing of this name"}
            has = ", ".join(dict.fromkeys(other.tensor.name for other in self.by_path[name.path][:3]))
            return f"{self.side} has {kinds[name.port]} of this layer, only {has}"
        fused = self._fused(entry)
        if fused:
            return fused
        if name.path in self.layers:
            return f"{self.side} has parts of layer '{layer}', but nothing of the layer itself"
        return f"{self.side} has no tensor of a layer like '{layer}', and none of its shape and values"

    def _about_shapes(self, entry: Entry, others: list[Entry]) -> str:
        other = others[0]
        ours, theirs = entry.tensor.stored, other.tensor.stored
        described = f"{self.side} has {other.tensor.name} with shape {shape_tuple(theirs.shape)}"
        partner = self.partners.get(id(other.tensor))
        rows = _rows_text(ours, theirs)
        if rows:
            return f"{described}: {rows}"
        if partner is not None:
            return f"{described}, which belongs to {partner}"
        if len(others) > 1:
            names = ", ".join(found.tensor.name for found in others[:4])
            return f"{self.side} has {len(others)} of this layer, and neither names nor values tell which: {names}"
        if ours.shape == theirs.shape[::-1] and len(ours.shape) > 1:
            return f"{described}, the transpose of {shape_tuple(ours.shape)}"
        if ours.size == theirs.size and ours.size:
            return f"{described}, and this one has {shape_tuple(ours.shape)}; --allow-reshape would compare them"
        return f"{described}, and this one has {shape_tuple(ours.shape)}"

    def _fused(self, entry: Entry) -> str | None:
        path = entry.name.path
        for whole, parts in FUSED.items():
            for part in parts:
                if part in path:
                    place = path.index(part)
                    fused = self.by_path.get((*path[:place], whole, *path[place + 1 :]), [])
                    of_port = [other for other in fused if other.name.port == entry.name.port]
                    if of_port:
                        shape = shape_tuple(of_port[0].tensor.stored.shape)
                        own = shape_tuple(entry.tensor.stored.shape)
                        return (
                            f"{self.side} has {of_port[0].tensor.name} with shape {shape}, in which {own} does not fit"
                        )
        return None


def _rows_text(one: StoredTensor, other: StoredTensor) -> str | None:
    """Which rows of the larger tensor the smaller one holds, if that is how they differ."""
    larger, smaller = (one, other) if one.size > other.size else (other, one)
    rows = rows_of(larger.shape, smaller.shape)
    if rows is None:
        return None
    width = larger.shape[-1]
    of = larger.size // width
    which = _which_rows(larger, smaller, rows, of, width)
    if which is None:
        return f"{rows} of {of} rows" if larger is one else f"{of} rows, and this one has {rows}"
    return f"only {which} of {of}" if larger is one else f"this one has only {which} of its {of}"


def _which_rows(larger: StoredTensor, smaller: StoredTensor, rows: int, of: int, width: int) -> str | None:
    """The last rows, the first ones, or the last one of each sequence; None if the values agree with none of them."""
    if larger.dtype.kind == "b" or larger.size * larger.dtype.itemsize > _LOOKED_AT:
        return None
    wanted = flat_piece(smaller.read(), 0, rows * width).astype(np.float64).reshape(rows, width)
    every = flat_piece(larger.read(), 0, of * width).astype(np.float64).reshape(of, width)
    several = "row" if rows == 1 else f"{rows} rows"
    choices = [(f"the last {several}", every[of - rows :]), (f"the first {several}", every[:rows])]
    if of % rows == 0:
        length = of // rows
        choices.append((f"the last row of every {length}", every[length - 1 :: length]))
    return next((name for name, found in choices if relative_distance(found, wanted) <= NEAR), None)
