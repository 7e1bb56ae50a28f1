"""halfulp's compiler: from a graph written in Python to object code, every rounding under control.

The public names below are imported when they are first used, so that ``import halfulp.compiler`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy_names import lazy_names

if TYPE_CHECKING:
    from .device import DeviceRef
    from .dims import AlgebraicDim, Dim, StaticDim, SymbolicDim, ceil_div
    from .dtypes import DType
    from .errors import CompileError, GraphError, GraphTypeError, HalfulpError, NotFoundError
    from .graph import Graph
    from .options import CompileOptions
    from .types import BufferType, TensorType
    from .values import BufferValue, TensorValue, Weight

_MODULES = {
    "device": ("DeviceRef",),
    "dims": ("AlgebraicDim", "Dim", "StaticDim", "SymbolicDim", "ceil_div"),
    "dtypes": ("DType",),
    "errors": ("CompileError", "GraphError", "GraphTypeError", "HalfulpError", "NotFoundError"),
    "graph": ("Graph",),
    "options": ("CompileOptions",),
    "types": ("BufferType", "TensorType"),
    "values": ("BufferValue", "TensorValue", "Weight"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AlgebraicDim",
    "BufferType",
    "BufferValue",
    "CompileError",
    "CompileOptions",
    "DType",
    "DeviceRef",
    "Dim",
    "Graph",
    "GraphError",
    "GraphTypeError",
    "HalfulpError",
    "NotFoundError",
    "StaticDim",
    "SymbolicDim",
    "TensorType",
    "TensorValue",
    "Weight",
    "ceil_div",
]


__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
