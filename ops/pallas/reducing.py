"""Reductions, cumulative sums and matrix products of values. Their order of operations is fixed (order R)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from halfulp.compiler import DType, GraphTypeError

from .elementwise import arithmetic, cast_operand, compare, divide, select
from .errors import fault
from .promotion import promote, sum_type
from .shaping import broadcast_to, checked_axis, reshaped, transpose
from .tracing import Array, as_array, cast, constant, current_trace, plain

Axes = int | Sequence[int] | None


def _axes(array: Array, axis: Axes, subject: str) -> list[int]:
    given = range(array.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return sorted({checked_axis(a, array.ndim, subject) for a in given}, reverse=True)


def _reduced(array: Array, kind: str, axis: Axes, keepdims: bool, subject: str) -> Array:
    """Axes one after another, the last one first."""
    array = plain(array)
    axes = _axes(array, axis, subject)
    result, shape = array.value, list(array.shape)
    for a in axes:
        result = result.builder.reduce(kind, result, a)
        del shape[a]
    reduced = Array(result, array.dtype, shape, weak=array.weak)
    return reshaped(reduced, [1 if a in axes else n for a, n in enumerate(array.shape)]) if keepdims else reduced


def _through_f32(array: Array, kind: str, axis: Axes, keepdims: bool, subject: str) -> Array:
    """Sums and products of 16-bit floats are computed in float32 and rounded once."""
    if not array.dtype.is_float or array.dtype.bits > 16:
        return _reduced(array, kind, axis, keepdims, subject)
    return cast(_reduced(cast(array, DType.float32), kind, axis, keepdims, subject), array.dtype)


def sum_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The sum along an axis, several, or all of them. Integers narrower than 32 bits are summed in 32."""
    array = as_array(x, "jnp.sum")
    return _through_f32(cast_operand(array, sum_type(array.dtype)), "add", axis, keepdims, "jnp.sum")


def prod_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The product along an axis, several, or all of them; types as in `sum_of`."""
    array = as_array(x, "jnp.prod")
    return _through_f32(cast_operand(array, sum_type(array.dtype)), "mul", axis, keepdims, "jnp.prod")


def _extreme(x: Any, axis: Axes, keepdims: bool, largest: bool) -> Array:
    subject = "jnp.max" if largest else "jnp.min"
    array = as_array(x, subject)
    if array.dtype is DType.bool:
        return _reduced(array, "or" if largest else "and", axis, keepdims, subject)
    if any(array.shape[a] == 0 for a in _axes(array, axis, subject)):
        raise fault(f"{subject} of no elements is not defined; its operand has shape {list(array.shape)}")
    word = "max" if largest else "min"
    kind = f"{word}imum" if array.dtype.is_float else f"{word}s" if array.dtype.is_signed else f"{word}u"
    return _reduced(array, kind, axis, keepdims, subject)


def max_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The largest element along an axis, several, or all of them; NaN if there is one."""
    return _extreme(x, axis, keepdims, True)


def min_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The smallest element along an axis, several, or all of them; NaN if there is one."""
    return _extreme(x, axis, keepdims, False)


def any_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Whether an element is not zero."""
    return _reduced(cast(as_array(x, "jnp.any"), DType.bool), "or", axis, keepdims, "jnp.any")


