"""relu, sigmoid, silu and the three forms of gelu.

Floats of up to 32 bits are computed in f64 and rounded once: the tails of ``silu`` and ``gelu`` lose most of their bits
in f32. The form "none" of gelu is worth the trouble of keeping them there, in `exact_gelu`. At -inf all of them give
their limit, 0; NaN stays NaN. f64 itself has algorithms of its own, in `activation_f64`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64

from halfulp.compiler import Graph, GraphError, TensorValue
from halfulp.compiler.errors import NotFoundError, near_names
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.registry import ParameterSpec
from halfulp.compiler.tile_builder import TileBuilder, Value

from . import activation_f64
from .comparison import larger
from .contract import EXACT, FLOATS, SIGNED, Array, Contract, promise
from .elementwise import Flags, Recipe, apply_map, declare_map, through_f32
from .exact_gelu import exact_gelu
from .expansion import Steps
from .promotion import TensorValueLike

GELU_FORMS = ("none", "tanh", "quick")

_FARTHEST = 1e30
"""Operands are brought within ±this: a product with a vanishing factor is then 0, not inf * 0."""


def _through_f64(
    name: str, function: Callable[[Steps, OpCall, Value], Value], own: Callable[[TileBuilder, Value], Value]
) -> Recipe:
    """A recipe in f64 for narrower floats, whose result is rounded once; ``own`` is the one of f64."""

    def recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
        if x.element_type == f64:
            return own(k, x)
        return k.cast(function(Steps(k, name), call, k.cast(x, f64)), x.element_type)

    return recipe


def _bounded(steps: Steps, x: Value) -> Value:
    return steps.at_least(x, -_FARTHEST)


def _sigmoid(steps: Steps, call: OpCall, x: Value) -> Value:
    k = steps.k
    return k.binary("div", 1.0, 1.0 + steps.exp_f64(k.negate(x)))


def _times_sigmoid(steps: Steps, x: Value, slope: Value) -> Value:
    """``x / (1 + exp(-slope))``."""
    return _bounded(steps, x) / (1.0 + steps.exp_f64(steps.k.negate(slope)))


def _smooth_gelu(steps: Steps, call: OpCall, x: Value) -> Value:
    if call.parameters["approximate"] == "quick":
        return _times_sigmoid(steps, x, 1.702 * x)
    near = steps.at_most(_bounded(steps, x), _FARTHEST)
    cubic = steps.fma(near * near, near * 0.044715, near)
    return _times_sigmoid(steps, x, 2 * math.sqrt(2 / math.pi) * cubic)


def _gelu(k: TileBuilder, call: OpCall, x: Value) -> Value:
    form = str(call.parameters["approximate"])
    if x.element_type == f64:
        return activation_f64.gelu(k, x, form)
    if form == "none":
        return k.cast(exact_gelu(k, k.cast(x, f32)), x.element_type)
    return k.cast(_smooth_gelu(Steps(k, "gelu"), call, k.cast(x, f64)), x.element_type)


RELU = declare_map(
    "relu", ("x",), FLOATS + SIGNED, through_f32(lambda k, call, x: k.binary("maximum" if x.is_float else "maxs", x, 0))
)
SIGMOID = declare_map("sigmoid", ("x",), FLOATS, _through_f64("sigmoid", _sigmoid, activation_f64.sigmoid))
SILU = declare_map(
    "silu",
    ("x",),
    FLOATS,
    _through_f64("silu", lambda steps, call, x: _times_sigmoid(steps, x, x), activation_f64.silu),
)
GELU = declare_map(
    "gelu",
    ("x",),
    FLOATS,
    _gelu,
    parameters=(
        ParameterSpec(
            "approximate", str, "none", accepts=lambda form: form in GELU_FORMS, rule="'none', 'tanh' or 'quick'"
        ),
    ),
)


def relu(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``max(x, 0)``, exact. Raises `GraphTypeError` for anything but floats and signed integers."""
    return apply_map(RELU, [x], fastmath=fastmath)


