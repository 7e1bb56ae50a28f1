"""Element types and blocks made from nothing: ``jnp.float32``, zeros, arange, iota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.compiler import DType

from .elementwise import arithmetic
from .shaping import broadcast_to, checked_shape
from .specs import as_dtype
from .tracing import Array, as_array, cast, constant, current_trace, plain


class ScalarType:
    """An element type that also converts: ``jnp.int32(0)``, ``x.astype(jnp.int32)``."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype, so that numpy takes this for one."""
        return self._dtype.to_numpy()

    def __call__(self, value: Any) -> Any:
        """A value of the kernel converted, or a number as a numpy scalar."""
        return cast(value, self._dtype) if isinstance(value, Array) else self.dtype.type(value)

    def __eq__(self, other: object) -> bool:
        return other is self._dtype or (isinstance(other, ScalarType) and other._dtype is self._dtype)

    def __hash__(self) -> int:
        return hash(self._dtype)

    def __repr__(self) -> str:
        return f"jnp.{self._dtype.value}"


bool_ = ScalarType(DType.bool)
int8 = ScalarType(DType.int8)
int16 = ScalarType(DType.int16)
int32 = ScalarType(DType.int32)
int64 = ScalarType(DType.int64)
uint8 = ScalarType(DType.uint8)
uint16 = ScalarType(DType.uint16)
uint32 = ScalarType(DType.uint32)
uint64 = ScalarType(DType.uint64)
float16 = ScalarType(DType.float16)
bfloat16 = ScalarType(DType.bfloat16)
float32 = ScalarType(DType.float32)
float64 = ScalarType(DType.float64)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """A block whose every element is ``fill_value``, a number or a scalar of the kernel."""
    sizes = checked_shape(shape, "jnp.full")
    value = as_array(fill_value, "jnp.full")
    wanted = value.dtype if dtype is None else as_dtype(dtype, "jnp.full")
    if not isinstance(fill_value, Array):
        return constant(fill_value if wanted.is_float else wanted.to_numpy().type(fill_value).item(), wanted, sizes)
    return broadcast_to(cast(value, wanted), sizes)


def zeros(shape: Any, dtype: Any = DType.float32) -> Array:
    """A block of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = DType.float32) -> Array:
    """A block of ones."""
    return full(shape, 1, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Array:
    """A block of the shape (and type) of ``x``, filled with a value."""
    array = as_array(x, "jnp.full_like")
    return full(array.shape, fill_value, array.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None) -> Array:
    """Zeros of the shape (and type) of ``x``."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Array:
    """Ones of the shape (and type) of ``x``."""
    return full_like(x, 1, dtype)


def arange(start: int, stop: int | None = None, step: int = 1, dtype: Any = DType.int32) -> Array:
    """The ints from ``start`` (or 0) up to ``stop``, ``step`` apart, which are known when the kernel is traced."""
    first, last = (0, start) if stop is None else (start, stop)
    (count,) = checked_shape(len(range(first, last, step)), "jnp.arange")
    wanted = as_dtype(dtype, "jnp.arange")
    k = current_trace("jnp.arange").builder
    places = Array(k.iota([count], DType.int32.to_element_type()), DType.int32, [count])
    return cast(arithmetic("add", "jnp.arange", arithmetic("mul", "jnp.arange", places, step), first), wanted)


def asarray(x: Any, dtype: Any = None) -> Array:
    """A number as a value of the kernel, of ``dtype`` if that is given."""
    array = plain(as_array(x, "jnp.asarray"))
    return array if dtype is None else astype(array, dtype)


array = asarray


def astype(x: Any, dtype: Any) -> Array:
    """The same numbers in another type: floats to integers truncate and saturate, to bool is "not zero"."""
    return cast(as_array(x, "astype"), as_dtype(dtype, "astype"))


def iota(shape: Sequence[int], axis: int = 0, dtype: Any = DType.int32) -> Array:
    """The index of each element along an axis."""
    sizes, wanted = checked_shape(shape, "iota"), as_dtype(dtype, "iota")
    k = current_trace("iota").builder
    whole = wanted if wanted.is_integral else DType.int32
    return cast(Array(k.iota(sizes, whole.to_element_type(), axis), whole, sizes), wanted)
