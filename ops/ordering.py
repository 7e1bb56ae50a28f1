"""Order along an axis: argmax, argmin, top_k, bottom_k, argsort, cumsum.

NaN counts as larger than every number (argmax, top_k and argsort) and smaller as well for argmin: the first NaN is
found by both. Equal elements keep the order of their indices, 0.0 and -0.0 being equal. Indices are int64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, f32, f64, i32, i64
from xdsl.dialects.builtin import TensorType as BlockType

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import shape_text

from .axes import axis_of
from .comparison import equal, is_nan, logical_or, where
from .contract import NUMBERS, Array, Example, promise_examples
from .elementwise import wrong_dtype
from .expansion import Steps
from .promotion import TensorValueLike, as_tensor, cast_to
from .reduction import max, min, widened
from .reshaping import elements, reshape
from .samples import anything, moderate
from .selection import transpose
from .sizes import iota

BLOCK = 4096
"""Elements that one element is compared with at a time."""
COLUMNS = 64
"""Sums that a program of cumsum carries side by side."""
MOST_MERGED = 256
"""Up to so many first elements are kept in order while a row passes; one that enters moves past those it beats."""
BEYOND = (1 << 63) - 1


def argmax(x: TensorValueLike, axis: int = -1) -> TensorValue:
    """Where the largest element along ``axis`` is, as int64; the first of several. The first NaN, if there is one.

    Of an axis without elements, 2**63 - 1, which is no index of anything.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    return _position("ops.argmax", x, axis, largest=True)


