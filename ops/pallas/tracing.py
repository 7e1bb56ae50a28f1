"""Values of a kernel while it is traced: `Array` stands for a block or a scalar that each program will compute.

An int32 scalar whose range is known, such as a program id, is held as an index of the IR. Block indices stay visible as
sums and products of program ids, and an offset that is used as one is exact even where it exceeds int32; where such a
value is used as a number, it wraps as int32 does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IndexType

from halfulp.compiler import DType, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.dialects.tile.types import with_shape
from halfulp.compiler.errors import SourceLocation
from halfulp.compiler.locations import user_location
from halfulp.compiler.tile_builder import KernelBuilder, Value

from .errors import fault
from .operators import ArrayOperators
from .promotion import DEFAULT_FLOAT, DEFAULT_INT

Bounds: TypeAlias = "tuple[int, int]"

INT32_RANGE = DType.int32.integer_range
INDEX_RANGE = (-(1 << 62), (1 << 62) - 1)
"""What an index of the IR holds with room to spare."""


@dataclass
class Trace:
    """A kernel being traced: the builder of its body, its name for messages, the function itself.

    ``checked`` says whether blocks and dynamic slices that leave their array fail the call, ``checked_indices``
    whether single indices do, too, instead of being moved to the nearest element.
    """

    builder: KernelBuilder
    name: str
    function: Any
    checked: bool = False
    checked_indices: bool = False
    asked_for_int: SourceLocation | None = None
    """Where Python last asked a value of the kernel for an int, as numpy does of an index."""

    def take_request(self) -> SourceLocation | None:
        """Where an int was asked for since this was called last."""
        place, self.asked_for_int = self.asked_for_int, None
        return place

    def name_of(self, value: object) -> str | None:
        """The name under which the kernel's function reaches ``value``: a variable around it or a global."""
        function = getattr(self.function, "func", self.function)
        code = getattr(function, "__code__", None)
        if code is None:
            return None
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        around = {name: cell.cell_contents for name, cell in cells if _is_set(cell)}
        known = {**{name: function.__globals__.get(name) for name in code.co_names}, **around}
        return next((name for name, held in known.items() if held is value), None)


