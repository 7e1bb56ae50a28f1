"""Which elementary functions exist, and what each promises.

``EXPANSIONS["exp"]["f32"].expand(e, x)`` emits e^x. An error of u ulp means |computed - exact| <= u * ulp(exact), where
ulp(y) is the distance between neighbouring numbers of the format in the binade of y, and that between subnormals
below the smallest normal number. Where the exact value rounds to infinity or a NaN is due, the result is exactly that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .emitter import ElementType
from .error_function import erf_f32, erf_f64
from .exponential import exp2_f32, exp2_f64, exp_f32, exp_f64, expm1_f32, expm1_f64
from .hyperbolic import tanh_f32, tanh_f64
from .logarithm import log1p_f32, log1p_f64, log2_f32, log2_f64, log_f32, log_f64
from .power import pow_f32, pow_f64
from .root import rsqrt_f32, rsqrt_f64
from .trigonometric import cos_f32, sin_f32
from .trigonometric_f64 import cos_f64, sin_f64


@dataclass(frozen=True)
class Expansion:
    """An elementary function in one format."""

    expand: Callable[..., Any]  # (emitter, *values) -> value
    ulp_bound: float
    special_values: str
    operations: int  # emitter calls, constants and bitcasts not counted
    arity: int = 1


_EXP = "f(-inf) = +0, f(+inf) = +inf, f(±0) = 1; overflow to +inf, gradual underflow to +0"
_EXPM1 = "f(-inf) = -1, f(+inf) = +inf, f(±0) = ±0; overflow to +inf"
_LOG = "f(±0) = -inf, f(1) = +0, f(+inf) = +inf; x < 0 gives NaN"
_LOG1P = "f(-1) = -inf, f(±0) = ±0, f(+inf) = +inf; x < -1 gives NaN"
_SIN = "f(±0) = ±0; f(±inf) is NaN"
_COS = "f(±0) = 1; f(±inf) is NaN"
_ODD_TO_ONE = "f(±0) = ±0, f(±inf) = ±1"
_RSQRT = "f(±0) = ±inf, f(+inf) = +0; x < 0 gives NaN"
_POW = (
    "x^±0 = 1 and 1^y = 1 for any y and x, NaN too; (-1)^±inf = 1; (±0)^y and (±inf)^y are ±0 or ±inf, negative for"
    " x = -0 or -inf and odd y; |x|^±inf is +0 or +inf; x < 0 with a finite y that is no integer gives NaN"
)

# Further: NaN gives NaN, and no operation traps.
EXPANSIONS: dict[str, dict[ElementType, Expansion]] = {
    "exp": {"f32": Expansion(exp_f32, 1.0, _EXP, 20), "f64": Expansion(exp_f64, 1.0, _EXP, 25)},
    "exp2": {"f32": Expansion(exp2_f32, 1.0, _EXP, 19), "f64": Expansion(exp2_f64, 1.0, _EXP, 24)},
    "expm1": {"f32": Expansion(expm1_f32, 1.0, _EXPM1, 31), "f64": Expansion(expm1_f64, 1.0, _EXPM1, 36)},
    "log": {"f32": Expansion(log_f32, 1.0, _LOG, 27), "f64": Expansion(log_f64, 1.0, _LOG, 45)},
    "log2": {"f32": Expansion(log2_f32, 1.0, _LOG, 40), "f64": Expansion(log2_f64, 1.0, _LOG, 52)},
    "log1p": {"f32": Expansion(log1p_f32, 1.0, _LOG1P, 26), "f64": Expansion(log1p_f64, 1.0, _LOG1P, 53)},
    "sin": {"f32": Expansion(sin_f32, 1.0, _SIN, 42), "f64": Expansion(sin_f64, 1.0, _SIN, 167)},
    "cos": {"f32": Expansion(cos_f32, 1.0, _COS, 43), "f64": Expansion(cos_f64, 1.0, _COS, 165)},
    "tanh": {"f32": Expansion(tanh_f32, 1.0, _ODD_TO_ONE, 29), "f64": Expansion(tanh_f64, 1.0, _ODD_TO_ONE, 44)},
    "erf": {"f32": Expansion(erf_f32, 1.0, _ODD_TO_ONE, 29), "f64": Expansion(erf_f64, 1.0, _ODD_TO_ONE, 55)},
    "rsqrt": {"f32": Expansion(rsqrt_f32, 1.0, _RSQRT, 12), "f64": Expansion(rsqrt_f64, 1.0, _RSQRT, 12)},
    "pow": {
        "f32": Expansion(pow_f32, 1.0, _POW, 73, arity=2),
        "f64": Expansion(pow_f64, 2.0, _POW, 132, arity=2),
    },
}
