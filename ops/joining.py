"""Tensors made of tensors: concat, stack, pad, tile, repeat_interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i8

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import DimLike, StaticDim
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import as_dims, as_shape, shape_text

from .axes import axis_of, checked_axis
from .broadcasting import broadcast_to
from .casting import cast
from .contract import ALL, Example, promise_examples
from .copying import BLOCK, copy_rows
from .indexing import gather
from .ordering import cumsum
from .promotion import TensorValueLike, as_tensor, literal
from .reduction import sum as sum_of
from .reshaping import reshape, unsqueeze
from .samples import anything, of_shape
from .sizes import iota

# -- concat, stack


def _infer_concat(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    axis, first = parameters["axis"], operands[0]
    for given in operands:
        if given.dtype is not first.dtype or given.rank != first.rank:
            raise GraphError("parts must have one element type and one number of axes")
    total = sum((given.shape[axis] for given in operands), Dim(0))
    return [TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]), first.device)]


def _concat_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    axis, (target,) = call.parameters["axis"], results
    assert isinstance(axis, int)
    start: Value | int = 0
    for source in operands:
        offsets: list[Value | int] = [0] * len(source.shape)
        offsets[axis] = start
        copy_rows(entry, "concat", source, target, offsets)
        start = entry.dim(source, axis) + start


CONCAT = register_op(
    OpDef(
        "concat",
        "opaque",
        ("first", "*parts"),
        _infer_concat,
        parameters=(ParameterSpec("axis", int),),
        recipe=_concat_recipe,
    )
)


def concat(original_vals: Iterable[TensorValueLike], axis: int = 0) -> TensorValue:
    """Tensors joined along an axis.

    Args:
        original_vals: one tensor or more, of one element type, whose other sizes are provably equal.
        axis: the axis whose sizes add up.

    Raises:
        GraphError: no tensors, or shapes that do not fit.
        GraphTypeError: something that is no tensor, or another element type.
    """
    subject = "ops.concat"
    graph = Graph.current(subject)
    with Located():
        parts = _parts(graph, subject, original_vals)
        number = axis_of(subject, parts[0], axis)
        for index, part in enumerate(parts):
            _check_part(subject, parts[0], index, part, number)
    return parts[0] if len(parts) == 1 else graph.apply(CONCAT, parts, {"axis": number})[0]


def stack(values: Iterable[TensorValueLike], axis: int = 0) -> TensorValue:
    """Tensors of one shape joined along a new axis, which is axis ``axis`` of the result.

    Raises:
        GraphError: no tensors, shapes that are not provably equal, or no such axis.
        GraphTypeError: something that is no tensor, or another element type.
    """
    subject = "ops.stack"
    graph = Graph.current(subject)
    with Located():
        parts = _parts(graph, subject, values)
        why = f"the result of parts of shape {shape_text(parts[0].shape)} has {parts[0].rank + 1} axes"
        number = checked_axis(subject, axis, parts[0].rank + 1, "axis", why)
        for index, part in enumerate(parts):
            _check_part(subject, parts[0], index, part, None)
    return concat([unsqueeze(part, number) for part in parts], number)


def _parts(graph: Graph, subject: str, values: Iterable[object]) -> list[TensorValue]:
    if isinstance(values, TensorValue) or not isinstance(values, Iterable):
        raise GraphTypeError(f"{subject}: takes a list of tensors, not {values!r}; write [x, y]")
    parts = [as_tensor(graph, subject, f"part {index}", value) for index, value in enumerate(values)]
    if not parts:
        raise GraphError(f"{subject}: takes one tensor at least, and the list is empty")
    return parts


def _check_part(subject: str, first: TensorValue, index: int, part: TensorValue, axis: int | None) -> None:
    """Parts agree with the first one, but for the size of ``axis``."""
    if part.dtype is not first.dtype:
        raise GraphTypeError(f"{subject}: part {index} is {part.dtype} and part 0 is {first.dtype}; cast one of them")
    shapes = f"part 0 has shape {shape_text(first.shape)} and part {index} {shape_text(part.shape)}"
    if part.rank != first.rank:
        raise GraphError(f"{subject}: {shapes}; they must have the same number of axes, so unsqueeze one of them")
    for number, (one, other) in enumerate(zip(first.shape, part.shape, strict=True)):
        if number != axis and one != other:
            remedy = "rebind one of them if they are equal" if one.symbols or other.symbols else "reshape one of them"
            raise GraphError(f"{subject}: {shapes}; at axis {number} '{one}' and '{other}' must be equal; {remedy}")


# -- pad


def _infer_pad(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    x, _ = operands
    return [TensorType(x.dtype, parameters["shape"], x.device)]


def _pad_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """A row of the result is a row of the operand read from before its start; reads outside give the value."""
    (source, value), (target,) = operands, results
    rank, before = len(target.shape), call.parameters["before"]
    assert isinstance(before, tuple)
    carriers = [entry.buffer([str(dim), "0"], i8) for dim in before]

    def body(k: KernelBuilder) -> None:
        read, fill, write, *starts = k.arguments
        at = [*k.program_ids[:-1], k.program_ids[-1] * BLOCK]
        source_at = [index - k.dim(start, 0) for index, start in zip(at, starts, strict=True)]
        shape, squeezed = [1] * (rank - 1) + [BLOCK], range(rank - 1)
        window = k.window(read, source_at, shape, indexing="element", squeezed=squeezed)
        block = k.load(window, other=k.read(fill, 0))
        k.store(block, k.window(write, at, shape, indexing="element", squeezed=squeezed))

    sizes = [entry.dim(target, axis) for axis in range(rank)]
    entry.launch("pad", [source, value, target, *carriers], [*sizes[:-1], (sizes[-1] + (BLOCK - 1)) // BLOCK], body)


PAD = register_op(
    OpDef(
        "pad",
        "opaque",
        ("x", "value"),
        _infer_pad,
        parameters=(ParameterSpec("before", tuple), ParameterSpec("shape", tuple)),
        recipe=_pad_recipe,
    )
)


def pad(x: TensorValueLike, paddings: Iterable[DimLike], mode: str = "constant", value: Any = 0) -> TensorValue:
    """``x`` with elements of one value before and behind it.

    Args:
        x: any element type and shape.
        paddings: for each axis two sizes, before and behind: ``[before_0, behind_0, before_1, ...]``.
        mode: ``"constant"``.
        value: the new elements.

    Raises:
        GraphError: not two sizes for each axis, a negative one, or another mode.
        GraphTypeError: ``x`` is no tensor, or ``value`` does not go with its element type.
    """
    subject = "ops.pad"
    graph = Graph.current(subject)
    with Located():
        tensor = as_tensor(graph, subject, "x", x)
        if mode != "constant":
            raise GraphError(f"{subject}: mode must be 'constant', not {mode!r}")
        given = as_dims(paddings, f"{subject}: paddings")
        if len(given) != 2 * tensor.rank:
            raise GraphError(
                f"{subject}: paddings must have two sizes for each of the {tensor.rank} axes of x, "
                f"{shape_text(tensor.shape)}, not {len(given)}"
            )
        for size in given:
            if isinstance(size, StaticDim) and int(size) < 0:
                raise GraphError(f"{subject}: a padding must not be negative, but one is {size}; use a slice to cut")
        fill = literal(graph, subject, "value", value, tensor.dtype, ("x", tensor.device))
    before, behind = given[::2], given[1::2]
    sizes = [b + size + e for b, size, e in zip(before, tensor.shape, behind, strict=True)]
    if not tensor.rank:
        return tensor
    return graph.apply(PAD, [tensor, fill], {"before": tuple(before), "shape": as_shape(sizes, subject)})[0]


# -- repetition: a new axis, broadcast, then joined with its neighbour


def tile(x: TensorValueLike, repeats: Iterable[DimLike]) -> TensorValue:
    """``x`` repeated as a whole along each axis.

    Args:
        x: any element type and shape.
        repeats: a number for each axis.

    Raises:
        GraphError: not a number for each axis, or a negative one.
        GraphTypeError: ``x`` is no tensor.
    """
    subject = "ops.tile"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        times = as_shape(repeats, f"{subject}: repeats")
        if len(times) != value.rank:
            raise GraphError(
                f"{subject}: repeats must have a number for each of the {value.rank} axes of x, "
                f"{shape_text(value.shape)}, not {len(times)}"
            )
    result = value
    for axis, count in enumerate(times):
        if count != 1:
            result = _repeat(result, axis, count, behind=False)
    return result


def repeat_interleave(
    x: TensorValueLike, repeats: DimLike | TensorValue, axis: int | None = None, out_dim: DimLike | None = None
) -> TensorValue:
    """Each element along ``axis`` repeated, one after the other.

    Args:
        x: any element type and shape.
        repeats: how often; or an integer tensor with a number for each element of the axis.
        axis: the axis; None flattens ``x`` first.
        out_dim: the size of the result along the axis. Needed where ``repeats`` is a tensor: if the numbers make
            less, the execution fails; if they make more, the rest is left out.

    Raises:
        GraphError: ``repeats`` is negative, there is no such axis, ``out_dim`` is missing or another size.
        GraphTypeError: ``x`` is no tensor, or ``repeats`` is of another kind.
    """
    subject = "ops.repeat_interleave"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        number = 0 if axis is None else axis_of(subject, value, axis)
        flat = reshape(value, [value.type.num_elements]) if axis is None else value
        size = flat.shape[number]
        if isinstance(repeats, TensorValue):
            _check_repeats(subject, repeats, size, out_dim)
        else:
            (count,) = as_dims([repeats], f"{subject}: repeats")
            if isinstance(count, StaticDim) and int(count) < 0:
                raise GraphError(f"{subject}: repeats must not be negative, but is {count}")
            if out_dim is not None and size * count != Dim(out_dim):
                raise GraphError(f"{subject}: out_dim must be '{size * count}', what the repeats make, not {out_dim!r}")
    if not isinstance(repeats, TensorValue):
        return _repeat(flat, number, count, behind=True)
    assert out_dim is not None
    # Element p of the result is the first one whose repeats, with all before it, reach beyond p.
    ends = cumsum(cast(repeats, DType.int64))
    places = unsqueeze(iota(graph, Dim(out_dim), value.device), 1)
    return gather(flat, reshape(sum_of(cast(ends <= places, DType.int64), axis=1), [out_dim]), number)


def _check_repeats(subject: str, repeats: TensorValue, size: Dim, out_dim: DimLike | None) -> None:
    if not repeats.dtype.is_integral:
        raise GraphTypeError(f"{subject}: repeats must hold integers, not {repeats.dtype}; cast them")
    if repeats.shape != (size,):
        raise GraphError(f"{subject}: repeats must have shape [{size}], not {shape_text(repeats.shape)}; rebind it")
    if out_dim is None:
        raise GraphError(f"{subject}: a tensor decides on the size of the result; state it with out_dim")


def _repeat(value: TensorValue, axis: int, count: Dim, *, behind: bool) -> TensorValue:
    shape = list(value.shape)
    pair = [shape[axis], count] if behind else [count, shape[axis]]
    wide = unsqueeze(value, axis + behind)
    repeated = broadcast_to(wide, [*shape[:axis], *pair, *shape[axis + 1 :]])
    return reshape(repeated, [*shape[:axis], shape[axis] * count, *shape[axis + 1 :]])


# -- contracts


def _examples_of_parts(*parts: tuple[int, Sequence[Sequence[int]]]) -> Callable[[DType], list[Example]]:
    """Along each axis, parts of these shapes."""

    def examples(dtype: DType) -> list[Example]:
        return [
            Example(tuple(anything(dtype, shape, seed) for seed, shape in enumerate(shapes)), {"axis": axis})
            for axis, shapes in parts
        ]

    return examples


promise_examples(
    concat,
    ALL,
    lambda *parts, axis: np.concatenate(parts, axis),
    _examples_of_parts((0, ((2, 5), (0, 5), (3, 5))), (-1, ((2, 5), (2, 66))), (1, ((2, 1, 3),))),
    takes_list=True,
)
promise_examples(
    stack,
    ALL,
    lambda *parts, axis: np.stack(parts, axis),
    _examples_of_parts((0, ((2, 5), (2, 5))), (-1, ((2, 5), (2, 5), (2, 5)))),
    takes_list=True,
)
promise_examples(
    pad,
    ALL,
    lambda x, paddings, value: np.pad(x, np.reshape(paddings, (-1, 2)), constant_values=value),
    of_shape((3, 66), {"paddings": (1, 0, 2, 5), "value": 1}, {"paddings": (0, 0, 0, 0), "value": 0}),
)
promise_examples(
    tile, ALL, lambda x, repeats: np.tile(x, repeats), of_shape((3, 5), {"repeats": (2, 3)}, {"repeats": (0, 1)})
)
promise_examples(
    repeat_interleave,
    ALL,
    lambda x, repeats, axis: np.repeat(x, repeats, axis),
    of_shape((3, 5), {"repeats": 3, "axis": 0}, {"repeats": 2, "axis": -1}, {"repeats": 2, "axis": None}),
)
