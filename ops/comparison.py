"""Comparisons, logic, choice: equal ... greater_equal, is_nan, is_inf, logical ops, where, elementwise max and min.

All are exact. Comparisons follow IEEE 754: with NaN every one is False but ``not_equal``; -0.0 equals 0.0. The result
is bool. ``max`` and ``min`` give NaN if one of two is NaN, and order -0.0 below 0.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler import DType, Graph, GraphTypeError, TensorType, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall, OpDef
from halfulp.compiler.registry import register_op
from halfulp.compiler.tile_builder import TileBuilder, Value

from .broadcasting import broadcast_operands
from .contract import ALL, BOOL, EXACT, FLOATS, Array, Contract, promise
from .elementwise import Flags, Recipe, apply_map, check_dtypes, check_shapes, declare_map, is_unsigned, through_f32
from .promotion import TensorValueLike, as_tensor, as_tensors

_UNSIGNED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


def _compare(kind: str) -> Recipe:
    def recipe(k: TileBuilder, call: OpCall, a: Value, b: Value) -> Value:
        return k.compare(_UNSIGNED.get(kind, kind) if is_unsigned(call) else kind, a, b)

    return through_f32(recipe)


def _extreme(float_kind: str, integer_kind: str) -> Recipe:
    def recipe(k: TileBuilder, call: OpCall, a: Value, b: Value) -> Value:
        if a.is_float:
            return k.binary(float_kind, a, b)
        return k.binary(f"{integer_kind}{'u' if is_unsigned(call) else 's'}", a, b)

    return through_f32(recipe)


def _is_inf_recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
    return k.unary("absf", x) == np.inf


EQUAL = declare_map("equal", ("lhs", "rhs"), ALL, _compare("eq"), result=DType.bool)
NOT_EQUAL = declare_map("not_equal", ("lhs", "rhs"), ALL, _compare("ne"), result=DType.bool)
LESS = declare_map("less", ("lhs", "rhs"), ALL, _compare("lt"), result=DType.bool)
LESS_EQUAL = declare_map("less_equal", ("lhs", "rhs"), ALL, _compare("le"), result=DType.bool)
GREATER = declare_map("greater", ("lhs", "rhs"), ALL, _compare("gt"), result=DType.bool)
GREATER_EQUAL = declare_map("greater_equal", ("lhs", "rhs"), ALL, _compare("ge"), result=DType.bool)
MAXIMUM = declare_map("maximum", ("lhs", "rhs"), ALL, _extreme("maximum", "max"))
MINIMUM = declare_map("minimum", ("lhs", "rhs"), ALL, _extreme("minimum", "min"))
IS_NAN = declare_map("is_nan", ("x",), FLOATS, through_f32(lambda k, call, x: x != x), result=DType.bool)
IS_INF = declare_map("is_inf", ("x",), FLOATS, through_f32(_is_inf_recipe), result=DType.bool)
LOGICAL_AND = declare_map("logical_and", ("lhs", "rhs"), BOOL, lambda k, call, a, b: k.binary("and", a, b))
LOGICAL_OR = declare_map("logical_or", ("lhs", "rhs"), BOOL, lambda k, call, a, b: k.binary("or", a, b))
LOGICAL_XOR = declare_map("logical_xor", ("lhs", "rhs"), BOOL, lambda k, call, a, b: k.binary("xor", a, b))
LOGICAL_NOT = declare_map("logical_not", ("x",), BOOL, lambda k, call, x: ~x)


def _infer_where(operands: Sequence[TensorType], parameters: Mapping[str, Any]) -> list[TensorType]:
    condition, x, y = operands
    if condition.dtype is not DType.bool:
        raise GraphTypeError(f"operand 'condition' must be bool, not {condition.dtype}; compare it with something")
    check_dtypes([x, y], ALL)
    check_shapes(operands)
    return [x]


WHERE = register_op(
    OpDef("where", "map", ("condition", "x", "y"), _infer_where, recipe=lambda k, call, c, x, y: k.select(c, x, y))
)


def where(condition: TensorValueLike, x: TensorValueLike, y: TensorValueLike) -> TensorValue:
    """``x`` where ``condition`` is true, ``y`` elsewhere. Both are computed.

    Args:
        condition: bool, any shape.
        x: any element type; promotes with ``y`` (one of them may be a number).
        y: likewise. All three shapes broadcast.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, ``condition`` is not bool.
    """
    subject = "ops.where"
    graph = Graph.current(subject)
    with Located():
        chooser = as_tensor(graph, subject, "condition", condition)
        if chooser.dtype is not DType.bool:
            raise GraphTypeError(
                f"{subject}: operand 'condition' must be bool, not {chooser.dtype}; compare it with something"
            )
        values = as_tensors(graph, subject, ("x", "y"), [x, y])
        operands = broadcast_operands(subject, WHERE.operands, [chooser, *values])
    return graph.apply(WHERE, operands)[0]


def equal(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs == rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(EQUAL, [lhs, rhs], fastmath=fastmath)


def not_equal(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs != rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(NOT_EQUAL, [lhs, rhs], fastmath=fastmath)


def less(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs < rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(LESS, [lhs, rhs], fastmath=fastmath)


def less_equal(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs <= rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(LESS_EQUAL, [lhs, rhs], fastmath=fastmath)


def greater(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs > rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(GREATER, [lhs, rhs], fastmath=fastmath)


def greater_equal(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs >= rhs`` as bool. Raises `GraphError` or `GraphTypeError` where shapes or types do not meet."""
    return apply_map(GREATER_EQUAL, [lhs, rhs], fastmath=fastmath)


