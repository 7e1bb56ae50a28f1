"""Where the parts of a fused projection lie in it: side by side, or in turns for every group of heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from .chunks import relative_distance
from .ulps import Array

SAMPLED_ROWS = 16
"""How many rows are looked at to tell layouts apart."""


@dataclass(frozen=True)
class Part:
    """Some columns of a tensor (rows, where ``axis`` is 0).

    With several groups the axis is that many equal stretches, and the part takes ``size / groups`` of each, from
    ``start / groups`` on.
    """

    axis: int
    start: int
    size: int
    groups: int = 1

    def take(self, array: Array) -> Array:
        """The part; a view if there is one group."""
        whole = array.shape[self.axis]
        turned = np.moveaxis(array, self.axis, -1)
        if self.groups == 1:
            taken = turned[..., self.start : self.start + self.size]
        else:
            first, count = self.start // self.groups, self.size // self.groups
            grouped = turned.reshape(*turned.shape[:-1], self.groups, whole // self.groups)
            taken = grouped[..., first : first + count].reshape(*turned.shape[:-1], self.size)
        return np.moveaxis(taken, -1, self.axis)

    def __str__(self) -> str:
        kind = "rows" if self.axis == 0 else "columns"
        first, count = self.start // self.groups, self.size // self.groups
        of_each = "" if self.groups == 1 else f" of each of {self.groups} groups"
        return f"{kind} {first}:{first + count}{of_each}"


def part_sizes(whole: int, known: Sequence[int | None]) -> list[int] | None:
    """The sizes of all parts, from those that are known; None if they do not add up.

    Of q, k and v the last two are equally large.

    >>> part_sizes(128, [64, None, None]), part_sizes(128, [None, 32, None]), part_sizes(128, [64, 32, None])
    ([64, 32, 32], [64, 32, 32], [64, 32, 32])
    """
    sizes = list(known)
    if len(sizes) == 3:
        sizes[1] = sizes[2] if sizes[1] is None else sizes[1]
        sizes[2] = sizes[1] if sizes[2] is None else sizes[2]
    missing = [place for place, size in enumerate(sizes) if size is None]
    rest = whole - sum(size for size in sizes if size is not None)
    if missing and (rest <= 0 or rest % len(missing)):
        return None
    for place in missing:
        sizes[place] = rest // len(missing)
    found = [size for size in sizes if size is not None]
    return found if sum(found) == whole else None


def parts_of(axis: int, sizes: Sequence[int], fused: Array, given: Mapping[int, Array]) -> list[Part]:
    """Where each part lies: side by side, unless the values that are given fit another layout much better.

    Args:
        axis: the axis that is split.
        sizes: the size of each part.
        fused: the whole.
        given: parts by their number, as the other program has them.
    """
    whole, known = _rows(fused, axis), {place: _rows(part, axis) for place, part in given.items()}
    common = gcd(*sizes)
    best, best_distance = 1, np.inf
    for groups in [count for count in range(1, common + 1) if common % count == 0]:
        layout = _layout(-1, sizes, groups)
        distances = [relative_distance(layout[place].take(whole), part) for place, part in known.items()]
        distance = sum(min(1.0, each) for each in distances)
        if distance < (best_distance if groups == 1 else best_distance / 2):
            best, best_distance = groups, distance
    return _layout(axis, sizes, best)


def _layout(axis: int, sizes: Sequence[int], groups: int) -> list[Part]:
    starts = np.cumsum([0, *sizes])
    return [Part(axis, int(start), size, groups) for start, size in zip(starts, sizes, strict=False)]


def _rows(array: Array, axis: int) -> Array:
    turned = np.moveaxis(array, axis, -1)
    return turned.reshape(-1, turned.shape[-1])[:SAMPLED_ROWS].astype(np.float64)
