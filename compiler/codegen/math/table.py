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
from .exponential import exp2_f32, exp_f32
from .logarithm import log_f32


@dataclass(frozen=True)
class Expansion:
    """An elementary function in one format."""

    expand: Callable[..., Any]  # (emitter, *values) -> value
    ulp_bound: float
    special_values: str
    operations: int  # emitter calls, constants and bitcasts not counted
    arity: int = 1


_EXP_SPECIAL = "f(-inf) = +0, f(+inf) = +inf, f(±0) = 1; NaN gives NaN; overflow to +inf, gradual underflow to +0"
_LOG_SPECIAL = "f(±0) = -inf, f(1) = +0, f(+inf) = +inf; NaN and x < 0 give NaN"

EXPANSIONS: dict[str, dict[ElementType, Expansion]] = {
    "exp": {"f32": Expansion(exp_f32, 1.0, _EXP_SPECIAL, 20)},
    "exp2": {"f32": Expansion(exp2_f32, 1.0, _EXP_SPECIAL, 20)},
    "log": {"f32": Expansion(log_f32, 1.0, _LOG_SPECIAL, 30)},
}
