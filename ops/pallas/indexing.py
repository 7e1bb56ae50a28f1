"""What stands between the brackets of ``ref[...]``: one selection for each axis of the reference."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IndexType

from halfulp.compiler import DType, GraphTypeError
from halfulp.compiler.tile_builder import Value

from .errors import fault
from .tracing import Array, as_index, current_trace, plain

OUT_OF_BOUNDS = "Out-of-bounds "
"""How the messages of bounds checks begin."""


@dataclass(frozen=True)
class Slice:
    """``pl.ds(start, size)``: elements from ``start`` on, ``stride`` apart. The start may be a value of the kernel."""

    start: Any
    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "size", operator.index(self.size))
            object.__setattr__(self, "stride", operator.index(self.stride))
        except TypeError:
            raise fault(
                f"pl.ds: size and stride must be ints, not {self.size!r} and {self.stride!r}; only the start may be a "
                "value of the kernel",
                GraphTypeError,
            ) from None
        if self.size < 0 or self.stride < 1:
            raise fault(f"pl.ds: size must not be negative and stride at least 1, not {self.size} and {self.stride}")


def ds(start: Any, size: int, stride: int = 1) -> Slice:
    """A slice of ``size`` elements, for ``ref[pl.ds(start, size)]``; see `Slice`."""
    return Slice(start, size, stride)


dslice = ds


@dataclass(frozen=True)
class At:
    """One element of an axis, which goes away."""

    index: int | Value


@dataclass(frozen=True)
class Range:
    """Elements of an axis. ``inside`` says that all of them are known to lie in it."""

    start: int | Value
    size: int
    stride: int
    inside: bool

    @property
    def span(self) -> int:
        """Elements from the first to the last one."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


@dataclass(frozen=True)
class Picked:
    """Elements of an axis by their indices."""

    indices: Array


Selection: TypeAlias = At | Range | Picked