def argmin(x: TensorValueLike, axis: int = -1) -> TensorValue:
    """Where the smallest element along ``axis`` is, as int64; the first of several. The first NaN, if there is one.

    Of an axis without elements, 2**63 - 1, which is no index of anything.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    return _position("ops.argmin", x, axis, largest=False)


def _position(subject: str, x: object, axis: object, *, largest: bool) -> TensorValue:
    """The least index whose element is the extreme one, which is NaN if one is."""
    value, number = _numbers(subject, x, axis)
    value = widened(value)
    extreme = max(value, axis=number) if largest else min(value, axis=number)
    found = equal(value, extreme)
    if value.dtype.is_float:
        found = logical_or(found, is_nan(value))
    shape = [1] * value.rank
    indices = reshape(iota(value.graph, value.shape[number], value.device), [*shape[:number], -1, *shape[number + 1 :]])
    return min(where(found, indices, BEYOND), axis=number)


def _numbers(subject: str, x: object, axis: object) -> tuple[TensorValue, int]:
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if value.dtype not in NUMBERS:
            raise GraphTypeError(f"{subject}: {wrong_dtype(value.dtype, NUMBERS)}")
        return value, axis_of(subject, value, axis)


# -- sorting: the rank of an element is the number of those that come before it


def _infer_sorted(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    size = x.shape[-1] if parameters["k"] < 0 else parameters["k"]
    shape = (*x.shape[:-1], size)
    return [TensorType(x.dtype, shape, x.device), TensorType(DType.int64, shape, x.device)]


def _before(k: KernelBuilder, call: OpCall, others: Value, own: Value) -> tuple[Value, Value]:
    """Which of the others come strictly before the own element, and which are equal to it."""
    ascending = call.parameters["ascending"]
    dtype = call.operands[0].dtype
    if not dtype.is_float:
        less = {"signed": "lt", "unsigned": "ult", "bool": "ult"}[dtype.kind]
        pair = (others, own) if ascending else (own, others)
        return k.compare(less, *pair), others == own
    nan, own_nan = others != others, own != own
    smaller = (others < own) if ascending else (others > own)
    nan_first = (~nan & own_nan) if ascending else (nan & ~own_nan)
    return smaller | nan_first, (others == own) | (nan & own_nan)


def _sorted_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """Program (row, i) counts what comes before element i, and writes it there; beyond k that is dropped."""
    (source,) = operands

    def body(k: KernelBuilder) -> None:
        read, values, indices = k.arguments
        row, place = k.program_ids
        own = k.splat(k.read(read, row, place), [BLOCK])
        position = k.cast(place, i64)
        size = k.dim(read, 1)

        def count(chunk: Value, total: Value) -> list[Value]:
            others = k.load(k.window(read, [row, chunk], [1, BLOCK], squeezed=[0]))
            at = k.iota([BLOCK], i64) + k.cast(chunk * BLOCK, i64)
            first, same = _before(k, call, others, own)
            counted = (first | (same & (at < position))) & (at < k.cast(size, i64))
            return [total + k.reduce("add", k.select(counted, k.constant(1, BlockType(i64, [BLOCK])), 0))]

        (rank,) = k.for_loop(0, (size + (BLOCK - 1)) // BLOCK, [k.constant(0, i64)], count)
        target = k.cast(rank, IndexType())
        k.write(k.extract(own, 0), values, row, target)
        k.write(position, indices, row, target)

    entry.launch("sort", [source, *results], [entry.dim(source, 0), entry.dim(source, 1)], body)


# -- the first few: one pass over the row, in which few elements come before the last of those kept


def _key_type(call: OpCall) -> IntegerType:
    dtype = call.operands[0].dtype
    return i64 if dtype.bits > 32 or dtype is DType.uint32 else i32


def _least(key_type: IntegerType) -> int:
    return -(1 << (key_type.width.data - 1))


def _key(k: KernelBuilder, call: OpCall, x: Value) -> Value:
    """Signed integers of 32 or 64 bits: equal where elements are, larger where they come earlier."""
    dtype, wide = call.operands[0].dtype, _key_type(call)
    if dtype.is_float:
        x = k.cast(x, f64 if wide == i64 else f32)
        bits = Steps(k, "sort").bitcast(k.select(x == 0.0, 0.0, x), wide)  # 0 and -0 are equal
        largest = -_least(wide) - 1
        ordered = k.select(bits < 0, bits ^ largest, bits)
        key = k.select(x != x, largest, ordered)
    else:
        key = k.cast(x, wide, unsigned_source=not dtype.is_signed)
        if dtype is DType.uint64:
            key = key ^ _least(wide)
    return key ^ -1 if call.parameters["ascending"] else key


def _first_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """Program (row) keeps the first k elements of what it has seen, and in the end looks up their values."""
    (source,), kept = operands, _count_of(call)

    def body(k: KernelBuilder) -> None:
        read, values, indices = k.arguments
        (row,) = k.program_ids
        size = k.dim(read, 1)

        def merge(chunk: Value, keys: Value, places: Value) -> Sequence[Value]:
            key = _key(k, call, k.load(k.window(read, [row, chunk], [1, BLOCK], squeezed=[0])))
            at = k.iota([BLOCK], i64) + k.cast(chunk * BLOCK, i64)
            exists = at < k.cast(size, i64)
            return k.top_merge(
                keys, places, k.select(exists, key, _least(_key_type(call))), k.select(exists, at, BEYOND)
            )

        key_type = _key_type(call)
        start = [k.constant(_least(key_type), BlockType(key_type, [kept])), k.constant(BEYOND, BlockType(i64, [kept]))]
        _, places = k.for_loop(0, (size + (BLOCK - 1)) // BLOCK, start, merge)

        def write(number: Value) -> None:
            place = k.extract(places, number)
            k.write(place, indices, row, number)
            k.write(k.read(read, row, k.cast(place, IndexType())), values, row, number)

        k.for_loop(0, kept, [], write)

    entry.launch("first", [source, *results], [entry.dim(source, 0)], body)


def _ordered_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    if _count_of(call) > 0 and not isinstance(call.operands[0].shape[-1], StaticDim):
        _launch_size_check(entry, call, operands[0])
    recipe = _first_recipe if 0 < _count_of(call) <= MOST_MERGED else _sorted_recipe
    recipe(entry, call, operands, results)


def _launch_size_check(entry: EntryBuilder, call: OpCall, source: Value) -> None:
    """One program that fails where the axis has fewer elements than are wanted; no row need exist for it to run."""
    name, wanted = "bottom_k" if call.parameters["ascending"] else "top_k", _count_of(call)

    def body(k: KernelBuilder) -> None:
        size = k.dim(k.arguments[0], 1)
        message = f"ops.{name}: k is {wanted}, but the axis has size '{call.operands[0].shape[-1]}', which is {{}}; "
        message += "take fewer, or pad x"
        k.check(size >= wanted, message, size)

    entry.launch("count", [source], [entry.index(1)], body)


def _count_of(call: OpCall) -> int:
    """How many elements are wanted, -1 for all."""
    count = call.parameters["k"]
    assert isinstance(count, int)
    return count


SORT = register_op(
    OpDef(
        "sort",
        "opaque",
        ("x",),
        _infer_sorted,
        parameters=(ParameterSpec("ascending", bool), ParameterSpec("k", int)),
        recipe=_ordered_recipe,
    )
)


def _sorted(value: TensorValue, axis: int, k: int, *, ascending: bool) -> tuple[TensorValue, TensorValue]:
    """The first k elements along an axis in order (all of them if k is -1), and their indices."""
    last = value.rank - 1
    moved = value if axis == last else transpose(value, axis, last)
    rows = reshape(moved, [elements(moved.shape[:-1]), moved.shape[-1]])
    parts = value.graph.apply(SORT, [rows], {"ascending": ascending, "k": k})
    size = moved.shape[-1] if k < 0 else k
    values, indices = (reshape(part, [*moved.shape[:-1], size]) for part in parts)
    if axis == last:
        return values, indices
    return transpose(values, axis, last), transpose(indices, axis, last)


def top_k(x: TensorValueLike, k: int, axis: int = -1) -> tuple[TensorValue, TensorValue]:
    """The k largest elements along ``axis`` in descending order, and their indices (int64).

    If the axis turns out to have fewer than k elements when the graph runs, the execution fails.

    Raises:
        GraphError: k is negative or more than the axis is known to have, or there is no such axis.
        GraphTypeError: ``x`` is no tensor of numbers, or k no int.
    """
    return _first_k("ops.top_k", x, k, axis, ascending=False)


def bottom_k(x: TensorValueLike, k: int, axis: int = -1) -> tuple[TensorValue, TensorValue]:
    """The k smallest elements along ``axis`` in ascending order, and their indices (int64).

    If the axis turns out to have fewer than k elements when the graph runs, the execution fails.

    Raises:
        GraphError: k is negative or more than the axis is known to have, or there is no such axis.
        GraphTypeError: ``x`` is no tensor of numbers, or k no int.
    """
    return _first_k("ops.bottom_k", x, k, axis, ascending=True)


def _first_k(subject: str, x: object, k: object, axis: object, *, ascending: bool) -> tuple[TensorValue, TensorValue]:
    value, number = _numbers(subject, x, axis)
    with Located():
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise GraphTypeError(f"{subject}: k must be an int, not {k!r}")
        size = value.shape[number]
        if k < 0 or (isinstance(size, StaticDim) and k > int(size)):
            raise GraphError(
                f"{subject}: k must be from 0 to '{size}', the size of axis {number} of x, {shape_text(value.shape)}, "
                f"not {k}"
            )
    return _sorted(value, number, int(k), ascending=ascending)


def argsort(x: TensorValueLike, ascending: bool = True) -> TensorValue:
    """The indices (int64) that put the elements of the last axis in order; equal ones keep theirs.

    Raises:
        GraphError: ``x`` is a scalar.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    value, number = _numbers("ops.argsort", x, -1)
    return _sorted(value, number, -1, ascending=ascending)[1]


