"""Indexing values of a kernel: ``v[1:5, None]`` moves elements; with indices of the kernel it goes through memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .shaping import reshaped
from .tracing import plain

if TYPE_CHECKING:
    from .tracing import Array


def subscript(array: Array, index: Any) -> Array:
    """``array[index]`` as in numpy: ints, slices, None, ``...``, `pl.ds`, integer values and blocks.

    Raises:
        GraphError, GraphTypeError: as `pl.load` does.
    """
    items = index if isinstance(index, tuple) else (index,)
    kept = tuple(item for item in items if item is not None)
    result = _taken(array, kept)
    return result if len(kept) == len(items) else _with_new_axes(array, items, result)


def _taken(array: Array, items: tuple[Any, ...]) -> Array:
    from .tracing import Array

    if not items:
        return array
    if all(_is_static(item) for item in items):
        return _static(array, items)
    # indices that only the run knows: the value goes to memory, and a reference takes them
    from .refs import Ref, load

    source = plain(array)
    k = source.value.builder
    memory = k.alloc(k.constant(0, source.value.element_type), source.shape)
    k.store(source.value, memory)
    loaded = load(Ref("a value", memory, source.ndim, source.dtype, inside=True), items)
    return Array(loaded.value, array.dtype, loaded.shape, weak=array.weak)


def _is_static(item: Any) -> bool:
    return item is ... or isinstance(item, slice | int | np.integer)


def _static(array: Array, items: tuple[Any, ...]) -> Array:
    """Ints and slices with any step, also backwards."""
    from .errors import fault
    from .tracing import Array

    rank = array.ndim
    given = sum(item is not ... for item in items)
    if given > rank or sum(item is ... for item in items) > 1:
        raise fault(
            f"`indices` must not be longer than `shape`: {given} indices for a value of shape {list(array.shape)}"
        )
    place = next((i for i, item in enumerate(items) if item is ...), len(items))
    full = [*items[:place], *[slice(None)] * (rank - given), *items[place + 1 :]]
    starts, steps, sizes, kept = [], [], [], []
    for item, size in zip(full, array.shape, strict=True):
        if isinstance(item, slice):
            taken = range(*item.indices(size))
            starts.append(taken.start if len(taken) else 0)
            steps.append(taken.step)
            sizes.append(len(taken))
            kept.append(len(taken))
        else:
            number = int(item) + size if item < 0 else int(item)
            starts.append(max(0, min(number, size - 1)))
            steps.append(1)
            sizes.append(1)
    if not rank:
        return array
    source = plain(array)
    value = source.value
    if (starts, steps, sizes) != ([0] * rank, [1] * rank, list(array.shape)):
        value = value.builder.slice(value, starts, sizes, steps)
    return reshaped(Array(value, array.dtype, sizes, weak=array.weak), kept)


def _with_new_axes(array: Array, items: tuple[Any, ...], result: Array) -> Array:
    """Axes of size 1 where None stands."""
    consumed = sum(item is not None and item is not ... for item in items)
    shape: list[int] = []
    sizes = iter(result.shape)
    for item in items:
        if item is None:
            shape.append(1)
        elif item is ...:
            shape += [next(sizes) for _ in range(array.ndim - consumed)]
        elif _keeps_axis(item):
            shape.append(next(sizes))
    return reshaped(result, [*shape, *sizes])


def _keeps_axis(item: Any) -> bool:
    return not isinstance(item, int | np.integer) and getattr(item, "shape", None) != ()
