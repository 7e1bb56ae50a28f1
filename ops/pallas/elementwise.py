"""Functions of values, element by element: operands are promoted, broadcast, and given to one op of the IR or library.

What is more than one instruction (exp, mod, pow, ...) is the recipe of the op library, so a kernel computes the same
bits as the graph op of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from halfulp.compiler import DType, GraphTypeError, TensorType
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.registry import find_op
from halfulp.compiler.tile_builder import Value

from .errors import fault
from .promotion import DEFAULT_FLOAT, DEFAULT_INT, as_float, promote
from .tracing import (
    INDEX_RANGE,
    INT32_RANGE,
    Array,
    Bounds,
    as_array,
    broadcast,
    cast,
    constant,
    fits_int32,
    index_array,
    plain,
)

BoundsRule: TypeAlias = Callable[[Bounds, Bounds], "Bounds | None"]


def common(
    subject: str, operands: Sequence[Any], convert: Callable[[DType], DType] = lambda dtype: dtype
) -> tuple[list[Array], bool]:
    """The operands with one type and one shape, and whether the type is weak.

    ``convert`` makes the promoted type the one to compute in.

    Raises:
        GraphError: the shapes do not broadcast.
        GraphTypeError: something that is no operand.
    """
    arrays = [operand if _is_number(operand) else as_array(operand, subject) for operand in operands]
    dtype, weak = promote([_type_of(array) for array in arrays])
    computed = convert(dtype)
    typed = [constant(a, computed) if not isinstance(a, Array) else plain(cast_operand(a, computed)) for a in arrays]
    shape = common_shape(subject, [array.shape for array in typed])
    return [broadcast(plain(array), shape) for array in typed], weak


def _is_number(value: object) -> bool:
    """Whether it is a Python number, which gets its type from what it stands beside."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def _type_of(operand: Any) -> tuple[DType, bool]:
    if isinstance(operand, Array):
        return operand.dtype, operand.weak
    if isinstance(operand, bool):
        return DType.bool, False
    return (DEFAULT_INT if isinstance(operand, int) else DEFAULT_FLOAT), True


def cast_operand(array: Array, dtype: DType) -> Array:
    """``array`` in ``dtype``; a weak scalar constant becomes the nearest number of it."""
    return cast(array, dtype) if array.dtype is not dtype else array


