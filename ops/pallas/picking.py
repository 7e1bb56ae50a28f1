"""Integer blocks as indices: elements, or whole slices, one after another in the order of the index block.

The selected axes stand where the first of them stood, or in front if others stand between them, as in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IndexType

from halfulp.compiler.tile_builder import Value

from .elementwise import common_shape
from .errors import fault
from .indexing import OUT_OF_BOUNDS, At, IndexParser, Picked, Range, Selection
from .shaping import reshaped, transpose
from .tracing import Array, broadcast, current_trace, plain

if TYPE_CHECKING:
    from .refs import Ref


class Pick:
    """A selection of which some axes are taken by integer blocks, or with a step."""

    def __init__(self, ref: Ref, selections: Sequence[Selection], *, masked: bool = False) -> None:
        self.ref = ref
        self.masked = masked
        self.parser = IndexParser(ref.name, ref.shape)
        self.selections = [_as_picked(s) if _has_step(s) else s for s in selections]
        picked = [a for a, s in enumerate(self.selections) if not isinstance(s, Range)]
        if sum(_has_step(s) for s in selections) and len(picked) > 1:
            raise fault(f"{ref.name}[...]: a slice with a step cannot stand beside another index in a store")
        blocks = [s.indices for s in self.selections if isinstance(s, Picked)]
        self.picked_shape = common_shape(f"{ref.name}[...]", [block.shape for block in blocks])
        self.ranges = [s for s in self.selections if isinstance(s, Range)]
        together = picked == list(range(picked[0], picked[-1] + 1))
        self.before = picked[0] if together else 0

    @property
    def _range_sizes(self) -> tuple[int, ...]:
        return tuple(s.size for s in self.ranges)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is selected."""
        sizes = self._range_sizes
        return (*sizes[: self.before], *self.picked_shape, *sizes[self.before :])

    def load(self) -> Array:
        """The selected elements."""
        k, dtype = current_trace("an index block").builder, self.ref.dtype
        count = prod(self.picked_shape)
        target = k.alloc(k.constant(0, dtype.to_element_type()), [count, *(self._range_sizes or (1,))])

        def one(number: Value) -> None:
            row = k.load(self._window(number, clamp=True), self._pad())
            k.store(row, self._row(target, number))

        k.for_loop(0, count, [], one)
        rows = Array(k.load(target), dtype, target.shape)
        return self._in_place(reshaped(rows, (*self.picked_shape, *self._range_sizes)))

    def store(self, value: Array, mask: Array | None) -> None:
        """Writes a value of the selection's shape; indices out of range are dropped."""
        k = current_trace("an index block").builder
        count = prod(self.picked_shape)
        source = self._rows(value, count)
        allowed = None if mask is None else self._rows(mask, count)

        def one(number: Value) -> None:
            row = k.load(self._row(source, number))
            row_mask = None if allowed is None else k.load(self._row(allowed, number))
            k.store(row, self._window(number, clamp=False), row_mask)

        k.for_loop(0, count, [], one)

    def _pad(self) -> float | int:
        from .refs import pad_of

        return pad_of(self.ref.dtype)

    def _rows(self, value: Array, count: int) -> Value:
        """A value of the selection's shape in memory, one row for each index."""
        k, sizes = self.ref.value.builder, self._range_sizes
        element = value.dtype.to_element_type()
        memory = k.alloc(k.constant(0, element), [count, *(sizes or (1,))])
        k.store(reshaped(plain(self._picked_first(value)), memory.shape).value, memory)
        return memory

    def _row(self, memory: Value, number: Value) -> Value:
        sizes = self._range_sizes
        k = self.ref.value.builder
        if not sizes:
            return k.window(memory, [number, 0], [1, 1], indexing="element", squeezed=[0])
        return k.window(memory, [number, *[0] * len(sizes)], [1, *sizes], indexing="element", squeezed=[0])

    def _window(self, number: Value, *, clamp: bool) -> Value:
        """The part of the reference that index ``number`` selects."""
        starts: list[Any] = []
        for axis, selection in enumerate(self.selections):
            if isinstance(selection, Picked):
                starts.append(self._index(axis, selection.indices, number, clamp=clamp))
            else:
                starts.append(selection.index if isinstance(selection, At) else selection.start)
        sizes = [s.size if isinstance(s, Range) else 1 for s in self.selections]
        squeezed = [axis for axis, s in enumerate(self.selections) if not isinstance(s, Range)]
        if len(squeezed) == len(sizes):
            squeezed.pop()
        return self.ref.value.builder.window(self.ref.value, starts, sizes, indexing="element", squeezed=squeezed)

    def _index(self, axis: int, indices: Array, number: Value, *, clamp: bool) -> Value:
        flat = reshaped(broadcast(indices, self.picked_shape), [prod(self.picked_shape)])
        k = self.ref.value.builder
        index = k.cast(k.extract(flat.value, number), IndexType(), unsigned_source=indices.dtype.kind == "unsigned")
        if current_trace("an index").checked_indices and not self.masked:
            size = k.value(self.parser.size(axis), index.type)
            message = f"{OUT_OF_BOUNDS}index {{}} of axis {axis} of {self.ref.name!r}, which has {{}} elements"
            k.check((index < size) & (index >= k.negate(size)), message, index, size, is_bounds=True)
        return self.parser.clamped(axis, index) if clamp else self.parser.from_end(axis, index)

    def _in_place(self, rows: Array) -> Array:
        """Rows with their picked axes moved from the front to where they stand."""
        picked, rank = len(self.picked_shape), rows.ndim
        front = [picked + a for a in range(self.before)]
        return transpose(rows, [*front, *range(picked), *range(picked + self.before, rank)])

    def _picked_first(self, value: Array) -> Array:
        picked, rank = len(self.picked_shape), value.ndim
        middle = range(self.before, self.before + picked)
        return transpose(value, [*middle, *range(self.before), *range(self.before + picked, rank)])


def _has_step(selection: Selection) -> bool:
    return isinstance(selection, Range) and selection.stride > 1


def _as_picked(selection: Selection) -> Picked:
    """A slice with a step as the block of its indices."""
    from . import numpy as jnp
    from .tracing import index_array

    assert isinstance(selection, Range)
    steps = jnp.iota([selection.size]) * selection.stride
    start = selection.start
    offset = start if isinstance(start, int) else index_array(start, *(-(1 << 31), (1 << 31) - 1))
    return Picked(plain(steps + offset))
