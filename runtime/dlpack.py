"""DLPack in and out through numpy, and bfloat16, which numpy's DLPack does not know.

A bfloat16 tensor travels as numpy's uint16 of the same memory: only the type code in the capsule's DLTensor differs.
Layouts and codes are those of dlpack.h, version 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphTypeError

from .memory import Array

_CPU = 1  # kDLCPU
_UINT, _BFLOAT = 1, 4  # kDLUInt, kDLBfloat


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor up to the type; a DLManagedTensor begins with it."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
    ]


class _VersionedTensor(ctypes.Structure):
    """DLManagedTensorVersioned, as far as that."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def export_bfloat16(array: Array, arguments: dict[str, Any]) -> Any:
    """The capsule of a bfloat16 array; ``arguments`` are those of numpy's ``__dlpack__``, which may raise."""
    capsule = array.view(np.uint16).__dlpack__(**arguments)
    dtype = _data_type(capsule)
    assert dtype is not None, "numpy made a capsule that is none of DLPack's"
    dtype.code = _BFLOAT
    return capsule


def array_from_dlpack(value: Any, subject: str) -> Array:
    """The numpy view of an object with ``__dlpack__`` in host memory; ``subject`` begins the messages.

    Raises:
        GraphTypeError: memory of another device, an element type that numpy does not know, or the object refuses.
    """
    kind = type(value).__name__
    if hasattr(value, "__dlpack_device__"):
        device_type = int(value.__dlpack_device__()[0])
        if device_type != _CPU:
            raise GraphTypeError(
                f"{subject} ({kind}) must be in host memory, not on a device of DLPack type {device_type}; "
                "copy it to the host first"
            )
    producer = _Producer(value)
    try:
        array: Array = np.from_dlpack(producer)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise GraphTypeError(
            f"{subject} ({kind}) cannot be read through DLPack: {error}; pass a numpy array"
        ) from error
    if producer.bfloat16 is None:
        return array
    producer.bfloat16.code = _BFLOAT  # the producer gets its tensor back as it was
    return array.view(DType.bfloat16.to_numpy())


class _Producer:
    """Stands for another object, whose bfloat16 it hands over as uint16; ``bfloat16`` is that tensor's type."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.bfloat16: _DataType | None = None

    def __dlpack__(self, **arguments: Any) -> Any:
        capsule = self._source.__dlpack__(**arguments)
        dtype = _data_type(capsule)
        if dtype is not None and (dtype.code, dtype.bits, dtype.lanes) == (_BFLOAT, 16, 1):
            dtype.code = _UINT
            self.bfloat16 = dtype
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        if not hasattr(self._source, "__dlpack_device__"):
            return _CPU, 0
        kind, index = self._source.__dlpack_device__()
        return int(kind), int(index)


def _data_type(capsule: Any) -> _DataType | None:
    """The type in a capsule, in place; None if it is no unused capsule of DLPack, which numpy then refuses."""
    found: _DataType | None = None
    if _is_valid(capsule, b"dltensor"):
        found = _Tensor.from_address(_pointer_of(capsule, b"dltensor")).dtype
    elif _is_valid(capsule, b"dltensor_versioned"):
        versioned = _VersionedTensor.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if versioned.major == 1:
            found = versioned.tensor.dtype
    return found
