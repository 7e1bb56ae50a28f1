"""add, sub, mul, div, negate and fma: each result rounded once.

These six are what fma contraction works on: a ``mul`` that feeds an ``add`` or ``sub`` may become an ``fma``, if the
options allow it. Integers wrap. Shapes broadcast, element types promote (`halfulp.ops.promotion`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from halfulp.compiler import DType, Graph, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.registry import ParameterSpec
from halfulp.compiler.tile_builder import TileBuilder, Value

from .contract import CORRECTLY_ROUNDED, FLOATS, NUMBERS, Array, Contract, promise
from .elementwise import Flags, apply_map, declare_map
from .promotion import TensorValueLike, as_tensors, cast_to

ADD = declare_map("add", ("lhs", "rhs"), NUMBERS, lambda k, call, a, b: k.binary("add", a, b), contraction="sum")
SUB = declare_map("sub", ("lhs", "rhs"), NUMBERS, lambda k, call, a, b: k.binary("sub", a, b), contraction="difference")
MUL = declare_map("mul", ("lhs", "rhs"), NUMBERS, lambda k, call, a, b: k.binary("mul", a, b), contraction="product")
DIV = declare_map("div", ("lhs", "rhs"), FLOATS, lambda k, call, a, b: k.binary("div", a, b))
NEGATE = declare_map("negate", ("x",), NUMBERS, lambda k, call, x: k.negate(x))


def _fma_recipe(k: TileBuilder, call: OpCall, a: Value, b: Value, c: Value) -> Value:
    product = k.negate(a) if call.parameters["negate_product"] else a
    addend = k.negate(c) if call.parameters["negate_addend"] else c
    return k.fma(product, b, addend)


FMA = declare_map(
    "fma",
    ("a", "b", "c"),
    FLOATS,
    _fma_recipe,
    parameters=(ParameterSpec("negate_product", bool, False), ParameterSpec("negate_addend", bool, False)),
    contraction="fused",
)


def add(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs + rhs``. Floats correctly rounded, integers wrap.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    return apply_map(ADD, [lhs, rhs], fastmath=fastmath)


def sub(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs - rhs``. Floats correctly rounded, integers wrap.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    return apply_map(SUB, [lhs, rhs], fastmath=fastmath)


def mul(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs * rhs``. Floats correctly rounded, integers wrap.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    return apply_map(MUL, [lhs, rhs], fastmath=fastmath)


def div(lhs: TensorValueLike, rhs: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``lhs / rhs``, correctly rounded; x / 0 is ±inf or NaN as IEEE 754 has it.

    Integers are converted to f64 first, so the result of two integers is f64.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are bool.
    """
    subject = "ops.div"
    graph = Graph.current(subject)
    with Located():
        operands = as_tensors(graph, subject, DIV.operands, [lhs, rhs])
        if operands[0].dtype.is_integral:
            operands = [cast_to(value, DType.float64) for value in operands]
    return apply_map(DIV, operands, fastmath=fastmath)


def negate(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``-x``, exact: the sign bit of floats (NaN too), two's complement of integers (unsigned ones wrap).

    Raises:
        GraphTypeError: ``x`` is no tensor, or bool.
    """
    return apply_map(NEGATE, [x], fastmath=fastmath)


def fma(
    a: TensorValueLike,
    b: TensorValueLike,
    c: TensorValueLike,
    *,
    negate_product: bool = False,
    negate_addend: bool = False,
    fastmath: Flags = None,
) -> TensorValue:
    """``±(a * b) ± c`` rounded once, in f16 and bf16 too.

    Raises:
        GraphError, GraphTypeError: shapes do not broadcast, types do not promote, or are no floats.
    """
    parameters = {"negate_product": negate_product, "negate_addend": negate_addend}
    return apply_map(FMA, [a, b, c], parameters, fastmath)


# -- references: float64 holds sum, product and quotient of narrower floats so closely that rounding twice is harmless


def _divide(a: Array, b: Array) -> Array:
    if a.dtype == object:
        return a.astype(np.float64) / b.astype(np.float64)
    return np.asarray(a / b)


def _exact_fma(a: float, b: float, c: float, negate_product: bool, negate_addend: bool) -> np.longdouble:
    a, c = -a if negate_product else a, -c if negate_addend else c
    if not np.isfinite([a, b, c]).all() or (a * b == 0 and c == 0):
        with np.errstate(all="ignore"):
            return np.longdouble(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    high = _as_float(exact)
    if not np.isfinite(high):
        return np.longdouble(high)
    near = np.longdouble(high) + np.longdouble(_as_float(exact - Fraction(high)))
    rest = exact - Fraction(*near.as_integer_ratio())
    # what 64 bits cannot hold must still tell a tie from its neighbours
    return near if rest == 0 else np.nextafter(near, np.longdouble(np.inf if rest > 0 else -np.inf))


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _reference_fma(a: Array, b: Array, c: Array, negate_product: bool = False, negate_addend: bool = False) -> Array:
    return np.asarray(np.vectorize(_exact_fma, otypes=[np.longdouble])(a, b, c, negate_product, negate_addend))


for _name, _function, _reference in (
    ("add", add, lambda a, b: a + b),
    ("sub", sub, lambda a, b: a - b),
    ("mul", mul, lambda a, b: a * b),
    ("div", div, _divide),
):
    promise(Contract(_name, _function, 2, NUMBERS, CORRECTLY_ROUNDED, _reference))
promise(Contract("negate", negate, 1, NUMBERS, 0.0, lambda x: -x))
promise(
    Contract(
        "fma",
        fma,
        3,
        FLOATS,
        CORRECTLY_ROUNDED,
        _reference_fma,
        variants=({}, {"negate_product": True}, {"negate_addend": True}),
    )
)
