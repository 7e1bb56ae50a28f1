"""The expansions of elementary functions computed with numpy: `halfulp.compiler.codegen.math` on arrays.

An emitter emits one operation per call; this one carries it out. Since every operation is exact or correctly rounded,
the bits are those of the compiled code.
"""

from __future__ import annotations

import numpy as np

from ..codegen.math.emitter import ElementType, FloatPredicate, IntegerPredicate
from . import casts, exact, integers
from .comparison import FLOAT_PREDICATES, INTEGER_PREDICATES
from .exact import Array

_DTYPES: dict[ElementType, np.dtype[np.generic]] = {
    "i1": np.dtype(np.bool_),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


class NumpyEmitter:
    """An ``Emitter[Array]``: values are arrays of bool, int32, int64, float32 or float64, all of one shape."""

    def constant(self, value: float, like: Array, type: ElementType | None = None) -> Array:
        dtype = np.asarray(like).dtype if type is None else _DTYPES[type]
        if casts.is_float(dtype):
            return np.full(np.shape(like), value, dtype)
        bits = integers.width(dtype)
        wrapped = int(value) & (1 << bits) - 1
        return np.full(np.shape(like), np.array(wrapped, f"u{dtype.itemsize}").astype(dtype))

    def add(self, a: Array, b: Array) -> Array:
        return exact.add(a, b)

    def sub(self, a: Array, b: Array) -> Array:
        return exact.subtract(a, b)

    def mul(self, a: Array, b: Array) -> Array:
        return exact.multiply(a, b)

    def div(self, a: Array, b: Array) -> Array:
        return exact.divide(a, b)

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        return exact.fma(a, b, c)

    def sqrt(self, a: Array) -> Array:
        return exact.square_root(a)

    def neg(self, a: Array) -> Array:
        return exact.negate(a)

    def abs(self, a: Array) -> Array:
        return exact.absolute(a)

    def copysign(self, magnitude: Array, sign: Array) -> Array:
        return exact.copy_sign(magnitude, sign)

    def iadd(self, a: Array, b: Array) -> Array:
        return integers.add(a, b)

    def isub(self, a: Array, b: Array) -> Array:
        return integers.subtract(a, b)

    def iand(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)

    def ior(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)

    def ixor(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)

    def shl(self, a: Array, count: int) -> Array:
        return integers.shift_left(a, np.full(np.shape(a), count, a.dtype))

    def lshr(self, a: Array, count: int) -> Array:
        return integers.shift_right_logical(a, np.full(np.shape(a), count, a.dtype))

    def ashr(self, a: Array, count: int) -> Array:
        return integers.shift_right_arithmetic(a, np.full(np.shape(a), count, a.dtype))

    def compare(self, predicate: FloatPredicate | IntegerPredicate, a: Array, b: Array) -> Array:
        # ult .. uge mean "unsigned" on integers and "or unordered" on floats
        table = FLOAT_PREDICATES if casts.is_float(a.dtype) else INTEGER_PREDICATES
        return np.asarray(table[predicate](a, b))

    def select(self, condition: Array, a: Array, b: Array) -> Array:
        return np.where(condition, a, b)

    def bitcast(self, a: Array, type: ElementType) -> Array:
        return np.asarray(a).view(_DTYPES[type])

    def cast(self, a: Array, type: ElementType) -> Array:
        return casts.cast(a, _DTYPES[type])

    def scale(self, value: Array, power: Array) -> Array | None:
        """None: the expansions scale by exact steps."""
        return None
