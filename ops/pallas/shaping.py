"""Functions that move elements: reshape, transpose, concatenate and the like."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

from halfulp.compiler import GraphTypeError

from .elementwise import cast_operand
from .errors import fault
from .promotion import promote
from .tracing import Array, as_array, broadcast, plain


def checked_shape(shape: Any, subject: str) -> tuple[int, ...]:
    """A shape of ints.

    Raises:
        GraphTypeError: a size is something else, such as a value of the kernel.
    """
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    try:
        return tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise fault(f"{subject}: the shape of a block must be made of ints, not {shape!r}", GraphTypeError) from None


def checked_axis(axis: int, rank: int, subject: str) -> int:
    """An axis counted from 0.

    Raises:
        GraphError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise fault(f"{subject}: axis {axis} is out of bounds for a block of {rank} axes")
    return axis % rank


def reshaped(array: Array, shape: Sequence[int]) -> Array:
    """The same elements under another shape of as many."""
    shape = tuple(shape)
    if shape == array.shape:
        return array
    array = plain(array)
    k = array.value.builder
    if not array.shape:
        value = k.splat(array.value, shape)
    elif not shape:
        value = k.extract(array.value, *[0] * array.ndim)
    else:
        value = k.reshape(array.value, shape)
    return Array(value, array.dtype, shape, weak=array.weak)


def reshape(x: Any, shape: Any) -> Array:
    """The same elements in row-major order under ``shape``, one size of which may be -1.

    Raises:
        GraphError: the numbers of elements differ.
    """
    array, sizes = as_array(x, "jnp.reshape"), checked_shape(shape, "jnp.reshape")
    rest = prod(size for size in sizes if size != -1)
    wanted = tuple((array.size // rest if rest else 0) if size == -1 else size for size in sizes)
    if prod(wanted) != array.size or sizes.count(-1) > 1:
        raise fault(f"jnp.reshape: a block of shape {list(array.shape)} cannot have the shape {list(sizes)}")
    return reshaped(array, wanted)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    """Axis i of the result is axis ``axes[i]``; all in reverse order by default.

    Raises:
        GraphError: ``axes`` is no order of the axes.
    """
    array = as_array(x, "jnp.transpose")
    order = (
        list(reversed(range(array.ndim)))
        if axes is None
        else [checked_axis(axis, array.ndim, "jnp.transpose") for axis in _flat(axes)]
    )
    if sorted(order) != list(range(array.ndim)):
        raise fault(f"jnp.transpose: axes {list(axes or ())} must name each of the {array.ndim} axes once")
    if order == sorted(order):
        return array
    return Array(
        array.value.builder.transpose(array.value, order),
        array.dtype,
        [array.shape[axis] for axis in order],
        weak=array.weak,
    )


def _flat(axes: Sequence[Any]) -> list[int]:
    """Axes given one by one, or as one sequence."""
    return list(axes[0]) if len(axes) == 1 and isinstance(axes[0], tuple | list) else list(axes)


def broadcast_to(x: Any, shape: Any) -> Array:
    """``x`` repeated along axes of size 1, and along new ones in front.

    Raises:
        GraphError: it does not broadcast to ``shape``.
    """
    array, sizes = as_array(x, "jnp.broadcast_to"), checked_shape(shape, "jnp.broadcast_to")
    tail = sizes[len(sizes) - array.ndim :]
    if array.ndim > len(sizes) or any(own not in (1, size) for own, size in zip(array.shape, tail, strict=True)):
        raise fault(f"jnp.broadcast_to: shape {list(array.shape)} does not broadcast to {list(sizes)}")
    return broadcast(array, sizes)


def expand_dims(x: Any, axis: int | tuple[int, ...]) -> Array:
    """New axes of size 1 at these places of the result."""
    array = as_array(x, "jnp.expand_dims")
    given: Sequence[int] = (axis,) if isinstance(axis, int) else axis
    rank = array.ndim + len(given)
    added = {checked_axis(a, rank, "jnp.expand_dims") for a in given}
    sizes = iter(array.shape)
    return reshaped(array, [1 if a in added else next(sizes) for a in range(rank)])


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Without these axes of size 1; without all of them by default.

    Raises:
        GraphError: an axis has another size.
    """
    array = as_array(x, "jnp.squeeze")
    given = (
        [a for a, n in enumerate(array.shape) if n == 1] if axis is None else [axis] if isinstance(axis, int) else axis
    )
    removed = {checked_axis(a, array.ndim, "jnp.squeeze") for a in given}
    for a in removed:
        if array.shape[a] != 1:
            raise fault(f"jnp.squeeze: axis {a} has size {array.shape[a]}, but only axes of size 1 can go")
    return reshaped(array, [n for a, n in enumerate(array.shape) if a not in removed])


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Blocks one after another along an axis.

    Raises:
        GraphError: there are none, or other axes differ.
    """
    parts = [as_array(part, "jnp.concatenate") for part in arrays]
    if not parts or not parts[0].shape:
        raise fault("jnp.concatenate takes at least one block of one axis or more")
    dtype, weak = promote([(part.dtype, part.weak) for part in parts])
    rank = parts[0].ndim
    axis = checked_axis(axis, rank, "jnp.concatenate")
    forms = {part.shape[:axis] + part.shape[axis + 1 :] if part.ndim == rank else None for part in parts}
    if len(forms) != 1:
        listed = ", ".join(str(list(part.shape)) for part in parts)
        raise fault(f"jnp.concatenate: blocks must agree in all axes but axis {axis}, not {listed}")
    values = [plain(cast_operand(part, dtype)).value for part in parts]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    value = values[0] if len(values) == 1 else values[0].builder.concat(values, axis)
    return Array(value, dtype, shape, weak=weak)


def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Blocks of one shape along a new axis."""
    return concatenate([expand_dims(part, axis) for part in arrays], axis)


def ravel(x: Any) -> Array:
    """All elements along one axis."""
    return reshape(x, -1)
