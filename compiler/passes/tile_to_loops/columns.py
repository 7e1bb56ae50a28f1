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
    """Loops over the columns of rows of ``size`` elements, ``vectors`` of ``lanes`` lanes a round."""

    def __init__(self, strips: Strips, size: int, lanes: int, vectors: int) -> None:
        self.strips = strips
        self.size = size
        self.lanes = lanes
        self.vectors = vectors
        self.width = lanes * vectors

    @classmethod
    def for_stores(cls, strips: Strips, size: int) -> Columns:
        """Rounds as wide as the row allows, for loops whose order does not matter."""
        lanes = min(strips.lanes, ceil_power_of_two(size))
        return cls(strips, size, lanes, max(1, min(UNROLL, size // lanes)))

    def _round(self, row: tuple[Index, ...], column: Index, masked: bool) -> list[Strip]:
        builder, result = self.strips.builder, []
        for number in range(self.vectors):
            at = builder.add(column, number * self.lanes)
            exists = None
            if masked and self.size % self.width and not self._fits(at):
                exists = builder.lane_mask(builder.sub(self.size, at), self.lanes)
            result.append(Strip(Point(row, at, self.lanes, masked), exists))
        return result

    def _fits(self, column: Index) -> bool:
        return isinstance(column, int) and column + self.lanes <= self.size

    def run(
        self, row: tuple[Index, ...], full: Index, lower: Index, upper: Index, carried: Carried, body: Round
    ) -> Carried:
        """Rounds over columns [lower, upper), unmasked below ``full`` (a multiple of the width, as ``lower`` is)."""
        builder = self.strips.builder

        def round_at(masked: bool) -> Callable[[Index, Carried], Sequence[SSAValue]]:
            return lambda column, values: body(self._round(row, column, masked), {}, values)

        if full == lower == 0:
            return builder.loop(lower, upper, self.width, carried, round_at(True))
        middle = full if (lower, upper) == (0, self.size) else builder.max(builder.min(full, upper), lower)
        carried = builder.loop(lower, middle, self.width, carried, round_at(False))
        return builder.loop(middle, upper, self.width, carried, round_at(True))

    def each(self, row: tuple[Index, ...], values: Sequence[SSAValue], body: Round) -> None:
        """Evaluates ``values`` over the whole row: ``body`` once a round."""
        full = self.strips.columns(row, values, self.size, self.width)
        self.run(row, full, 0, self.size, [], body)
        self.strips.clear_row()