class IndexParser:
    """Reads an index for a reference of ``shape``, whose sizes are ints, or scalars where only the run knows them.

    ``masked`` accesses may reach beyond the reference: the mask is for that.
    """

    def __init__(self, name: str, shape: Sequence[Any], *, masked: bool = False) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.masked = masked

    def parse(self, index: Any) -> list[Selection]:
        """One selection for each axis; axes that the index does not reach are taken whole.

        Raises:
            GraphError: too many indices, or one that is out of range or not allowed.
            GraphTypeError: something that is no index.
        """
        items = index if isinstance(index, tuple) else (index,)
        ellipses = [place for place, item in enumerate(items) if isinstance(item, EllipsisType)]
        if len(ellipses) > 1:
            raise fault(f"{self.name}[...]: an index has at most one '...', not {len(ellipses)}")
        given = len(items) - len(ellipses)
        if given > len(self.shape):
            raise fault(
                f"{self.name}[...]: `indices` must not be longer than `shape`: there are {given} indices for shape "
                f"{list(self.shape)}"
            )
        place = ellipses[0] if ellipses else len(items)
        rest: list[Any] = [slice(None)] * (len(self.shape) - given)
        full = [*items[:place], *rest, *items[place + len(ellipses) :]]
        return [self._axis(axis, item) for axis, item in enumerate(full)]

    def _axis(self, axis: int, item: Any) -> Selection:
        if isinstance(item, slice):
            return self._slice(axis, item)
        if isinstance(item, Slice):
            return self._dynamic_slice(axis, item)
        if isinstance(item, Array | np.ndarray) and item.shape != ():
            return self._picked(axis, item)
        return At(self._element(axis, item))

    def size(self, axis: int) -> int | Value:
        """The size of an axis."""
        size = self.shape[axis]
        return as_index(size)

    def _element(self, axis: int, item: Any) -> int | Value:
        size = self.size(axis)
        if isinstance(item, Array):
            if item.dtype.is_integral:
                return self._wrapped(axis, item)
        elif isinstance(item, int | np.integer) and not isinstance(item, bool):
            number = int(item)
            if isinstance(size, int):
                return max(0, min(number + size if number < 0 else number, size - 1))
            return self.clamped(axis, current_trace("an index").builder.index(number))
        raise fault(
            f"{self.name}[...]: an index must be an int, a slice, pl.ds, '...' or an integer value, not {item!r}",
            GraphTypeError,
        )

    def _wrapped(self, axis: int, item: Array) -> int | Value:
        size = self.size(axis)
        low, high = item.bounds or item.dtype.integer_range
        if isinstance(size, int) and low >= 0 and high < size:
            return as_index(item)
        index = current_trace("an index").builder.value(as_index(item), IndexType())
        trace = current_trace("an index")
        if trace.checked_indices and not self.masked:
            k = trace.builder
            limit = k.value(size, index.type)
            inside = (index < limit) & (index >= k.negate(limit))
            k.check(
                inside,
                f"{OUT_OF_BOUNDS}index {{}} of axis {axis} of {self.name!r}, which has {{}} elements",
                index,
                limit,
                is_bounds=True,
            )
        return self.clamped(axis, index, natural=low >= 0)

    def clamped(self, axis: int, index: Value, *, natural: bool = False) -> Value:
        """A negative index from the end; then the nearest element there is. ``natural`` says that none is negative."""
        k = index.builder
        last = k.value(self.size(axis), index.type) - 1
        wanted = index if natural else self.from_end(axis, index)
        return k.binary("maxs", k.binary("mins", wanted, last), 0)

    def from_end(self, axis: int, index: Value) -> Value:
        """A negative index from the end."""
        k = index.builder
        return k.select(index < 0, index + k.value(self.size(axis), index.type), index)

    def _slice(self, axis: int, item: slice) -> Range:
        size = self.shape[axis]
        for bound in (item.start, item.stop, item.step):
            if isinstance(bound, Array):
                raise fault(
                    f"{self.name}[...]: the bounds of a slice must be ints; write pl.ds(start, size) for a start that "
                    "is a value of the kernel",
                    GraphTypeError,
                )
        if item.step is not None and item.step < 1:
            raise fault(f"{self.name}[...]: slice must have a step >= 1, not {item.step}")
        if isinstance(size, int):
            rounds = range(*item.indices(size))
            return Range(rounds.start, len(rounds), rounds.step, inside=True)
        start, stop = item.start or 0, item.stop
        if stop is None or start < 0 or stop < 0:
            raise fault(
                f"{self.name}[...]: axis {axis} has a size that is known at run time only, so it cannot be taken whole "
                "or from its end; give its BlockSpec a block shape, or take pl.ds(start, size) of it"
            )
        step = item.step or 1
        return Range(start, len(range(start, stop, step)), step, inside=False)

    def _dynamic_slice(self, axis: int, item: Slice) -> Range:
        size = self.shape[axis]
        span = (item.size - 1) * item.stride + 1 if item.size else 0
        if isinstance(item.start, int | np.integer):
            start = int(item.start)
            if isinstance(size, int) and not self.masked and not (start >= 0 and start + span <= size):
                raise fault(
                    f"{self.name}[...]: Out of bound slice: start={start}, size={item.size}, stride={item.stride}, "
                    f"dim={size}."
                )
            return Range(start, item.size, item.stride, isinstance(size, int) and 0 <= start <= size - span)
        if not isinstance(item.start, Array) or item.start.shape or not item.start.dtype.is_integral:
            raise fault(f"pl.ds: start must be an int or an integer scalar, not {item.start!r}", GraphTypeError)
        bounds = item.start.bounds
        if bounds is not None and isinstance(size, int) and bounds[0] >= 0 and bounds[1] + span <= size:
            return Range(as_index(item.start), item.size, item.stride, inside=True)
        first = as_index(item.start)
        self._check_slice(axis, first, item, span)
        return Range(first, item.size, item.stride, inside=False)

    def _check_slice(self, axis: int, start: int | Value, item: Slice, span: int) -> None:
        trace = current_trace("a slice")
        if not trace.checked or self.masked:
            return
        k = trace.builder
        first = k.value(start, k.index(0).type)
        size = k.value(self.size(axis), first.type)
        k.check(
            (first >= 0) & (first + span <= size),
            f"{OUT_OF_BOUNDS}slice pl.ds({{}}, {item.size}) of axis {axis} of {self.name!r}, which has {{}} elements",
            first,
            size,
            is_bounds=True,
        )

    def _picked(self, axis: int, item: Any) -> Picked:
        from .tracing import as_array

        array = plain(as_array(item, f"{self.name}[...]"))
        if not array.dtype.is_integral:
            remedy = "use pl.load and pl.store with a mask" if array.dtype is DType.bool else "convert with .astype"
            raise fault(
                f"{self.name}[...]: an index block must hold integers, not {array.dtype}; {remedy}", GraphTypeError
            )
        return Picked(array)
