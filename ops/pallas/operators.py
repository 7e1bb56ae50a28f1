"""Python's operators on values of a kernel, each a function of `halfulp.ops.pallas.numpy` by its name there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .tracing import Array


def _unary(name: str, operand: Any) -> Array:
    from . import numpy

    result: Array = getattr(numpy, name)(operand)
    return result


def _call(name: str, first: Any, second: Any, other: Any) -> Array:
    """The function ``name`` on two operands, of which ``other`` is the one that may be anything."""
    from . import numpy, tracing  # which need this module

    if isinstance(other, ArrayOperators | bool | int | float | np.generic):
        result: Array = getattr(numpy, name)(first, second)
        return result
    if tracing.is_foreign(other):
        tracing.as_array(other, "an operator")  # raises: arrays of the host and tensors of a graph are no operands
    return NotImplemented  # type: ignore[no-any-return]  # Python then asks the other operand


class ArrayOperators:
    """The base of `Array`; its methods are written out for type checkers."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves operators to this class
    __hash__ = None  # type: ignore[assignment]  # == compares element by element

    def __add__(self, other: Any) -> Array:
        return _call("add", self, other, other)

    def __radd__(self, other: Any) -> Array:
        return _call("add", other, self, other)

    def __sub__(self, other: Any) -> Array:
        return _call("subtract", self, other, other)

    def __rsub__(self, other: Any) -> Array:
        return _call("subtract", other, self, other)

    def __mul__(self, other: Any) -> Array:
        return _call("multiply", self, other, other)

    def __rmul__(self, other: Any) -> Array:
        return _call("multiply", other, self, other)

    def __truediv__(self, other: Any) -> Array:
        return _call("divide", self, other, other)

    def __rtruediv__(self, other: Any) -> Array:
        return _call("divide", other, self, other)

    def __floordiv__(self, other: Any) -> Array:
        return _call("floor_divide", self, other, other)

    def __rfloordiv__(self, other: Any) -> Array:
        return _call("floor_divide", other, self, other)

    def __mod__(self, other: Any) -> Array:
        return _call("mod", self, other, other)

    def __rmod__(self, other: Any) -> Array:
        return _call("mod", other, self, other)

    def __pow__(self, other: Any) -> Array:
        return _call("power", self, other, other)

    def __rpow__(self, other: Any) -> Array:
        return _call("power", other, self, other)

    def __matmul__(self, other: Any) -> Array:
        return _call("matmul", self, other, other)

    def __rmatmul__(self, other: Any) -> Array:
        return _call("matmul", other, self, other)

    def __and__(self, other: Any) -> Array:
        return _call("bitwise_and", self, other, other)

    def __rand__(self, other: Any) -> Array:
        return _call("bitwise_and", other, self, other)

    def __or__(self, other: Any) -> Array:
        return _call("bitwise_or", self, other, other)

    def __ror__(self, other: Any) -> Array:
        return _call("bitwise_or", other, self, other)

    def __xor__(self, other: Any) -> Array:
        return _call("bitwise_xor", self, other, other)

    def __rxor__(self, other: Any) -> Array:
        return _call("bitwise_xor", other, self, other)

    def __lshift__(self, other: Any) -> Array:
        return _call("left_shift", self, other, other)

    def __rlshift__(self, other: Any) -> Array:
        return _call("left_shift", other, self, other)

    def __rshift__(self, other: Any) -> Array:
        return _call("right_shift", self, other, other)

    def __rrshift__(self, other: Any) -> Array:
        return _call("right_shift", other, self, other)

    def __neg__(self) -> Array:
        return _unary("negative", self)

    def __pos__(self) -> Array:
        return _unary("positive", self)

    def __abs__(self) -> Array:
        return _unary("abs", self)

    def __invert__(self) -> Array:
        return _unary("invert", self)

    def __lt__(self, other: Any) -> Array:
        return _call("less", self, other, other)

    def __le__(self, other: Any) -> Array:
        return _call("less_equal", self, other, other)

    def __gt__(self, other: Any) -> Array:
        return _call("greater", self, other, other)

    def __ge__(self, other: Any) -> Array:
        return _call("greater_equal", self, other, other)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return _call("equal", self, other, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return _call("not_equal", self, other, other)
