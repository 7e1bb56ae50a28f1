"""Loops over the columns of a row: vectors without masks where all loads are valid, masked vectors for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from .loop_builder import Index
from .strips import Memo, Point, Strips

UNROLL = 4
"""Vectors per round of a loop that only stores: enough to hide the latency of a chain of fused multiply-adds."""


def ceil_power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True)
class Strip:
    """One vector of a round: its point, and the lanes that exist (None: all of them; an i1 vector otherwise)."""

    point: Point
    exists: SSAValue | None


Carried = list[SSAValue]
Round = Callable[[Sequence[Strip], Memo, Carried], Sequence[SSAValue]]


class Columns:
    """Loops over the columns of rows of ``size`` elements, ``vectors`` of ``lanes`` lanes a whole round.

    ``limit`` is how many of them there are, if fewer; it may be known at run time only.
    """

    def __init__(self, strips: Strips, size: int, lanes: int, vectors: int) -> None:
        self.strips = strips
        self.size = size
        self.limit: Index = size
        self.lanes = lanes
        self.vectors = vectors
        self.width = lanes * vectors

    @classmethod
    def for_stores(cls, strips: Strips, size: int) -> Columns:
        """Rounds as wide as the row allows, for loops whose order does not matter."""
        lanes = min(strips.lanes, ceil_power_of_two(size))
        return cls(strips, size, lanes, max(1, min(UNROLL, size // lanes)))

    def _strip(self, row: tuple[Index, ...], column: Index, masked: bool, number: int = 0) -> Strip:
        exists = None
        if masked and not self._fits(column):
            exists = self.strips.builder.lane_mask(self.strips.builder.sub(self.limit, column), self.lanes)
        return Strip(Point(row, column, self.lanes, masked, number), exists)

    def _fits(self, column: Index) -> bool:
        if not isinstance(self.limit, int):
            return False
        return self.limit % self.lanes == 0 or (isinstance(column, int) and column + self.lanes <= self.limit)

    def run(
        self, row: tuple[Index, ...], full: Index, lower: Index, upper: Index, carried: Carried, body: Round
    ) -> Carried:
        """Columns [lower, upper): whole rounds below ``full``, then one vector a round."""
        middle = self.middle(full, lower, upper)
        carried = self.rounds(row, lower, middle, carried, body)
        return self.edge(row, middle, upper, carried, body)

    def middle(self, full: Index, lower: Index, upper: Index) -> Index:
        """Where the whole rounds of [lower, upper) end, if those of the row end at ``full``."""
        if full == self.limit:
            return upper
        if (lower, upper) == (0, self.limit) or full == lower == 0:
            return full
        return self.strips.builder.max(self.strips.builder.min(full, upper), lower)

    def rounds(self, row: tuple[Index, ...], lower: Index, middle: Index, carried: Carried, body: Round) -> Carried:
        """Whole rounds: all vectors at once, no masks."""
        builder = self.strips.builder

        def one(column: Index, values: Carried) -> Sequence[SSAValue]:
            columns = [builder.add(column, number * self.lanes) for number in range(self.vectors)]
            return body([self._strip(row, at, masked=False, number=n) for n, at in enumerate(columns)], {}, values)

        return builder.loop(lower, middle, self.width, carried, one)

    def edge(self, row: tuple[Index, ...], middle: Index, upper: Index, carried: Carried, body: Round) -> Carried:
        """The rest, masked. It is short, so its code is kept short: one vector a round."""

        def one(column: Index, values: Carried) -> Sequence[SSAValue]:
            return body([self._strip(row, column, masked=True)], {}, values)

        return self.strips.builder.loop(middle, upper, self.lanes, carried, one)

    def each(self, row: tuple[Index, ...], values: Sequence[SSAValue], body: Round) -> None:
        """Evaluates ``values`` over the whole row: ``body`` once for each round."""
        full = self.strips.columns(row, values, self.size, self.width)
        self.run(row, full, 0, self.size, [], body)
        self.strips.clear_row()
