"""Finds out what rounding did to a graph: modes side by side, the op that did it, and what another framework did.

The names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfulp.compiler.lazy_names import lazy_names

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


__getattr__, __dir__ = lazy_names(globals(), _MODULES)
