"""Where intermediate results lie in an arena: offsets such that results alive at the same time never overlap.

Which results are alive together is known at compile time; sizes only once the shapes are. So a `PlacingPlan` is made
once for a graph, and `PlacingPlan.place` runs for each new set of shapes. It is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Lifetime: TypeAlias = tuple[int, int]
"""First and last step, both included."""


@dataclass(frozen=True)
class Placing:
    """Offsets in order of the results, and the bytes that they take in all."""

    offsets: tuple[int, ...]
    nbytes: int


class PlacingPlan:
    """The results of one arena, by their lifetimes."""

    def __init__(self, lifetimes: Sequence[Lifetime]) -> None:
        self._lifetimes = tuple(lifetimes)
        by_first = sorted(range(len(lifetimes)), key=lambda i: lifetimes[i])
        self._together: tuple[list[int], ...] = tuple([] for _ in lifetimes)
        alive: list[int] = []
        for i in by_first:
            alive = [j for j in alive if lifetimes[j][1] >= lifetimes[i][0]]
            for j in alive:
                self._together[i].append(j)
                self._together[j].append(i)
            alive.append(i)

    def alive_at_once(self, sizes: Sequence[int]) -> int:
        """The most bytes alive in any step: no arena can be smaller."""
        return self._fullest_step(sizes)[1]

    def place(self, sizes: Sequence[int]) -> Placing:
        """Offsets for results of these sizes, which are multiples of the alignment.

        One after another goes into the tightest gap between those that are placed and alive with it: the largest
        first; and where that takes more than is alive at once, also those of the fullest step first, or those
        that take the most room for the longest time, and the best of the three counts.
        """
        step, least = self._fullest_step(sizes)
        spans = [last - first + 1 for first, last in self._lifetimes]
        best: Placing | None = None
        for rank in (
            lambda i: (-sizes[i], self._lifetimes[i]),
            lambda i: (not self._lifetimes[i][0] <= step <= self._lifetimes[i][1], -sizes[i]),
            lambda i: (-sizes[i] * spans[i],),
        ):
            # sorted() is stable: equal results stay in order
            found = self._fit(sorted(range(len(sizes)), key=rank), sizes)
            if best is None or found.nbytes < best.nbytes:
                best = found
            if best.nbytes == least:
                break
        assert best is not None
        return best

    def _fullest_step(self, sizes: Sequence[int]) -> tuple[int, int]:
        """A step in which the most bytes are alive, and how many."""
        changes: dict[int, int] = {}
        for (first, last), size in zip(self._lifetimes, sizes, strict=True):
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
        fullest = most = current = 0
        for step in sorted(changes):
            current += changes[step]
            if current > most:
                fullest, most = step, current
        return fullest, most

    def _fit(self, order: Sequence[int], sizes: Sequence[int]) -> Placing:
        offsets = [-1] * len(sizes)
        for i in order:
            taken = sorted((offsets[j], offsets[j] + sizes[j]) for j in self._together[i] if offsets[j] >= 0)
            offsets[i] = _tightest_gap(taken, sizes[i])
        return Placing(tuple(offsets), max((o + s for o, s in zip(offsets, sizes, strict=True)), default=0))


def _tightest_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap that holds ``size`` bytes; behind everything if none does."""
    best: int | None = None
    best_gap = 0
    end = 0
    for start, stop in taken:
        gap = start - end
        if gap >= size and (best is None or gap < best_gap):
            best, best_gap = end, gap
        end = max(end, stop)
    return end if best is None else best