def common_shape(subject: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to.

    Raises:
        GraphError: there is none.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise fault(
            f"{subject}: shapes {listed} do not broadcast; sizes of one axis must be equal or 1, reshape one of them"
        ) from None


def _indices(operands: Sequence[Any]) -> list[Array] | None:
    """The operands, if all are int32 scalars that are held as indices."""
    found: list[Array] = []
    for operand in operands:
        if isinstance(operand, int) and not isinstance(operand, bool):
            if not INT32_RANGE[0] <= operand <= INT32_RANGE[1]:
                return None
            found.append(constant(operand, DType.int32, weak=True))
        elif isinstance(operand, np.int32):
            found.append(constant(int(operand), DType.int32))
        elif isinstance(operand, Array) and operand.bounds is not None:
            found.append(operand)
        else:
            return None
    return found if any(isinstance(operand, Array) for operand in operands) else None


def _corners(function: Callable[[int, int], int]) -> BoundsRule:
    """The range of a function that is monotonic in each operand."""

    def bounds(a: Bounds, b: Bounds) -> Bounds:
        values = [function(x, y) for x in a for y in b]
        return min(values), max(values)

    return bounds


def _division_bounds(function: Callable[[int, int], int]) -> BoundsRule:
    def bounds(a: Bounds, b: Bounds) -> Bounds | None:
        return _corners(function)(a, b) if b[0] > 0 else None

    return bounds


def _remainder_bounds(a: Bounds, b: Bounds) -> Bounds | None:
    return (0, b[1] - 1) if b[0] > 0 else None


_INDEX_BOUNDS: dict[str, BoundsRule] = {
    "add": _corners(lambda x, y: x + y),
    "sub": _corners(lambda x, y: x - y),
    "mul": _corners(lambda x, y: x * y),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "floor_div": _division_bounds(lambda x, y: x // y),
    "mod": _remainder_bounds,
}


_EXACT_MODULO = ("add", "sub", "mul")
"""What may be computed on indices first and wrapped later."""


def _on_indices(kind: str, operands: Sequence[Any]) -> Array | None:
    """The result as an index, if operands and result can be held as such."""
    arrays = _indices(operands)
    if arrays is None:
        return None
    a, b = arrays
    assert a.bounds is not None
    assert b.bounds is not None
    if kind not in _EXACT_MODULO and not (fits_int32(a.bounds) and fits_int32(b.bounds)):
        return None
    bounds = _INDEX_BOUNDS[kind](a.bounds, b.bounds)
    if bounds is None or not (INDEX_RANGE[0] <= bounds[0] and bounds[1] <= INDEX_RANGE[1]):
        return None
    k = a.value.builder
    if kind in ("floor_div", "mod"):
        value = k.int_div("floordivs" if kind == "floor_div" else "mods", a.value, b.value)
    else:
        value = k.binary({"maximum": "maxs", "minimum": "mins"}.get(kind, kind), a.value, b.value)
    result = index_array(value, *bounds)
    result.weak = a.weak and b.weak
    return result


_SIGNED = {"maximum": "maxs", "minimum": "mins"}
_UNSIGNED = {"maximum": "maxu", "minimum": "minu"}
_BOOL = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}


def arithmetic(kind: str, subject: str, x: Any, y: Any) -> Array:
    """``add sub mul maximum minimum`` of numbers, or of bools as JAX has them (or, and)."""
    on_indices = _on_indices(kind, (x, y))
    if on_indices is not None:
        return on_indices
    (a, b), weak = common(subject, (x, y))
    if a.dtype is DType.bool:
        if kind not in _BOOL:
            raise fault(f"{subject} takes numbers, not bools; use ^ or .astype(jnp.int32)", GraphTypeError)
        name = _BOOL[kind]
    elif a.dtype.is_float:
        name = kind
    else:
        name = (_SIGNED if a.dtype.is_signed else _UNSIGNED).get(kind, kind)
    return Array(a.value.builder.binary(name, a.value, b.value), a.dtype, a.shape, weak=weak)


def bitwise(kind: str, subject: str, x: Any, y: Any) -> Array:
    """``and or xor`` of integers or bools."""
    (a, b), weak = common(subject, (x, y))
    _require(subject, a.dtype, not a.dtype.is_float, "integers or bools")
    return Array(a.value.builder.binary(kind, a.value, b.value), a.dtype, a.shape, weak=weak)


def compare(kind: str, subject: str, x: Any, y: Any) -> Array:
    """``lt le gt ge eq ne``."""
    indices = _indices((x, y))
    if indices is not None and all(fits_int32(index.bounds or INDEX_RANGE) for index in indices):
        first, second = indices
        return Array(first.value.builder.compare(kind, first.value, second.value), DType.bool, ())
    (a, b), _ = common(subject, (x, y))
    unsigned = a.dtype.kind in ("unsigned", "bool") and kind not in ("eq", "ne")
    predicate = f"u{kind}" if unsigned else kind
    return Array(a.value.builder.compare(predicate, a.value, b.value), DType.bool, a.shape)


def library(name: str, subject: str, *operands: Any, floats: bool = False) -> Array:
    """The op ``name`` of the library on operands of one type; ``floats`` computes integers in float32."""
    if name in _INDEX_BOUNDS:
        on_indices = _on_indices(name, operands)
        if on_indices is not None:
            return on_indices
    arrays, weak = common(subject, operands, as_float if floats else lambda dtype: dtype)
    return Array(library_value(name, subject, arrays), arrays[0].dtype, arrays[0].shape, weak=weak)


def library_value(name: str, subject: str, arrays: Sequence[Array], result: DType | None = None) -> Value:
    """The recipe of a library op on operands of one type and shape, after its own check of the types."""
    op = find_op(name, subject)
    types = tuple(TensorType(array.dtype, array.shape) for array in arrays)
    try:
        (inferred, *_) = op.infer(types, {})
    except GraphTypeError as error:
        raise fault(f"{subject}: {error.message}", GraphTypeError) from None
    assert op.recipe is not None
    call = OpCall(op, types, (inferred,), {})
    value: Value = op.recipe(arrays[0].value.builder, call, *[array.value for array in arrays])
    assert result is None or inferred.dtype is result
    return value


def predicate(name: str, subject: str, x: Any) -> Array:
    """``is_nan`` or ``is_inf``; false for what is no float."""
    array = plain(as_array(x, subject))
    if not array.dtype.is_float:
        return broadcast(constant(False, DType.bool), array.shape)
    return Array(library_value(name, subject, [array], DType.bool), DType.bool, array.shape)


def select(condition: Any, x: Any, y: Any, subject: str) -> Array:
    """``x`` where the condition holds, ``y`` elsewhere."""
    test = as_array(condition, subject)
    if test.dtype is not DType.bool:
        test = cast(test, DType.bool)
    (a, b), weak = common(subject, (x, y))
    shape = common_shape(subject, [test.shape, a.shape])
    a, b = broadcast(a, shape), broadcast(b, shape)
    mask = test if not test.shape else broadcast(test, shape)
    return Array(a.value.builder.select(mask.value, a.value, b.value), a.dtype, shape, weak=weak)


def integer_power(x: Any, exponent: int, subject: str) -> Array:
    """``x`` to a whole power by squaring; of a negative exponent the reciprocal."""
    base = as_array(x, subject)
    result: Array | None = None
    square, rest = base, abs(exponent)
    while rest:
        if rest & 1:
            result = square if result is None else arithmetic("mul", subject, result, square)
        rest >>= 1
        if rest:
            square = arithmetic("mul", subject, square, square)
    if result is None:
        return broadcast(cast(constant(1, DType.int32), base.dtype), base.shape)
    return result if exponent > 0 else divide(1, result, subject)


def divide(x: Any, y: Any, subject: str) -> Array:
    """``x / y`` of floats; integers are computed in float32."""
    (a, b), weak = common(subject, (x, y), as_float)
    return Array(a.value.builder.binary("div", a.value, b.value), a.dtype, a.shape, weak=weak)


def _require(subject: str, dtype: DType, holds: bool, wanted: str) -> None:
    if not holds:
        raise fault(f"{subject} takes {wanted}, not {dtype}; convert with .astype(...)", GraphTypeError)
