"""Runs compiled graphs: sessions, models, devices and buffers.

The names load on first use, so that the command line need not wait for numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .buffer import Buffer
    from .device import CPU, Device
    from .errors import ExecutionError
    from .model import Model, TensorMetadata
    from .printing import PrintStyle
    from .session import InferenceSession

__all__ = ["InferenceSession", "Model", "TensorMetadata", "Buffer", "CPU", "Device", "ExecutionError", "PrintStyle"]

_MODULES = {
    "InferenceSession": "session",
    "Model": "model",
    "TensorMetadata": "model",
    "Buffer": "buffer",
    "CPU": "device",
    "Device": "device",
    "ExecutionError": "errors",
    "PrintStyle": "printing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
