"""Runs compiled graphs: sessions, models, devices and buffers.

The names load on first use, so that the command line need not wait for numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfulp.compiler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .buffer import Buffer
    from .checkpoint import Checkpoint, load_max_buffer, read_max_checkpoint, save_max_buffer
    from .device import CPU, Accelerator, Device
    from .errors import (
        BoundsError,
        CheckpointError,
        DeviceError,
        ExecutionError,
        NanCheckError,
        OutOfDeviceMemoryError,
    )
    from .model import Model, TensorMetadata
    from .printing import PrintStyle
    from .session import InferenceSession

__all__ = [
    "InferenceSession",
    "Model",
    "TensorMetadata",
    "Buffer",
    "CPU",
    "Accelerator",
    "Device",
    "BoundsError",
    "DeviceError",
    "ExecutionError",
    "OutOfDeviceMemoryError",
    "PrintStyle",
    "load_max_buffer",
    "save_max_buffer",
    "read_max_checkpoint",
    "Checkpoint",
    "CheckpointError",
    "NanCheckError",
]

_MODULES = {
    "InferenceSession": "session",
    "Model": "model",
    "TensorMetadata": "model",
    "Buffer": "buffer",
    "CPU": "device",
    "Accelerator": "device",
    "Device": "device",
    "BoundsError": "errors",
    "DeviceError": "errors",
    "ExecutionError": "errors",
    "OutOfDeviceMemoryError": "errors",
    "PrintStyle": "printing",
    "load_max_buffer": "checkpoint",
    "save_max_buffer": "checkpoint",
    "read_max_checkpoint": "checkpoint",
    "Checkpoint": "checkpoint",
    "CheckpointError": "errors",
    "NanCheckError": "errors",
}


__getattr__, __dir__ = lazy_names(globals(), _MODULES)