# -- cumsum


def _infer_cumsum(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    return [operands[0]]


def _cumsum_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """x [a, n, b]: a program carries the sums of some columns, element after element; one alone in a register."""
    exclusive, reverse = call.parameters["exclusive"], call.parameters["reverse"]
    element, columns = call.operands[0].dtype.to_element_type(), 1 if call.operands[0].shape[2] == 1 else COLUMNS

    def body(k: KernelBuilder) -> None:
        read, write = k.arguments
        row, chunk = k.program_ids
        size, start = k.dim(read, 1), chunk * columns

        def window(ref: Value, place: Value) -> Value:
            return k.window(ref, [row, place, start], [1, 1, columns], indexing="element", squeezed=[0, 1])

        def step(index: Value, total: Value) -> list[Value]:
            place = size - 1 - index if reverse else index
            if columns == 1:
                after = total + k.read(read, row, place, 0)
                k.write(total if exclusive else after, write, row, place, 0)
                return [after]
            after = total + k.load(window(read, place))
            k.store(total if exclusive else after, window(write, place))
            return [after]

        zero = k.constant(0, element if columns == 1 else BlockType(element, [columns]))
        k.for_loop(0, size, [zero], step)

    (source,) = operands
    grid = [entry.dim(source, 0), (entry.dim(source, 2) + (columns - 1)) // columns]
    entry.launch("cumsum", [source, *results], grid, body)


CUMSUM = register_op(
    OpDef(
        "cumsum",
        "opaque",
        ("x",),
        _infer_cumsum,
        parameters=(ParameterSpec("exclusive", bool), ParameterSpec("reverse", bool)),
        fastmath=True,
        recipe=_cumsum_recipe,
    )
)


def cumsum(x: TensorValueLike, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> TensorValue:
    """The running sums along ``axis``, one rounding for each element; f16 and bf16 run in f32. Integers wrap.

    Args:
        x: numbers.
        axis: the axis.
        exclusive: whether a sum leaves its own element out, and so starts with 0.
        reverse: whether to run from the end.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor of numbers.
    """
    value, number = _numbers("ops.cumsum", x, axis)
    wide = widened(value)
    shape = [elements(value.shape[:number]), value.shape[number], elements(value.shape[number + 1 :])]
    flags = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
    result = value.graph.apply(CUMSUM, [reshape(wide, shape)], flags)[0]
    return cast_to(reshape(result, value.shape), value.dtype)


# -- contracts


def _order(x: Array, ascending: bool) -> Array:
    """The stable order of the last axis, NaN being the largest."""
    if x.dtype == object:
        return np.argsort(x if ascending else -x, axis=-1, kind="stable")
    nan = np.isnan(x)
    numbers = np.where(nan, 0, x)
    return np.lexsort((numbers, nan) if ascending else (-numbers, ~nan))


def _reference_first(x: Array, k: int, axis: int, ascending: bool) -> tuple[Array, Array]:
    indices = np.moveaxis(_order(np.moveaxis(x, axis, -1), ascending)[..., :k], -1, axis)
    return np.take_along_axis(x, indices, axis), indices


def _reference_cumsum(x: Array, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> Array:
    numbers = np.flip(x, axis) if reverse else x
    sums = np.cumsum(numbers, axis)
    if exclusive:
        zeros = np.zeros_like(np.take(sums, [0], axis)) if sums.shape[axis] else sums
        sums = np.concatenate([zeros, np.take(sums, range(sums.shape[axis] - 1), axis)], axis) if sums.size else sums
    return np.asarray(np.flip(sums, axis) if reverse else sums)


def _cumsum_tolerance(epsilon: float, x: Array, axis: int = -1, **parameters: bool) -> Array:
    sizes = _reference_cumsum(np.abs(x), axis, **parameters)
    return np.asarray(x.shape[axis] * epsilon / 2 * sizes)


def _lines(dtype: DType) -> list[Example]:
    cases = (((5,), 0), ((3, 70), 0), ((3, 70), -1), ((2, 9, 4), 1), ((3, 1), 1))
    return [Example((anything(dtype, shape),), {"axis": axis}) for shape, axis in cases]


def _first_examples(dtype: DType) -> list[Example]:
    cases = (((5,), 0, 0), ((3, 70), 0, 1), ((2, 9, 4), 1, 9), ((4, 300), 1, 7))
    return [Example((anything(dtype, shape),), {"axis": axis, "k": k}) for shape, axis, k in cases]


def _argsort_examples(dtype: DType) -> list[Example]:
    shapes = ((0,), (1,), (3, 70), (2, 2, 9))
    return [Example((anything(dtype, shape),), {"ascending": up}) for shape in shapes for up in (True, False)]


def _cumsum_examples(dtype: DType) -> list[Example]:
    modes = [{"exclusive": exclusive, "reverse": reverse} for exclusive in (False, True) for reverse in (False, True)]
    return [
        Example((moderate(dtype, shape),), {**mode, "axis": axis})
        for shape, axis in (((7,), 0), ((3, 130), 1), ((70, 66), 0), ((0, 3), 0))
        for mode in modes
    ]


promise_examples(argmax, NUMBERS, lambda x, axis: np.argmax(x, axis, keepdims=True), _lines)
promise_examples(argmin, NUMBERS, lambda x, axis: np.argmin(x, axis, keepdims=True), _lines)
promise_examples(top_k, NUMBERS, lambda x, k, axis: _reference_first(x, k, axis, False), _first_examples)
promise_examples(bottom_k, NUMBERS, lambda x, k, axis: _reference_first(x, k, axis, True), _first_examples)
promise_examples(argsort, NUMBERS, _order, _argsort_examples)
promise_examples(
    cumsum, NUMBERS, _reference_cumsum, _cumsum_examples, tolerance=_cumsum_tolerance, text="n * u * cumsum abs x"
)
