"""What an expression or a graph can come to, by name, if it is rounded in one way or another.

A reading is an array of results. `halfulp.runtime.debug.classify` says which readings give another program's bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.compiler.dialects.graph import ApplyOp
from halfulp.compiler.graph import Graph
from halfulp.compiler.interpreter import exact
from halfulp.compiler.opdef import OpDef
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.registry import find_op

from .evaluation import Trace, evaluate
from .modes import mode_options
from .orders import DOT_ORDERS, SUM_ORDERS
from .running import run_once
from .ulps import Array

SEPARATE, FMA_LEFT, FMA_RIGHT, EXCESS = "separate rounding", "fma-left", "fma-right", "excess precision"
EXCESS_FMA = "excess precision with fma"
ORDER = "other order: "

_NARROW_ORDER = (SEPARATE, EXCESS, EXCESS_FMA, FMA_LEFT, FMA_RIGHT)
_WIDE_ORDER = (SEPARATE, FMA_LEFT, FMA_RIGHT, EXCESS, EXCESS_FMA)
"""Which reading is named where several explain as much: bf16 and f16 are often computed in f32, f32 rarely in f64."""

MOST_STEPS = 2**28
"""Additions of one reduction; the orders of larger ones are not tried, which would take minutes."""

Readings = dict[str, Array]


def multiply_add_readings(a: Array, b: Array, c: Array, d: Array | None = None, *, subtract: bool = False) -> Readings:
    """The readings of ``a * b + c``, of ``a * b + c * d`` if there is a ``d``, or of the differences.

    Args:
        a, b, c, d: arrays of one float type, whose shapes broadcast together.
        subtract: the minus sign instead of the plus.

    Returns:
        ``separate rounding``: every product and the sum, each rounded. ``fma-left``: the left product is exact.
        ``fma-right``: the right one is. ``excess precision``: all in the next wider type, rounded once more at the end;
        for bf16 and f16 that is f32, where products are exact. ``excess precision with fma`` fuses there, too.
    """
    given = np.broadcast_arrays(*(x for x in (a, b, c, d) if x is not None))
    a, b, c = given[:3]
    d = given[3] if d is not None else None
    with np.errstate(all="ignore"):
        addend = c if d is None else exact.multiply(c, d)
        product = exact.multiply(a, b)
        result = {SEPARATE: exact.subtract(product, addend) if subtract else exact.add(product, addend)}
        if a.dtype != np.float64:
            wide_type = np.float32 if a.dtype in exact.NARROW else np.float64
            wide = [None if x is None else x.astype(wide_type) for x in (a, b, c, d)]
            inner = multiply_add_readings(*wide, subtract=subtract)  # type: ignore[arg-type]
            result[EXCESS] = exact.narrow(inner[SEPARATE], a.dtype)
            result[EXCESS_FMA] = exact.narrow(inner[FMA_LEFT], a.dtype)
        result[FMA_LEFT] = exact.fma(a, b, exact.negate(addend) if subtract else addend)
        if d is not None:
            result[FMA_RIGHT] = exact.fma(exact.negate(c) if subtract else c, d, product)
    order = _NARROW_ORDER if a.dtype in exact.NARROW else _WIDE_ORDER
    return {name: result[name] for name in order if name in result}


def sum_readings(x: Array, axis: int = -1) -> Readings:
    """The sum of ``x`` along an axis in many orders (`halfulp.runtime.debug.orders`)."""
    rows = np.moveaxis(x, axis, -1)
    with np.errstate(all="ignore"):
        return {ORDER + name: order(rows) for name, order in SUM_ORDERS.items()}


def dot_readings(a: Array, b: Array) -> Readings:
    """The matrix product of ``a`` and ``b`` in many orders."""
    with np.errstate(all="ignore"):
        return {ORDER + name: order(a, b) for name, order in DOT_ORDERS.items()}


def graph_readings(
    graph: Graph,
    inputs: Sequence[Array],
    weights: Mapping[str, Array] | None = None,
    options: CompileOptions | None = None,
) -> dict[str, list[Array]]:
    """The outputs of a graph in each reading.

    ``separate rounding`` runs op by op under ``fp_contract="off"``; the fma readings fuse each sum with its left or its
    right product; ``excess precision`` is the mode of that name, for graphs with bf16 or f16; and for graphs with sums
    or matrix products all of them are taken in each other order.
    """
    weights = weights or {}
    off, on = mode_options("off", options), mode_options("on", options)
    result = {SEPARATE: evaluate(graph, inputs, weights, options=off).outputs}
    if any(value.dtype.bits == 16 and value.dtype.is_float for value in (*graph.inputs, *graph.outputs)):
        result[EXCESS] = run_once(graph, mode_options("excess", options), inputs, weights)
        result[EXCESS_FMA] = run_once(graph, mode_options("excess-fast", options), inputs, weights)
    result[FMA_LEFT] = evaluate(graph, inputs, weights, options=on, replace=_fused(0)).outputs
    result[FMA_RIGHT] = evaluate(graph, inputs, weights, options=on, replace=_fused(1)).outputs
    reduced = {_reduced(op) for op in graph.module.walk() if isinstance(op, ApplyOp)}
    names = [*(SUM_ORDERS if "sum" in reduced else ()), *(DOT_ORDERS if "dot" in reduced else ())]
    for name in names:
        trace = evaluate(graph, inputs, weights, options=on, replace=_reordered(name))
        result[ORDER + name] = trace.outputs
    return result


def _definition(op: ApplyOp) -> OpDef:
    return find_op(op.callee.data, op.subject)


def _fused(preferred: int) -> Callable[[Trace, ApplyOp], Sequence[Array] | None]:
    """Each sum fuses with its operand ``preferred`` if that is a product, else with the other one if that is."""

    def replace(trace: Trace, op: ApplyOp) -> Sequence[Array] | None:
        role = _definition(op).contraction
        if role not in ("sum", "difference") or not op.output_types[0].dtype.is_float:
            return None
        for place in (preferred, 1 - preferred):
            product = op.arguments[place].owner
            if isinstance(product, ApplyOp) and _definition(product).contraction == "product":
                a, b = (trace.values[value] for value in product.arguments)
                addend = trace.values[op.arguments[1 - place]]
                if role == "difference" and place == 1:
                    a = exact.negate(a)
                elif role == "difference":
                    addend = exact.negate(addend)
                return [exact.fma(a, b, addend)]
        return None

    return replace


def _reduced(op: ApplyOp) -> str | None:
    """``sum`` or ``dot`` for the ops whose order can be another one."""
    if op.callee.data == "matmul":
        return "dot"
    definition = _definition(op)
    is_sum = definition.kind == "reduce" and definition.reduction is not None and op.callee.data == "sum"
    return "sum" if is_sum else None


def _reordered(name: str) -> Callable[[Trace, ApplyOp], Sequence[Array] | None]:
    """Each sum, or matrix product, in the order of that name."""

    def replace(trace: Trace, op: ApplyOp) -> Sequence[Array] | None:
        kind = _reduced(op)
        operands = [trace.values[value] for value in op.arguments]
        if kind == "sum" and name in SUM_ORDERS:
            axis: Any = op.parameter_values["axis"]
            rows = np.moveaxis(operands[0], axis, -1)
            return [np.expand_dims(SUM_ORDERS[name](rows), axis)] if _is_small(rows.size) else None
        if kind == "dot" and name in DOT_ORDERS:
            steps = operands[0].size * operands[1].shape[-1]
            return [DOT_ORDERS[name](*operands)] if _is_small(steps) else None
        return None

    return replace


def _is_small(steps: int) -> bool:
    return steps <= MOST_STEPS