def all_of(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Whether no element is zero."""
    return _reduced(cast(as_array(x, "jnp.all"), DType.bool), "and", axis, keepdims, "jnp.all")


def mean(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The sum divided by the number of elements, in float32 for integers and 16-bit floats."""
    array = as_array(x, "jnp.mean")
    dtype = array.dtype if array.dtype.is_float else DType.float32
    wide = cast_operand(array, DType.float32 if dtype.bits <= 32 else dtype)
    count = prod(array.shape[a] for a in _axes(array, axis, "jnp.mean"))
    total = _reduced(wide, "add", axis, keepdims, "jnp.mean")
    return cast_operand(divide(total, float(count), "jnp.mean"), dtype)


def _place_of(x: Any, axis: int | None, keepdims: bool, largest: bool) -> Array:
    """The lowest index of the extreme, and of the first NaN if there is one."""
    subject = "jnp.argmax" if largest else "jnp.argmin"
    array = plain(as_array(x, subject))
    if axis is None:
        flat = reshaped(array, [array.size])
        result = _place_of(flat, 0, False, largest)
        return reshaped(result, [1] * array.ndim) if keepdims else result
    axis = checked_axis(axis, array.ndim, subject)
    best = broadcast_to(_extreme(array, axis, True, largest), array.shape)
    found = compare("eq", subject, array, best)
    if array.dtype.is_float:
        found = arithmetic("add", subject, found, compare("ne", subject, array, array))
    k = array.value.builder
    place = Array(k.iota(array.shape, DType.int32.to_element_type(), axis), DType.int32, array.shape)
    return _reduced(select(found, place, array.shape[axis], subject), "mins", axis, keepdims, subject)


def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The index of the largest element as int32: the first one, or the first NaN. Without ``axis`` of all elements."""
    return _place_of(x, axis, keepdims, True)


def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The index of the smallest element as int32: the first one, or the first NaN. Without ``axis`` of all elements."""
    return _place_of(x, axis, keepdims, False)


def cumsum(x: Any, axis: int | None = None) -> Array:
    """Sums of the first 1, 2, ... elements along an axis, added one after another; types as in `sum_of`."""
    array = as_array(x, "jnp.cumsum")
    array = cast_operand(array, sum_type(array.dtype))
    if axis is None:
        array, axis = reshaped(array, [array.size]), 0
    axis = checked_axis(axis, array.ndim, "jnp.cumsum")
    result_type = array.dtype
    if result_type.is_float and result_type.bits <= 16:
        array = cast(array, DType.float32)
    return cast_operand(_running(plain(array), axis), result_type)


def _running(array: Array, axis: int) -> Array:
    """One slice of the axis after another, through memory of the program."""
    k, n = current_trace("jnp.cumsum").builder, array.shape[axis]
    if n == 0:
        return array
    zero = k.constant(0, array.value.element_type)
    source, target = k.alloc(zero, array.shape), k.alloc(zero, array.shape)
    k.store(array.value, source)
    shape = [1 if a == axis else size for a, size in enumerate(array.shape)]

    def place(i: Any) -> list[Any]:
        return [i if a == axis else 0 for a in range(array.ndim)]

    def add(i: Any, so_far: Any) -> list[Any]:
        total = so_far + k.load(k.window(source, place(i), shape, indexing="element"))
        k.store(total, k.window(target, place(i), shape, indexing="element"))
        return [total]

    first = k.load(k.window(source, place(0), shape, indexing="element"))
    k.store(first, k.window(target, place(0), shape, indexing="element"))
    k.for_loop(1, n, [first], add)
    return Array(k.load(target), array.dtype, array.shape)


def dot(x: Any, y: Any, *, preferred_element_type: DType | None = None) -> Array:
    """The matrix product of blocks of one or two axes; every element is one chain over the inner axis.

    16-bit floats are multiplied and summed in float32; the result is rounded to their type unless
    ``preferred_element_type`` says otherwise.

    Raises:
        GraphError: the inner sizes differ, or a block has no or more than two axes.
        GraphTypeError: bools.
    """
    arrays = [as_array(operand, "jnp.dot") for operand in (x, y)]
    dtype, _ = promote([(array.dtype, array.weak) for array in arrays])
    a, b = (plain(cast_operand(array, dtype)) for array in arrays)
    if dtype is DType.bool:
        raise fault("jnp.dot takes numbers, not bools; convert with .astype(...)", GraphTypeError)
    if not 1 <= a.ndim <= 2 or not 1 <= b.ndim <= 2 or a.shape[-1] != b.shape[0]:
        raise fault(
            f"jnp.dot takes blocks [m, k] and [k, n], or [k], not {list(a.shape)} and {list(b.shape)}; transpose one"
        )
    m, n = a.shape[:-1], b.shape[1:]
    left, right = reshaped(a, [prod(m), a.shape[-1]]), reshaped(b, [b.shape[0], prod(n)])
    wide: DType = DType.float32 if dtype.is_float and dtype.bits <= 16 else dtype
    result_type = preferred_element_type or dtype
    if dtype.is_integral and result_type.is_integral and result_type.bits > dtype.bits:
        wide = result_type
        if not dtype.is_signed:  # tile.dot widens signed integers
            left, right = cast(left, wide), cast(right, wide)
    zero = constant(0, wide, [prod(m), prod(n)])
    k = left.value.builder
    product = Array(k.dot(left.value, right.value, zero.value), wide, [prod(m), prod(n)])
    return cast_operand(reshaped(product, [*m, *n]), result_type)


def matmul(x: Any, y: Any) -> Array:
    """`dot`."""
    return dot(x, y)


def pallas_dot(a: Any, b: Any, trans_a: bool = False, trans_b: bool = False) -> Array:
    """``a @ b`` of blocks of two axes in float32 (integers in int32), either operand transposed first if it says so."""
    left, right = _maybe(a, trans_a), _maybe(b, trans_b)
    dtype, _ = promote([(left.dtype, left.weak), (right.dtype, right.weak)])
    preferred = dtype if dtype.bits > 32 else DType.float32 if dtype.is_float else DType.int32
    return dot(left, right, preferred_element_type=preferred)


def _maybe(x: Any, transposed: bool) -> Array:
    array = as_array(x, "pl.dot")
    return transpose(array) if transposed else array
