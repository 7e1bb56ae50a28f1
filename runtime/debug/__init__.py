"""Finds out what rounding did to a graph: modes side by side, the op that did it, and what another framework did.

The names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bisect import Bisection, Site, bisect_flags
    from .classify import Classification, Explanation, classify, classify_graph
    from .comparison import OutputResult
    from .dump_comparison import TensorComparison, TensorPair, UnpairedTensor, compare_tensors
    from .explain import GraphReport, explain_graph
    from .fastmath import FastmathMatrix, ModeResult, fastmath_matrix

__all__ = [
    "fastmath_matrix",
    "FastmathMatrix",
    "ModeResult",
    "OutputResult",
    "bisect_flags",
    "Bisection",
    "Site",
    "classify",
    "classify_graph",
    "Classification",
    "Explanation",
    "explain_graph",
    "GraphReport",
    "compare_tensors",
    "TensorComparison",
    "TensorPair",
    "UnpairedTensor",
]

_MODULES = {
    "fastmath_matrix": "fastmath",
    "FastmathMatrix": "fastmath",
    "ModeResult": "fastmath",
    "OutputResult": "comparison",
    "bisect_flags": "bisect",
    "Bisection": "bisect",
    "Site": "bisect",
    "classify": "classify",
    "classify_graph": "classify",
    "Classification": "classify",
    "Explanation": "classify",
    "explain_graph": "explain",
    "GraphReport": "explain",
    "compare_tensors": "dump_comparison",
    "TensorComparison": "dump_comparison",
    "TensorPair": "dump_comparison",
    "UnpairedTensor": "dump_comparison",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