def is_nan(x: TensorValueLike) -> TensorValue:
    """Whether each float is NaN. Raises `GraphTypeError` for anything but a tensor of floats."""
    return apply_map(IS_NAN, [x])


def is_inf(x: TensorValueLike) -> TensorValue:
    """Whether each float is inf or -inf. Raises `GraphTypeError` for anything but a tensor of floats."""
    return apply_map(IS_INF, [x])


def logical_and(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """Whether both bools are true. Raises `GraphError` or `GraphTypeError` for other operands."""
    return apply_map(LOGICAL_AND, [lhs, rhs])


def logical_or(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """Whether one of two bools is true. Raises `GraphError` or `GraphTypeError` for other operands."""
    return apply_map(LOGICAL_OR, [lhs, rhs])


def logical_xor(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """Whether exactly one of two bools is true. Raises `GraphError` or `GraphTypeError` for other operands."""
    return apply_map(LOGICAL_XOR, [lhs, rhs])


def logical_not(x: TensorValueLike) -> TensorValue:
    """Whether the bool is false. Raises `GraphTypeError` for other operands."""
    return apply_map(LOGICAL_NOT, [x])


def maximum(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The larger of two elements; NaN if one is NaN. ``ops.max(lhs, rhs)`` is the same.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, or types do not promote.
    """
    return apply_map(MAXIMUM, [lhs, rhs], fastmath=fastmath, subject="ops.max")


def minimum(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """The smaller of two elements; NaN if one is NaN. ``ops.min(lhs, rhs)`` is the same.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, or types do not promote.
    """
    return apply_map(MINIMUM, [lhs, rhs], fastmath=fastmath, subject="ops.min")


def larger(x: Array, y: Array) -> Array:
    """The larger of two, as the reference has it: NaN wins, -0.0 is below 0.0."""
    if x.dtype.kind != "f":
        return np.asarray(np.maximum(x, y))
    return np.asarray(np.where((x == 0) & (y == 0), x + y, np.maximum(x, y)))


def smaller(x: Array, y: Array) -> Array:
    """The smaller of two, as the reference has it: NaN wins, -0.0 is below 0.0."""
    if x.dtype.kind != "f":
        return np.asarray(np.minimum(x, y))
    return -larger(-x, -y)


for _function, _reference in (
    (equal, lambda a, b: a == b),
    (not_equal, lambda a, b: a != b),
    (less, lambda a, b: a < b),
    (less_equal, lambda a, b: a <= b),
    (greater, lambda a, b: a > b),
    (greater_equal, lambda a, b: a >= b),
    (maximum, larger),
    (minimum, smaller),
):
    promise(Contract(_function.__name__, _function, 2, ALL, EXACT, _reference))
promise(Contract("is_nan", is_nan, 1, FLOATS, EXACT, np.isnan))
promise(Contract("is_inf", is_inf, 1, FLOATS, EXACT, np.isinf))
promise(Contract("logical_and", logical_and, 2, BOOL, EXACT, np.logical_and))
promise(Contract("logical_or", logical_or, 2, BOOL, EXACT, np.logical_or))
promise(Contract("logical_xor", logical_xor, 2, BOOL, EXACT, np.logical_xor))
promise(Contract("logical_not", logical_not, 1, BOOL, EXACT, np.logical_not))
promise(Contract("where", where, 3, ALL, EXACT, np.where, conditions=1))
