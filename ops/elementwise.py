"""What the ops share that work element by element: their shape rule, their graph functions, f16 and bf16 through f32.

An op of this kind is declared in one place::

    SQRT = declare_map("sqrt", ("x",), FLOATS, through_f32(lambda k, call, x: k.unary("sqrt", x)))

    def sqrt(x, *, fastmath=None):
        return apply_map(SQRT, [x], fastmath=fastmath)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import f32

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import ContractionRole, OpCall, OpDef
from halfulp.compiler.registry import ParameterSpec, register_op
from halfulp.compiler.tile_builder import TileBuilder, Value
from halfulp.compiler.types import shape_text

from .broadcasting import broadcast_operands
from .promotion import as_tensor, as_tensors

Recipe: TypeAlias = "Callable[..., Value]"
Flags: TypeAlias = "str | Iterable[str] | None"
"""Fastmath flags of one op: a name, ``"none"``, ``"fast"``, several names, or None for those of the region."""


def declare_map(
    name: str,
    names: tuple[str, ...],
    dtypes: tuple[DType, ...],
    recipe: Recipe,
    *,
    result: DType | None = None,
    parameters: tuple[ParameterSpec, ...] = (),
    contraction: ContractionRole | None = None,
) -> OpDef:
    """Register an op whose operands ``names`` have one element type, which is among ``dtypes``.

    The result has that type too, unless ``result`` states another.
    """

    def infer(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
        first = operands[0]
        check_dtypes(operands, dtypes)
        check_shapes(operands)
        return [TensorType(result or first.dtype, first.shape, first.device)]

    return register_op(
        OpDef(
            name,
            "map",
            names,
            infer,
            parameters=parameters,
            fastmath=any(dtype.is_float for dtype in dtypes),
            recipe=recipe,
            contraction=contraction,
        )
    )


def check_dtypes(types: Sequence[TensorType], allowed: tuple[DType, ...]) -> None:
    """All operands have one element type, which is allowed.

    Raises:
        GraphTypeError: they have not.
    """
    for given in types:
        if given.dtype is not types[0].dtype:
            raise GraphTypeError(f"operands must have one element type, not {types[0].dtype} and {given.dtype}")
        if given.dtype not in allowed:
            raise GraphTypeError(wrong_dtype(given.dtype, allowed))


def wrong_dtype(given: DType, allowed: tuple[DType, ...]) -> str:
    """The rule that an element type breaks, and the way out."""
    if given.is_float and any(d.is_float for d in allowed):
        wanted = " or ".join(str(d) for d in allowed if d.is_float)
    else:
        kinds = ("an integer" if d.is_integral else "a float" if d.is_float else "bool" for d in allowed)
        wanted = " or ".join(dict.fromkeys(kinds))
    remedy = DType.float32 if DType.float32 in allowed else allowed[0]
    return f"the element type must be {wanted}, not {given}; write .cast({remedy!r}) if that is meant"


def check_shapes(types: Sequence[TensorType]) -> None:
    """All operands have one shape and one device.

    Raises:
        GraphError: they have not.
    """
    for given in types:
        if given.shape != types[0].shape:
            raise GraphError(
                f"operands must have one shape, not {shape_text(types[0].shape)} and {shape_text(given.shape)}; "
                "broadcast them first"
            )
        if given.device != types[0].device:
            raise GraphError(
                f"operands must be on one device, not {types[0].device} and {given.device}; move one with .to()"
            )


def apply_map(
    op: OpDef,
    values: Sequence[object],
    parameters: Mapping[str, Any] | None = None,
    fastmath: Flags = None,
    *,
    subject: str | None = None,
) -> TensorValue:
    """Build the op on operands promoted to one element type and broadcast to one shape.

    ``subject`` starts the messages where the public name is not the op's.

    Raises:
        NotFoundError: no graph is being built.
        GraphError, GraphTypeError: operands that do not promote, do not broadcast, or that the op does not take.
    """
    subject = subject or f"ops.{op.name}"
    graph = Graph.current(subject)
    with Located():
        if len(values) == 1:
            operands = [as_tensor(graph, subject, op.operands[0], values[0])]
        else:
            operands = as_tensors(graph, subject, op.operands, values)
            operands = broadcast_operands(subject, op.operands, operands)
    return graph.apply(op, operands, parameters, fastmath)[0]


def through_f32(recipe: Recipe) -> Recipe:
    """A recipe for f32 and f64, made one for f16 and bf16 too: computed in f32, rounded once at the end."""

    def widened(k: TileBuilder, call: OpCall, *blocks: Value) -> Value:
        narrow = blocks[0].element_type
        if not call.operands[0].dtype.is_float or call.operands[0].dtype.bits >= 32:
            return recipe(k, call, *blocks)
        result = recipe(k, call, *(k.cast(block, f32) for block in blocks))
        return k.cast(result, narrow) if result.element_type == f32 else result

    return widened


def is_unsigned(call: OpCall) -> bool:
    """Whether the op works on unsigned integers (bool included)."""
    return call.operands[0].dtype.kind in ("unsigned", "bool")