def _is_set(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


_traces: ContextVar[tuple[Trace, ...]] = ContextVar("_traces", default=())


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Inside the ``with``, values of this kernel can be made."""
    token = _traces.set((*_traces.get(), trace))
    try:
        yield
    finally:
        _traces.reset(token)


@contextmanager
def refusing_captured_arrays(subject: str) -> Iterator[None]:
    """Runs the user's function; ``subject`` is it.

    Raises:
        GraphError: it indexes an array of the host by a value of the kernel, of which numpy says only that it is no
            index.
    """
    trace = current_trace("a kernel")
    trace.take_request()
    try:
        yield
    except IndexError:
        place = trace.take_request()
        if place is None:
            raise
        raise GraphError(
            f"{subject} must not capture constants: it indexes an array of the host by a value of the kernel. You "
            "should pass that array as an input",
            place,
        ) from None


def current_trace(subject: str) -> Trace:
    """The kernel being traced. ``subject`` is what asks for it.

    Raises:
        GraphError: none is.
    """
    traces = _traces.get()
    if not traces:
        raise fault(f"{subject} works on values of a kernel, but no kernel is being traced; call it inside one")
    return traces[-1]


class Array(ArrayOperators):
    """A block, or a scalar, of a kernel being traced. It works like a numpy array of its shape and dtype.

    ``weak`` says that it was computed from Python numbers alone and takes the type of what it meets. ``bounds`` of
    an int32 scalar are the least and the largest value that it can have before it wraps; its ``value`` is an index
    then.
    """

    __slots__ = ("bounds", "dtype", "shape", "value", "weak")

    def __init__(
        self, value: Value, dtype: DType, shape: Sequence[int], *, weak: bool = False, bounds: Bounds | None = None
    ) -> None:
        self.value = value
        self.dtype = dtype
        self.shape = tuple(shape)
        self.weak = weak
        self.bounds = bounds

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Array:  # noqa: N802  (numpy's name)
        """The axes in reverse order."""
        return _numpy("transpose", self)

    def astype(self, dtype: Any) -> Array:
        """The same numbers in another type: floats to integers truncate and saturate, to bool is "not zero"."""
        return _numpy("astype", self, dtype)

    def reshape(self, *shape: Any) -> Array:
        """The same elements in row-major order under another shape; one size may be -1."""
        return _numpy("reshape", self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def transpose(self, *axes: int) -> Array:
        """Another order of axes; the reverse one by default."""
        return _numpy("transpose", self, axes or None)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The sum along an axis, several or all."""
        return _numpy("sum", self, axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The largest element along an axis, several or all; NaN if there is one."""
        return _numpy("max", self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The smallest element along an axis, several or all; NaN if there is one."""
        return _numpy("min", self, axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The sum divided by the number of elements."""
        return _numpy("mean", self, axis, keepdims=keepdims)

    def __getitem__(self, index: Any) -> Array:
        from .subscript import subscript

        return subscript(self, index)

    def __len__(self) -> int:
        if not self.shape:
            raise fault("a scalar of a kernel has no length", GraphTypeError)
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        self._refuse("is neither true nor false", "write pl.when(condition), pl.cond or jnp.where instead of if")

    def __int__(self) -> NoReturn:
        self._refuse("is no Python int", "keep it as a value: pl.fori_loop takes bounds, x[i] and pl.ds take indices")

    def __index__(self) -> NoReturn:
        current_trace("a value").asked_for_int = user_location()
        self._refuse("is no Python int", "write pl.fori_loop instead of range, and x[i] on a reference of the kernel")

    def __float__(self) -> NoReturn:
        self._refuse("is no Python float", "keep it as a value of the kernel")

    def _refuse(self, rule: str, remedy: str) -> NoReturn:
        raise fault(
            f"{self!r} of kernel {current_trace('a value').name!r} {rule} while the kernel is traced, once for all "
            f"programs; {remedy}",
            GraphTypeError,
        )

    def __repr__(self) -> str:
        return f"a value of type {self.dtype}[{','.join(map(str, self.shape))}]"


def _numpy(name: str, *arguments: Any, **keywords: Any) -> Array:
    """A function of `halfulp.ops.pallas.numpy`."""
    from . import numpy  # which needs this module

    result: Array = getattr(numpy, name)(*arguments, **keywords)
    return result


# -- from Python to values


def is_foreign(value: object) -> bool:
    """Whether it is an array of the host or a tensor of a graph, which no kernel can hold."""
    return isinstance(value, TensorValue | np.ndarray) or (
        hasattr(value, "__array__") and not isinstance(value, Array | np.generic)
    )


def as_array(value: Any, subject: str) -> Array:
    """A value of the kernel from itself or a number. ``subject`` is what takes it.

    Raises:
        GraphTypeError: anything else.
        GraphError: an array from outside the kernel, which must be passed as an input.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, bool | int | float):
        kind = DType.bool if isinstance(value, bool) else DEFAULT_INT if isinstance(value, int) else DEFAULT_FLOAT
        return constant(value, kind, weak=not isinstance(value, bool))
    if isinstance(value, np.generic):
        return constant(value.item(), DType.from_numpy(value.dtype))
    if is_foreign(value):
        _refuse_captured(value)
    from .refs import Ref

    if isinstance(value, Ref):
        raise fault(
            f"{subject} takes values, not the reference {value.name!r}; did you forget to load from it using `[...]`?",
            GraphTypeError,
        )
    raise fault(f"{subject} takes values of the kernel and numbers, not {value!r}", GraphTypeError)


def _refuse_captured(value: Any) -> NoReturn:
    trace = current_trace("an array")
    name = trace.name_of(value)
    kind = "tensor" if isinstance(value, TensorValue) else "array"
    shown = f"the {kind} {name!r}" if name else f"an {kind}"
    dtype = getattr(value.dtype, "name", value.dtype)
    raise fault(
        f"kernel {trace.name!r} captures constants: {shown} of type {dtype}[{','.join(map(str, value.shape))}] comes "
        "from outside. You should pass them as inputs."
    )


def constant(value: bool | int | float, dtype: DType, shape: Sequence[int] = (), *, weak: bool = False) -> Array:
    """A value with every element equal to a number.

    Raises:
        GraphError: the type cannot hold it.
    """
    k = current_trace("a constant").builder
    checked = _representable(value, dtype)
    element = dtype.to_element_type()
    if dtype is DType.int32 and not shape:
        return Array(k.index(int(checked)), dtype, (), weak=weak, bounds=(int(checked), int(checked)))
    return Array(k.constant(checked, with_shape(shape, element)), dtype, shape, weak=weak)


def _representable(value: bool | int | float, dtype: DType) -> bool | int | float:
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return float(np.asarray(value, np.float64).astype(dtype.to_numpy()))
    if isinstance(value, float):
        value = _truncated(value)
    low, high = dtype.integer_range
    if not low <= value <= high:
        raise fault(f"the number {value} is out of range for {dtype}, which holds {low} to {high}")
    return int(value)


def _truncated(value: float) -> int:
    if not math.isfinite(value):
        raise fault(f"the number {value} is no integer")
    return int(value)


# -- conversions


def plain(array: Array) -> Array:
    """The same value, an int32 held as such and not as an index."""
    if array.bounds is None:
        return array
    k = array.value.builder
    return Array(k.cast(array.value, DType.int32.to_element_type()), DType.int32, (), weak=array.weak)


def as_index(value: Array | int | np.integer[Any]) -> Value | int:
    """An integer scalar as an index of the IR; a Python int stays one."""
    if not isinstance(value, Array):
        return int(value)
    if value.bounds is not None:
        return value.bounds[0] if value.bounds[0] == value.bounds[1] else value.value
    return value.value.builder.cast(value.value, IndexType(), unsigned_source=value.dtype.kind == "unsigned")


def index_array(value: Value, low: int, high: int) -> Array:
    """An int32 scalar from an index of the IR that lies in ``low .. high``."""
    return Array(value, DType.int32, (), bounds=(low, high))


def fits_int32(bounds: Bounds) -> bool:
    """Whether a value in this range is the same number as an int32."""
    return INT32_RANGE[0] <= bounds[0] and bounds[1] <= INT32_RANGE[1]


def cast(array: Array, dtype: DType) -> Array:
    """The same numbers in another type (`Array.astype`)."""
    if array.dtype is dtype:
        return array if not array.weak else Array(array.value, dtype, array.shape, bounds=array.bounds)
    source = plain(array)
    k = source.value.builder
    value = k.cast(
        source.value,
        dtype.to_element_type(),
        unsigned_source=source.dtype.kind in ("unsigned", "bool"),
        unsigned_result=dtype.kind == "unsigned",
    )
    return Array(value, dtype, array.shape)


def broadcast(array: Array, shape: Sequence[int]) -> Array:
    """Axes of size 1 repeated, and axes added in front, up to ``shape``, to which it must fit."""
    shape = tuple(shape)
    if array.shape == shape:
        return array
    array = plain(array)
    k = array.value.builder
    if not array.shape:
        value = k.splat(array.value, shape)
    else:
        padded = (1,) * (len(shape) - array.ndim) + array.shape
        value = array.value if padded == array.shape else k.reshape(array.value, padded)
        value = value if padded == shape else k.broadcast(value, shape)
    return Array(value, array.dtype, shape, weak=array.weak)
