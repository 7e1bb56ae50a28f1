"""What NVIDIA's driver reports."""

from __future__ import annotations

from ..errors import DeviceError


class CudaError(DeviceError):
    """A call of the driver failed: ``call`` is its name, ``error`` the driver's name for what went wrong."""

    def __init__(self, message: str, call: str, error: str) -> None:
        super().__init__(message)
        self.call = call
        self.error = error


class CudaOutOfMemoryError(CudaError, MemoryError):
    """The GPU has not so much memory."""
