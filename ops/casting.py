"""`cast`: another element type, by rules that always give a result.

Float to float and integer to float round to nearest even. Float to integer truncates and saturates, NaN gives 0.
Integers extend or wrap. To bool: whether the element is not zero, so NaN is True.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler import DType, Graph, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import TileBuilder, Value

from .contract import ALL, CORRECTLY_ROUNDED, Array, Contract, promise
from .promotion import TensorValueLike, as_tensor


def cast(x: TensorValueLike, dtype: DType) -> TensorValue:
    """The elements of ``x`` as another type.

    Args:
        x: any element type and shape.
        dtype: the element type wanted.

    Returns:
        The shape of ``x``; correctly rounded where rounding is needed.

    Raises:
        GraphTypeError: ``x`` is no tensor, or ``dtype`` no DType.
    """
    subject = "ops.cast"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if not isinstance(dtype, DType):
            raise GraphTypeError(f"{subject}: dtype must be a DType such as DType.float32, not {dtype!r}")
    return value if value.dtype is dtype else graph.apply(CAST, [value], {"dtype": dtype})[0]


def _infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    return [TensorType(parameters["dtype"], x.shape, x.device)]


def _recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
    source, target = call.operands[0].dtype, call.results[0].dtype
    return k.cast(
        x,
        target.to_element_type(),
        unsigned_source=source.kind in ("unsigned", "bool"),
        unsigned_result=target.kind in ("unsigned", "bool"),
    )


CAST = register_op(
    OpDef(
        "cast",
        "map",
        ("x",),
        _infer,
        parameters=(ParameterSpec("dtype", DType),),
        fastmath=True,
        recipe=_recipe,
        converts=True,
    )
)


def _reference(x: Array, dtype: DType) -> Array:
    if dtype.is_float:
        return x.astype(np.longdouble) if x.dtype != np.float64 else x
    if dtype is DType.bool:
        return np.asarray(x != 0)
    if x.dtype.kind != "f":
        return x.astype(object)
    low, high = dtype.integer_range
    flat = [_saturated(v, low, high) for v in x.ravel()]
    return np.array(flat, object).reshape(x.shape)


def _saturated(value: Any, low: int, high: int) -> int:
    if not np.isfinite(value):
        return 0 if np.isnan(value) else low if value < 0 else high
    return min(max(int(value), low), high)


promise(
    Contract(
        "cast",
        cast,
        operands=1,
        dtypes=ALL,
        ulp=CORRECTLY_ROUNDED,
        reference=_reference,
        variants=tuple({"dtype": dtype} for dtype in ALL),
    )
)