def sigmoid(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``1 / (1 + e^-x)``. Raises `GraphTypeError` for anything but floats."""
    return apply_map(SIGMOID, [x], fastmath=fastmath)


def silu(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``x / (1 + e^-x)``. Raises `GraphTypeError` for anything but floats."""
    return apply_map(SILU, [x], fastmath=fastmath)


def gelu(x: TensorValueLike, approximate: str = "none", *, fastmath: Flags = None) -> TensorValue:
    """x times the normal distribution at x (D. Hendrycks and K. Gimpel, arXiv:1606.08415).

    Args:
        x: floats.
        approximate: ``"none"``, ``x (1 + erf(x / sqrt 2)) / 2``; ``"tanh"``,
            ``x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2``; ``"quick"`` (or ``"sigmoid"``), ``x sigmoid(1.702 x)``.
            The constants are taken as they stand here, not rounded to f32.

    Raises:
        GraphError: another ``approximate``.
        GraphTypeError: ``x`` is no tensor of floats.
    """
    form = "quick" if approximate == "sigmoid" else approximate
    if form not in GELU_FORMS:
        with Located():
            Graph.current("ops.gelu")
            hint = near_names(form, GELU_FORMS) if isinstance(form, str) else ""
            raise GraphError(f"ops.gelu: approximate must be 'none', 'tanh' or 'quick', not {approximate!r}{hint}")
    return apply_map(GELU, [x], {"approximate": form}, fastmath)


# -- contracts: the references of f64 need more bits than a longdouble has on the way


_FAR = 10_000.0
"""Beyond ±this the functions are 0 and x in f64."""


def _mpmath() -> Any:
    try:
        import mpmath
    except ImportError:
        raise NotFoundError(
            "the references of gelu and silu in float64 need mpmath, which is not installed; "
            "pip install halfulp[references]"
        ) from None
    return mpmath


def _in_many_bits(function: Callable[[Any], Any], x: Array) -> Array:
    """``function`` of mpmath numbers, rounded to longdouble once; far out its limits, NaN of NaN."""
    mpmath = _mpmath()

    def one(value: np.longdouble) -> np.longdouble:
        if not abs(value) < _FAR:
            return np.longdouble(-0.0) if value < 0 else value
        with mpmath.workprec(64):
            rounded = +function(mpmath.mpf(float(value)))
        sign, mantissa, exponent, _ = rounded._mpf_
        high, low = divmod(int(mantissa), 1 << 32)
        size = np.ldexp(np.longdouble(high) * 2**32 + np.longdouble(low), max(exponent, -20_000))
        return np.longdouble(-size if sign else np.copysign(size, value if not mantissa else 1))

    return np.array([one(value) for value in x.ravel()], np.longdouble).reshape(x.shape)


def _sigmoid_of(slope: Any) -> Any:
    mpmath = _mpmath()
    with mpmath.workprec(200):
        return 1 / (1 + mpmath.exp(-slope))


def _gelu_of(x: Any, form: str) -> Any:
    mpmath = _mpmath()
    with mpmath.workprec(200):
        if form == "none":
            return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        slope = x * mpmath.mpf(1.702)
        if form == "tanh":
            slope = 2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3)
        return x * _sigmoid_of(slope)


def _silu_of(x: Any) -> Any:
    mpmath = _mpmath()
    with mpmath.workprec(200):
        return x * _sigmoid_of(x)


def _reference_gelu(x: Array, approximate: str) -> Array:
    if x.dtype == np.longdouble:
        return _in_many_bits(lambda value: _gelu_of(value, approximate), x)
    if approximate == "none":
        return np.asarray(np.vectorize(_reference_exact_gelu, otypes=[np.float64])(x))
    wide = x.astype(np.longdouble)
    slope = 1.702 * wide
    if approximate == "tanh":
        slope = 2 * np.sqrt(2 / np.longdouble(np.pi)) * (wide + np.longdouble(0.044715) * wide**3)
    return _reference_product(wide, slope)


def _reference_exact_gelu(x: float) -> float:
    return -0.0 if x == -math.inf else x if x == math.inf else 0.5 * x * math.erfc(-x / math.sqrt(2))


def _reference_product(x: Array, slope: Array) -> Array:
    """``x sigmoid(slope)``, and its limit at -inf."""
    return np.asarray(np.where(x == -np.inf, -0.0, x / (1 + np.exp(-slope))))


def _reference_silu(x: Array) -> Array:
    if x.dtype == np.longdouble:
        return _in_many_bits(_silu_of, x)
    wide = x.astype(np.longdouble)
    return _reference_product(wide, wide)


def _reference_sigmoid(x: Array) -> Array:
    # its exponential is added to 1 or is the result: a longdouble has bits enough
    return np.asarray(1 / (1 + np.exp(-x.astype(np.longdouble))))


promise(Contract("relu", relu, 1, FLOATS + SIGNED, EXACT, lambda x: larger(x, np.zeros_like(x))))
promise(Contract("sigmoid", sigmoid, 1, FLOATS, 1.0, _reference_sigmoid))
promise(Contract("silu", silu, 1, FLOATS, 1.0, _reference_silu))
promise(Contract("gelu", gelu, 1, FLOATS, 2.0, _reference_gelu, tuple({"approximate": form} for form in GELU_FORMS)))
