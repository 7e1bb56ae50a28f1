"""The dialects that halfulp adds to xDSL's own.

A dialect module is imported when its first op or type is parsed, so listing one here costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Dialect

# Name of the dialect (also of its module here) -> the Dialect object in that module.
DIALECTS = {
    "graph": "Graph",
    "tile": "Tile",
    "vector_ext": "VectorExt",
    "scf_ext": "SCFExt",
    "gpu_ext": "GPUExt",
    "llvm_ext": "LLVMExt",
}


def _loader(module: str, attribute: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        dialect: Dialect = getattr(import_module(f".{module}", __name__), attribute)
        return dialect

    return load


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects by name, each as a function that imports it."""
    return {name: _loader(name, attribute) for name, attribute in DIALECTS.items()}
