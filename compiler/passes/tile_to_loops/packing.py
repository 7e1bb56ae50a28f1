"""How the operands of a ``tile.dot`` lie while it runs: the left one in rows, the right one in panels or where it is.

A panel is as many columns as the sums in registers are wide, one k after another. So the innermost loop reads the
right operand without a gap, whatever the size of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, SSAValue

from ...dialects import tile
from ...dialects.tile.types import element_type, shape_of
from .columns import Columns, Strip
from .loop_builder import CACHE_LINE, Index, bytes_of
from .strips import Bounds, Memo, Strips
from .views import address, storage_type

Factors = list[SSAValue]
"""Vectors of the right operand."""


def _evaluate(strips: Strips, value: SSAValue, strip: Strip, row: Index, element: Attribute, memo: Memo) -> SSAValue:
    """Elements of an operand in the type of the sum, which holds them exactly."""
    evaluated, source = strips.evaluate(value, strip.point.at_row((row,)), memo), element_type(value.type)
    if source == element:
        return evaluated
    kind = "extf" if isinstance(element, AnyFloat) else "extsi"
    return strips.builder.cast(evaluated, kind, element, strip.point.lanes)


class Left:
    """A band of ``rows`` rows of the left operand, widened, in memory of the frame; ``stride`` elements apart."""

    def __init__(self, strips: Strips, value: SSAValue, element: Attribute, rows: int) -> None:
        self.strips, self.value, self.element = strips, value, element
        self.columns = Columns.for_stores(strips, shape_of(value.type)[1])
        # One cache line more than a row: rows a power of two apart would meet in one set of the cache.
        self.stride = -(-self.columns.size // strips.lanes) * strips.lanes + strips.lanes
        self.memory = strips.builder.alloca(storage_type(element), rows * self.stride + self.columns.width)

    def pack(self, first: Index, count: Index) -> Index:
        """Copies ``count`` rows from ``first`` on; gives where they are.

        A last round may write past its row: the next one, or spare room, is there. Rows of the band that are not
        copied hold anything.
        """
        strips, builder = self.strips, self.strips.builder

        def row(at: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            start, source = builder.mul(at, self.stride), builder.add(first, at)

            def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
                for strip in vectors:
                    value = _evaluate(strips, self.value, strip, source, self.element, memo)
                    builder.store(value, self.memory, builder.add(start, strip.point.column))
                return ()

            self.columns.each((source,), [self.value], body)
            return ()

        builder.loop(0, count, 1, (), row)
        return 0

    def read(self, origin: Index, row: int, k: Index) -> SSAValue:
        """One element: ``row`` rows below the row that starts at ``origin``."""
        builder = self.strips.builder
        return builder.load(self.memory, builder.add(builder.add(origin, k), row * self.stride), 1)


class RightRows:
    """A right operand that is read once: evaluated where it is multiplied."""

    def __init__(self, strips: Strips, value: SSAValue, element: Attribute) -> None:
        self.strips, self.value, self.element = strips, value, element

    def full(self, columns: Columns, rows: Sequence[Index]) -> Index:
        """How many leading columns of these rows can be read without masks."""
        strips, bounds = self.strips, _bounds(columns)
        for row in rows[1:]:
            strips.prepare(self.value, (row,), bounds)
        return strips.columns((rows[0],), [self.value], columns.size, columns.width, bounds)

    def read(self, k: Index, strip: Strip, memo: Memo) -> SSAValue:
        """The vector of row ``k`` at the columns of ``strip``, widened."""
        return _evaluate(self.strips, self.value, strip, k, self.element, memo)

    def fetch(self, k: Index, strip: Strip) -> None:
        """Asks memory for what `read` will read of row ``k``, each cache line once; nothing if that is computed."""
        op, point = self.value.owner, strip.point
        view = self.strips.views[op.ref] if isinstance(op, tile.LoadOp) else None
        if view is None or point.masked or view.axes[-1].stride != 1:
            return
        size = bytes_of(storage_type(view.element))
        if point.number * point.lanes * size % CACHE_LINE == 0:
            at = address(self.strips.builder, view, (k, point.column))
            for line in range(0, point.lanes, CACHE_LINE // size):
                self.strips.builder.prefetch(view.memory, self.strips.builder.add(at, line))


class Panels:
    """A right operand that several bands of rows read: packed once, into panels of ``columns.width`` columns."""

    def __init__(self, strips: Strips, value: SSAValue, element: Attribute, columns: Columns) -> None:
        self.strips, self.value, self.element = strips, value, element
        self.width = columns.width
        inner, size = shape_of(value.type)
        # Two cache lines between panels, so that those of one k do not meet in one set of the cache.
        self.stride = inner * self.width + 2 * columns.lanes
        self.memory = strips.builder.alloca(storage_type(element), -(-size // self.width) * self.stride)

    def pack(self, inner: Index, columns: Columns) -> None:
        """Copies ``inner`` rows of the columns that take part."""
        strips, builder = self.strips, self.strips.builder

        def row(k: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            def body(vectors: Sequence[Strip], memo: Memo, _: list[SSAValue]) -> Sequence[SSAValue]:
                for strip in vectors:
                    value = _evaluate(strips, self.value, strip, k, self.element, memo)
                    builder.store(value, self.memory, self._index(k, strip))
                return ()

            full = strips.columns((k,), [self.value], columns.size, columns.width, _bounds(columns))
            columns.run((k,), full, 0, columns.limit, [], body)
            strips.clear_row()
            return ()

        builder.loop(0, inner, 1, (), row)

    def full(self, columns: Columns) -> Index:
        """How many columns fill whole panels."""
        return self.strips.builder.mul(self.strips.builder.div(columns.limit, self.width), self.width)

    def read(self, k: Index, strip: Strip) -> SSAValue:
        """The vector of row ``k`` at the columns of ``strip``."""
        return self.strips.builder.load(self.memory, self._index(k, strip), strip.point.lanes)

    def _index(self, k: Index, strip: Strip) -> Index:
        builder, column = self.strips.builder, strip.point.column
        panel = builder.add(builder.mul(builder.div(column, self.width), self.stride), builder.rem(column, self.width))
        return builder.add(panel, builder.mul(k, self.width))


def _bounds(columns: Columns) -> Bounds:
    """No more columns than take part."""
    return Bounds([], [columns.limit] if columns.limit != columns.size else [])
