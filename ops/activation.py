"""relu, sigmoid, silu and the three forms of gelu.

Floats of up to 32 bits are computed in f64 and rounded once: the tails of ``silu`` and ``gelu`` lose most of their bits
in f32. At -inf all of them give their limit, 0; NaN stays NaN. f64 itself is not supported by the smooth ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f64

from halfulp.compiler import DType, Graph, GraphError, TensorValue
from halfulp.compiler.errors import near_names
from halfulp.compiler.locations import Located
from halfulp.compiler.opdef import OpCall
from halfulp.compiler.registry import ParameterSpec
from halfulp.compiler.tile_builder import TileBuilder, Value

from .comparison import larger
from .contract import EXACT, FLOATS, SIGNED, Array, Contract, promise
from .elementwise import Flags, Recipe, apply_map, declare_map, through_f32
from .expansion import Steps, hex_floats
from .promotion import TensorValueLike

NARROW = (DType.float32, DType.float16, DType.bfloat16)
GELU_FORMS = ("none", "tanh", "quick")

_FARTHEST = 1e30
"""Operands are brought within ±this: a product with a vanishing factor is then 0, not inf * 0."""
_NORMAL_LIMIT = 16.0
"""Below -16, x times the normal distribution is less than half the smallest f32."""
_NORMAL_CENTER = 3.0
_NORMAL = hex_floats(
    "0x1.f1b89c222a277p-4 -0x1.a6b6699a6aab3p-3 0x1.f8baba42f38dep-4 -0x1.7a94a9d2ffb8ep-5 0x1.91f3e7534fd6dp-8 "
    "0x1.7ce4ccb22b06ep-9 -0x1.03a1d22430020p-10 -0x1.6a7caecdc4bdbp-12 0x1.105ff49febe09p-13 0x1.1c598c65a8c03p-14 "
    "-0x1.46adafa4e2e88p-17 -0x1.a50283d4124fcp-17 -0x1.4c1b61ce0b522p-19"
)
"""exp(t^2 / 2) times the normal distribution at -t, in s = (t - 3) / (t + 3), 0 <= t <= 16: the interpolation in 13
Chebyshev nodes, within a relative 1.4e-9, a 43rd of half an ulp of f32."""


def _through_f64(name: str, function: Callable[[Steps, OpCall, Value], Value]) -> Recipe:
    """A recipe in f64 for narrower floats, whose result is rounded once."""

    def recipe(k: TileBuilder, call: OpCall, x: Value) -> Value:
        return k.cast(function(Steps(k, name), call, k.cast(x, f64)), x.element_type)

    return recipe


def _bounded(steps: Steps, x: Value) -> Value:
    return steps.k.binary("maximum", x, -_FARTHEST)


def _sigmoid(steps: Steps, call: OpCall, x: Value) -> Value:
    k = steps.k
    return k.binary("div", 1.0, 1.0 + steps.exp_f64(k.negate(x)))


def _times_sigmoid(steps: Steps, x: Value, slope: Value) -> Value:
    """``x / (1 + exp(-slope))``."""
    return _bounded(steps, x) / (1.0 + steps.exp_f64(steps.k.negate(slope)))


def _normal_below(steps: Steps, t: Value) -> Value:
    """The normal distribution at ``-t``, t from 0 to 16."""
    s = (t - _NORMAL_CENTER) / (t + _NORMAL_CENTER)
    return steps.polynomial(s, _NORMAL) * steps.exp_f64(-0.5 * (t * t))


def _gelu(steps: Steps, call: OpCall, x: Value) -> Value:
    k = steps.k
    match call.parameters["approximate"]:
        case "tanh":
            near = k.binary("minimum", _bounded(steps, x), _FARTHEST)
            cubic = steps.fma(near * near, near * 0.044715, near)
            return _times_sigmoid(steps, x, 2 * math.sqrt(2 / math.pi) * cubic)
        case "quick":
            return _times_sigmoid(steps, x, 1.702 * x)
    tail = _normal_below(steps, k.binary("minimum", k.unary("absf", x), _NORMAL_LIMIT))
    # at -32 the product has vanished as well; further down -inf * tail would not
    return k.binary("maximum", x, -2 * _NORMAL_LIMIT) * k.select(x > 0.0, 1.0 - tail, tail)


RELU = declare_map(
    "relu", ("x",), FLOATS + SIGNED, through_f32(lambda k, call, x: k.binary("maximum" if x.is_float else "maxs", x, 0))
)
SIGMOID = declare_map("sigmoid", ("x",), NARROW, _through_f64("sigmoid", _sigmoid))
SILU = declare_map("silu", ("x",), NARROW, _through_f64("silu", lambda steps, call, x: _times_sigmoid(steps, x, x)))
GELU = declare_map(
    "gelu",
    ("x",),
    NARROW,
    _through_f64("gelu", _gelu),
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
    """``1 / (1 + e^-x)``. Raises `GraphTypeError` for anything but floats of up to 32 bits."""
    return apply_map(SIGMOID, [x], fastmath=fastmath)


def silu(x: TensorValueLike, *, fastmath: Flags = None) -> TensorValue:
    """``x / (1 + e^-x)``. Raises `GraphTypeError` for anything but floats of up to 32 bits."""
    return apply_map(SILU, [x], fastmath=fastmath)


def gelu(x: TensorValueLike, approximate: str = "none", *, fastmath: Flags = None) -> TensorValue:
    """x times the normal distribution at x (D. Hendrycks and K. Gimpel, arXiv:1606.08415).

    Args:
        x: floats of up to 32 bits.
        approximate: ``"none"``, ``x (1 + erf(x / sqrt 2)) / 2``; ``"tanh"``,
            ``x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2``; ``"quick"`` (or ``"sigmoid"``), ``x sigmoid(1.702 x)``.
            The constants are taken as they stand here, not rounded to f32.

    Raises:
        GraphError: another ``approximate``.
        GraphTypeError: ``x`` is no tensor of such floats.
    """
    form = "quick" if approximate == "sigmoid" else approximate
    if form not in GELU_FORMS:
        with Located():
            Graph.current("ops.gelu")
            hint = near_names(form, GELU_FORMS) if isinstance(form, str) else ""
            raise GraphError(f"ops.gelu: approximate must be 'none', 'tanh' or 'quick', not {approximate!r}{hint}")
    return apply_map(GELU, [x], {"approximate": form}, fastmath)


# -- contracts


def _reference_gelu(x: Array, approximate: str) -> Array:
    if approximate == "none":
        return np.asarray(np.vectorize(_exact_gelu, otypes=[np.float64])(x))
    wide = x.astype(np.longdouble)
    slope = 1.702 * wide
    if approximate == "tanh":
        slope = 2 * np.sqrt(2 / np.longdouble(np.pi)) * (wide + np.longdouble(0.044715) * wide**3)
    return _reference_product(wide, slope)


def _exact_gelu(x: float) -> float:
    return -0.0 if x == -math.inf else x if x == math.inf else 0.5 * x * math.erfc(-x / math.sqrt(2))


def _reference_product(x: Array, slope: Array) -> Array:
    """``x sigmoid(slope)``, and its limit at -inf."""
    return np.asarray(np.where(x == -np.inf, -0.0, x / (1 + np.exp(-slope))))


def _reference_silu(x: Array) -> Array:
    wide = x.astype(np.longdouble)
    return _reference_product(wide, wide)


promise(Contract("relu", relu, 1, FLOATS + SIGNED, EXACT, lambda x: larger(x, np.zeros_like(x))))
promise(Contract("sigmoid", sigmoid, 1, NARROW, 1.0, lambda x: 1 / (1 + np.exp(-x.astype(np.longdouble)))))
promise(Contract("silu", silu, 1, NARROW, 1.0, _reference_silu))
promise(Contract("gelu", gelu, 1, NARROW, 1.0, _reference_gelu, tuple({"approximate": form} for form in GELU_FORMS)))
