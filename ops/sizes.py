"""Sizes as numbers of the graph: `shape_to_tensor`, `range`, and the size of an axis for ops that compute with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import i8, i64

from halfulp.compiler import DeviceRef, Dim, DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.dims import DimLike, StaticDim, ceil_div
from halfulp.compiler.errors import quoted_list
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value
from halfulp.compiler.types import as_shape

from .arithmetic import add, mul
from .casting import cast
from .contract import CORRECTLY_ROUNDED, NUMBERS, Array, Example, promise_examples
from .elementwise import wrong_dtype
from .promotion import is_tensor

Number: TypeAlias = "int | float | Dim | TensorValue"

BLOCK = 4096


def _infer_shape(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    return [TensorType(DType.int64, [len(parameters["dims"])], DeviceRef.parse(parameters["device"]))]


def _shape_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    dims = call.parameters["dims"]
    assert isinstance(dims, tuple)
    # A buffer of no elements, but of that size along its first axis: the runtime computes the extent.
    carriers = [entry.buffer([str(dim), "0"], i8) for dim in dims]

    def body(k: KernelBuilder) -> None:
        *sources, target = k.arguments
        for index, source in enumerate(sources):
            k.write(k.cast(k.dim(source, 0), i64), target, index)

    entry.launch("shape_to_tensor", [*carriers, *results], [entry.index(1)], body)


SHAPE_TO_TENSOR = register_op(
    OpDef(
        "shape_to_tensor",
        "opaque",
        (),
        _infer_shape,
        parameters=(ParameterSpec("dims", tuple), ParameterSpec("device", str)),
        recipe=_shape_recipe,
    )
)


def shape_to_tensor(shape: Iterable[DimLike], device: DeviceRef | None = None) -> TensorValue:
    """The sizes in ``shape`` as an int64 tensor of one axis.

    Args:
        shape: ints, symbols and expressions of the graph's symbols, such as ``x.shape``.
        device: where the result lives; the host by default.

    Raises:
        NotFoundError: no graph is being built.
        GraphError, GraphTypeError: it is no shape.
    """
    graph = Graph.current("ops.shape_to_tensor")
    with Located():
        dims = as_shape(shape, "ops.shape_to_tensor: shape")
        known = TensorType(DType.int64, dims).symbols
        if unknown := [name for name in known if name not in graph.symbols]:
            raise GraphError(
                f"ops.shape_to_tensor: {unknown[0]!r} is no symbol of an input and no op computes it; known here: "
                f"{quoted_list(sorted(graph.symbols))}"
            )
    place = DeviceRef.CPU() if device is None else device
    return graph.apply(SHAPE_TO_TENSOR, [], {"dims": dims, "device": str(place)})[0]


def dim_value(graph: Graph, dim: Dim, dtype: DType, device: DeviceRef) -> TensorValue:
    """A size as a scalar of element type ``dtype``: a constant if it is known."""
    if isinstance(dim, StaticDim):
        array = np.asarray(int(dim)).astype(dtype.to_numpy())
        return graph.constant(array.tobytes(), TensorType(dtype, [], device))
    from .reshaping import reshape  # which needs this module

    sizes = graph.apply(SHAPE_TO_TENSOR, [], {"dims": (dim,), "device": str(device)})[0]
    return cast(reshape(sizes, []), dtype)


def size_of(value: TensorValue, axis: int, dtype: DType, less: int = 0) -> TensorValue:
    """The size of an axis, less a number, as a scalar of element type ``dtype``."""
    return dim_value(value.graph, value.shape[axis] - less, dtype, value.device)


# -- range


def _infer_iota(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    return [TensorType(DType.int64, [parameters["size"]], DeviceRef.parse(parameters["device"]))]


def _iota_recipe(entry: EntryBuilder, call: OpCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    def body(k: KernelBuilder) -> None:
        (target,), (program,) = k.arguments, k.program_ids
        numbers = k.iota([BLOCK], i64) + k.cast(program * BLOCK, i64)
        k.store(numbers, k.window(target, [program], [BLOCK]))

    entry.launch("iota", results, [(entry.dim(results[0], 0) + (BLOCK - 1)) // BLOCK], body)


IOTA = register_op(
    OpDef(
        "iota",
        "opaque",
        (),
        _infer_iota,
        parameters=(ParameterSpec("size", Dim), ParameterSpec("device", str)),
        recipe=_iota_recipe,
    )
)


def iota(graph: Graph, size: Dim, device: DeviceRef) -> TensorValue:
    """0, 1, 2, ... as int64, ``size`` of them."""
    return graph.apply(IOTA, [], {"size": size, "device": str(device)})[0]


def range(
    start: Number,
    stop: Number,
    step: Number = 1,
    out_dim: DimLike | None = None,
    dtype: DType = DType.int64,
    device: DeviceRef | None = None,
) -> TensorValue:
    """``start, start + step, ...`` up to, and without, ``stop``.

    Args:
        start: a number, a size, or a scalar tensor.
        stop: likewise; only the size of the result depends on it.
        step: likewise, not 0.
        out_dim: the size of the result, needed where a tensor or a float decides on it. It is taken as it is.
        dtype: the element type. Floats are computed in f64 and rounded once.
        device: where the result lives; the host by default.

    Raises:
        NotFoundError: no graph is being built.
        GraphError: the step is 0, or out_dim is missing.
        GraphTypeError: an argument of the wrong type.
    """
    subject = "ops.range"
    graph = Graph.current(subject)
    with Located():
        if not isinstance(dtype, DType) or dtype not in NUMBERS:
            rule = wrong_dtype(dtype, NUMBERS) if isinstance(dtype, DType) else f"dtype must be a DType, not {dtype!r}"
            raise GraphTypeError(f"{subject}: {rule}")
        size = _range_size(subject, start, stop, step) if out_dim is None else Dim(out_dim)
    place = DeviceRef.CPU() if device is None else device
    wide = DType.float64 if dtype.is_float else DType.int64
    numbers = cast(iota(graph, size, place), wide)
    scaled = numbers if isinstance(step, int) and step == 1 else mul(numbers, _number(graph, step, wide, place))
    moved = scaled if isinstance(start, int) and start == 0 else add(scaled, _number(graph, start, wide, place))
    return cast(moved, dtype)


def _number(graph: Graph, value: Number, dtype: DType, device: DeviceRef) -> Any:
    if isinstance(value, Dim):
        return dim_value(graph, value, dtype, device)
    return cast(value, dtype) if isinstance(value, TensorValue) else value


def _range_size(subject: str, start: Number, stop: Number, step: Number) -> Dim:
    if any(is_tensor(value) for value in (start, stop, step)):
        raise GraphError(f"{subject}: a tensor decides on the size of the result; state it with out_dim")
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if not isinstance(value, int | float | Dim):
            raise GraphTypeError(f"{subject}: {name} must be a number, a size or a scalar tensor, not {value!r}")
    if step == 0:
        raise GraphError(f"{subject}: step must not be 0")
    bounds: list[Any] = [start, stop, step]
    if any(isinstance(value, float) for value in bounds):
        return Dim(max(math.ceil((bounds[1] - bounds[0]) / bounds[2]), 0))
    size = ceil_div(Dim(bounds[1]) - bounds[0], bounds[2])
    return Dim(max(int(size), 0)) if isinstance(size, StaticDim) else size


# -- contracts


def _reference_range(start: int, stop: int, step: int, dtype: DType) -> Array:
    numbers = np.arange(start, stop, step)
    return numbers.astype(object) if dtype.is_integral else numbers.astype(np.longdouble)


def _range_examples(dtype: DType) -> list[Example]:
    bounds = ((0, 70, 1), (5, 5, 1), (3, 100, 7), (9, 0, -2))
    return [Example((), {"start": a, "stop": b, "step": c, "dtype": dtype}) for a, b, c in bounds]


promise_examples(range, NUMBERS, _reference_range, _range_examples, ulp=CORRECTLY_ROUNDED)
promise_examples(
    shape_to_tensor,
    (DType.int64,),
    lambda shape: np.array(shape, object),
    lambda dtype: [Example((), {"shape": shape}) for shape in ((3, 0, 70), (1 << 40,))],
)
