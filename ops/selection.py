"""Parts and orders of a tensor: permute, transpose, slice_tensor and indexing, split, chunk.

All are views but for steps other than 1, which copy. A view costs nothing where the result is computed with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from halfulp.compiler import Dim, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dim_algebra import Symbol
from halfulp.compiler.dims import DimLike, StaticDim, ceil_div
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import AxisAccess, OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.types import as_shape, shape_text

from .axes import axes_of, axis_of
from .contract import ALL, promise_examples
from .copying import copy_steps
from .indexing import gather
from .promotion import TensorValueLike, as_tensor
from .reshaping import reshape, unsqueeze
from .samples import of_shape

Index: TypeAlias = Any
"""An int, a size, a slice, a pair (slice, size), a scalar tensor, ``...`` or None."""


# -- permute


def _infer_permute(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    axes = parameters["axes"]
    if sorted(axes) != list(range(x.rank)):
        raise GraphError(f"axes {list(axes)} must name each axis of {shape_text(x.shape)} once")
    return [TensorType(x.dtype, [x.shape[axis] for axis in axes], x.device)]


def _permute_access(call: OpCall) -> list[AxisAccess]:
    axes = call.parameters["axes"]
    assert isinstance(axes, tuple)
    return [AxisAccess(axes.index(axis)) for axis in range(call.operands[0].rank)]


PERMUTE = register_op(
    OpDef("permute", "view", ("x",), _infer_permute, parameters=(ParameterSpec("axes", tuple),), access=_permute_access)
)


def permute(x: TensorValueLike, axes: Iterable[int]) -> TensorValue:
    """The axes in another order: axis i of the result is axis ``axes[i]`` of ``x``.

    Raises:
        GraphError: ``axes`` does not name each axis once.
        GraphTypeError: ``x`` is no tensor, or an axis no int.
    """
    subject = "ops.permute"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        order = axes_of(subject, value, axes)
        if len(order) != value.rank:
            raise GraphError(
                f"{subject}: axes has {len(order)} entries, but x, {shape_text(value.shape)}, has {value.rank} axes; "
                "name each once"
            )
    return graph.apply(PERMUTE, [value], {"axes": tuple(order)})[0]


def transpose(x: TensorValueLike, first: int, second: int) -> TensorValue:
    """Two axes exchanged.

    Raises:
        GraphError: ``x`` has no such axis.
        GraphTypeError: ``x`` is no tensor, or an axis no int.
    """
    subject = "ops.transpose"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        one, other = axis_of(subject, value, first, "axis_1"), axis_of(subject, value, second, "axis_2")
    order = list(range(value.rank))
    order[one], order[other] = other, one
    return graph.apply(PERMUTE, [value], {"axes": tuple(order)})[0]


# -- slices with step 1


def _infer_slice(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    sizes = as_shape(parameters["sizes"])
    if not len(sizes) == len(parameters["starts"]) == x.rank:
        raise GraphError(f"starts and sizes must have an entry for each axis of {shape_text(x.shape)}")
    kept = [size for axis, size in enumerate(sizes) if axis not in parameters["dropped"]]
    return [TensorType(x.dtype, kept, x.device)]


def _slice_access(call: OpCall) -> list[AxisAccess]:
    starts, dropped = call.parameters["starts"], call.parameters["dropped"]
    assert isinstance(starts, tuple)
    assert isinstance(dropped, tuple)
    found, kept = [], 0
    for axis, start in enumerate(starts):
        assert isinstance(start, int | Dim)
        found.append(AxisAccess(None if axis in dropped else kept, start))
        kept += axis not in dropped
    return found


SLICE = register_op(
    OpDef(
        "slice",
        "view",
        ("x",),
        _infer_slice,
        parameters=(ParameterSpec("starts", tuple), ParameterSpec("sizes", tuple), ParameterSpec("dropped", tuple)),
        access=_slice_access,
    )
)


def _infer_strided(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    axis = parameters["axis"]
    return [TensorType(x.dtype, (*x.shape[:axis], parameters["size"], *x.shape[axis + 1 :]), x.device)]


STRIDED = register_op(
    OpDef(
        "strided_slice",
        "opaque",
        ("x",),
        _infer_strided,
        parameters=(
            ParameterSpec("axis", int),
            ParameterSpec("start", Dim),
            ParameterSpec("step", int),
            ParameterSpec("size", Dim),
        ),
        recipe=copy_steps,
    )
)


@dataclass
class _Range:
    """What is taken of one axis."""

    start: Dim
    size: Dim
    step: int = 1
    dropped: bool = False


def slice_tensor(x: TensorValueLike, indices: Iterable[Index]) -> TensorValue:
    """The part of ``x`` that ``indices`` names, as ``x[...]`` does.

    Args:
        x: any element type and shape.
        indices: for each axis an int or an integer scalar of the graph (the axis goes), a slice, or a pair
            (slice, size) where the size cannot be computed while the graph is built; ``...`` for the axes not named,
            None for a new axis of size 1.
            Negative numbers count from the end. Steps may be negative.

    Raises:
        GraphError: too many indices, an index beyond a known size, a size that depends on a symbol in a way that
            has no formula, a step of 0.
        GraphTypeError: ``x`` is no tensor, or an index of another kind.
    """
    subject = "ops.slice_tensor"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        entries = _expanded(subject, value, tuple(indices))
        ranges = [
            _range(subject, value, axis, entry)
            for axis, entry in enumerate(entry for entry in entries if entry is not None)
        ]
    for axis, entry in enumerate(entry for entry in entries if entry is not None):
        if isinstance(entry, TensorValue):
            value = gather(value, reshape(entry, [1]), axis)
    result = _sliced(graph, value, ranges)
    return _with_new_axes(result, [entry for entry in entries if entry is None or not _drops(entry)])


def getitem(x: TensorValueLike, index: Index) -> TensorValue:
    """``x[index]``; see `slice_tensor`."""
    return slice_tensor(x, index if isinstance(index, tuple) else (index,))


def _drops(entry: object) -> bool:
    return not isinstance(entry, slice | tuple)


def _with_new_axes(value: TensorValue, entries: Sequence[object]) -> TensorValue:
    for axis, entry in enumerate(entries):
        if entry is None:
            value = unsqueeze(value, axis)
    return value


def _expanded(subject: str, value: TensorValue, indices: tuple[Index, ...]) -> list[Index]:
    """The indices with an entry for each axis: ``...`` written out."""
    ellipses = [position for position, entry in enumerate(indices) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise GraphError(f"{subject}: '...' stands {len(ellipses)} times among the indices; use it once")
    named = sum(entry is not None and entry is not Ellipsis for entry in indices)
    if named > value.rank:
        raise GraphError(
            f"{subject}: {named} indices for x, {shape_text(value.shape)}, which has {value.rank} axes; leave some out"
        )
    rest = [slice(None)] * (value.rank - named)
    at = ellipses[0] if ellipses else len(indices)
    return [*indices[:at], *rest, *indices[at + 1 :]]


def _range(subject: str, value: TensorValue, axis: int, entry: Index) -> _Range:
    size = value.shape[axis]
    if isinstance(entry, slice):
        return _slice_range(subject, value, axis, entry, None)
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], slice):
        return _slice_range(subject, value, axis, entry[0], Dim(entry[1]))
    if isinstance(entry, TensorValue):
        if entry.rank:
            raise GraphError(
                f"{subject}: the index of axis {axis} must be a scalar, not of shape {shape_text(entry.shape)}; "
                "use ops.gather"
            )
        return _Range(Dim(0), Dim(1), dropped=True)  # what is gathered has one element there
    if isinstance(entry, bool) or not (isinstance(entry, Dim) or hasattr(entry, "__index__")):
        raise GraphTypeError(
            f"{subject}: the index of axis {axis} must be an int, a slice, (slice, size), None or ..., not {entry!r}"
        )
    at = Dim(entry)
    if isinstance(at, StaticDim):
        if isinstance(size, StaticDim) and not -int(size) <= int(at) < int(size):
            raise GraphError(
                f"{subject}: index {at} is beyond axis {axis} of x, {shape_text(value.shape)}, which has size {size}"
            )
        at = at + size if int(at) < 0 else at
    return _Range(at, Dim(1), dropped=True)


def _slice_range(subject: str, value: TensorValue, axis: int, entry: slice, stated: Dim | None) -> _Range:
    size = value.shape[axis]
    step = 1 if entry.step is None else entry.step
    if isinstance(step, bool) or not isinstance(step, int) or step == 0:
        raise GraphError(f"{subject}: the step of a slice must be an int other than 0, not {step!r}")
    first, last = (Dim(0), size) if step > 0 else (size - 1, Dim(-1))
    start = first if entry.start is None else _bound(subject, entry.start, size, axis, step, is_start=True)
    stop = last if entry.stop is None else _bound(subject, entry.stop, size, axis, step, is_start=False)
    if start is None or stop is None:
        if stated is None:
            text = f"{_text(entry.start)}:{_text(entry.stop)}"
            raise GraphError(
                f"{subject}: how many elements {text} takes of axis {axis} of x, {shape_text(value.shape)}, depends on "
                f"'{size}'; state it as (slice({entry.start!r}, {entry.stop!r}), size), or rebind x"
            )
        start = _from_end(Dim(0) if entry.start is None else Dim(entry.start), size)
        return _Range(start, stated, step)
    count = ceil_div(stop - start, step) if step > 0 else ceil_div(start - stop, -step)
    if isinstance(count, StaticDim):
        count = Dim(max(int(count), 0))
    if stated is not None and stated != count and not (stated.symbols or count.symbols):
        raise GraphError(f"{subject}: the slice of axis {axis} takes {count} elements, not {stated}")
    return _Range(start, count if stated is None else stated, step)


def _text(bound: object) -> str:
    return "" if bound is None else str(bound)


def _from_end(bound: Dim, size: Dim) -> Dim:
    return bound + size if isinstance(bound, StaticDim) and int(bound) < 0 else bound


def _bound(subject: str, bound: Any, size: Dim, axis: int, step: int, *, is_start: bool) -> Dim | None:
    """A start or stop as a position in the axis, as Python clips it; None if a symbol decides how."""
    if isinstance(bound, bool) or not (isinstance(bound, Dim) or hasattr(bound, "__index__")):
        raise GraphTypeError(f"{subject}: the bounds of a slice of axis {axis} must be ints or sizes, not {bound!r}")
    at = Dim(bound)
    if not isinstance(at, StaticDim):
        return at
    if isinstance(size, StaticDim):
        low, high = (0, int(size)) if step > 0 else (-1, int(size) - 1)
        position = int(at) + int(size) if int(at) < 0 else int(at)
        return Dim(min(max(position, low), high))
    # a start counted from the front, or a stop from the end, leaves a size such as n - 1, which must not be negative
    if (int(at) >= 0) == (is_start == (step > 0)):
        return at if int(at) >= 0 else at + size
    return None


def _surely_inside(taken: _Range, size: Dim) -> bool:
    """Whether no size can make the range leave the axis; if one can, a kernel checks before it copies."""
    return _never_negative(taken.start) and _never_negative(size - taken.start - taken.size)


def _never_negative(dim: Dim) -> bool:
    return all(
        coefficient >= 0 and all(isinstance(atom, Symbol) for atom, _ in monomial)
        for monomial, coefficient in dim.polynomial.terms
    )


def _sliced(graph: Graph, value: TensorValue, ranges: Sequence[_Range]) -> TensorValue:
    for axis, taken in enumerate(ranges):
        if taken.step != 1 or not _surely_inside(taken, value.shape[axis]):
            parameters = {"axis": axis, "start": taken.start, "step": taken.step, "size": taken.size}
            value = graph.apply(STRIDED, [value], parameters)[0]
            taken.start = Dim(0)
    if all(
        taken.start == 0 and taken.size == size and not taken.dropped
        for taken, size in zip(ranges, value.shape, strict=True)
    ):
        return value
    parameters = {
        "starts": tuple(taken.start for taken in ranges),
        "sizes": tuple(taken.size for taken in ranges),
        "dropped": tuple(axis for axis, taken in enumerate(ranges) if taken.dropped),
    }
    return graph.apply(SLICE, [value], parameters)[0]


# -- split, chunk


def split(x: TensorValueLike, split_sizes: Iterable[DimLike], axis: int = 0) -> list[TensorValue]:
    """Parts of ``x`` along an axis, of the sizes given, in order.

    Raises:
        GraphError: the sizes do not provably make the size of the axis, or there is no such axis.
        GraphTypeError: ``x`` is no tensor, or a size no size.
    """
    subject = "ops.split"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        number = axis_of(subject, value, axis)
        sizes = as_shape(split_sizes, f"{subject}: split_sizes")
        total = sum(sizes, Dim(0))
        if total != value.shape[number]:
            raise GraphError(
                f"{subject}: split_sizes {shape_text(sizes)} make '{total}', but axis {axis} of x, "
                f"{shape_text(value.shape)}, has size '{value.shape[number]}'; make them equal"
            )
    parts, start = [], Dim(0)
    for size in sizes:
        ranges = [_Range(Dim(0), extent) for extent in value.shape]
        ranges[number] = _Range(start, size)
        parts.append(_sliced(graph, value, ranges))
        start = start + size
    return parts


def chunk(x: TensorValueLike, chunks: int, axis: int = 0) -> list[TensorValue]:
    """``x`` cut into equal parts along an axis.

    Raises:
        GraphError: the size of the axis is not provably a multiple of ``chunks``, or there is no such axis.
        GraphTypeError: ``x`` is no tensor, or ``chunks`` no int.
    """
    subject = "ops.chunk"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        number = axis_of(subject, value, axis)
        if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
            raise GraphError(f"{subject}: chunks must be a positive int, not {chunks!r}")
        size = value.shape[number]
        part = size // chunks
        if part * chunks != size:
            raise GraphError(
                f"{subject}: axis {axis} of x, {shape_text(value.shape)}, has size '{size}', which is not provably a "
                f"multiple of {chunks}; use ops.split with sizes that differ"
            )
    return split(value, [part] * chunks, axis)


# -- contracts


_SLICES: tuple[tuple[Any, ...], ...] = (
    (1, slice(None, None, -1)),
    (..., slice(1, -1, 2)),
    (slice(-3, None), None, 2),
    (slice(None), slice(5, 0, -3), slice(0, 0)),
)

promise_examples(
    permute,
    ALL,
    lambda x, axes: np.transpose(x, axes),
    of_shape((3, 70, 2), *({"axes": axes} for axes in ((2, 0, 1), (1, 0, 2), (0, 1, 2)))),
)
promise_examples(
    transpose,
    ALL,
    lambda x, first, second: np.swapaxes(x, first, second),
    of_shape((3, 70, 2), {"first": 0, "second": 1}, {"first": -1, "second": 0}),
)
promise_examples(
    slice_tensor,
    ALL,
    lambda x, indices: x[indices],
    of_shape((5, 7, 66), *({"indices": indices} for indices in _SLICES)),
)
promise_examples(
    split,
    ALL,
    lambda x, split_sizes, axis: np.split(x, np.cumsum(split_sizes)[:-1], axis),
    of_shape((5, 70), {"split_sizes": (1, 0, 4), "axis": 0}, {"split_sizes": (64, 6), "axis": 1}),
)
promise_examples(
    chunk,
    ALL,
    lambda x, chunks, axis: np.split(x, chunks, axis),
    of_shape((4, 66), {"chunks": 2, "axis": 0}, {"chunks": 3, "axis": -1}),
)
