"""Aligned host memory for outputs and intermediates, and the address of an array's first element."""

from __future__ import annotations

import ctypes
import math
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector register. numpy itself promises only 16."""

MAX_BYTES = 2**63 - 1 - ALIGNMENT
"""The largest size that numpy (and an i64 in generated code) can express, with room to align."""

_BYTE = np.dtype(np.uint8)

# these run for every input and output of every execution
_addressof: Any = ctypes.addressof
_from_buffer: Any = ctypes.c_char.from_buffer
_empty = np.empty


def address_of(array: Array) -> int:
    """The address of the first element, valid as long as the array lives.

    ``array.ctypes.data`` takes 0.9 us, the buffer protocol 0.3, but that one does not serve read-only arrays, empty
    ones and the types that it cannot describe: bfloat16 is one that numpy does not have built in.
    """
    if array.flags.writeable and array.size and array.dtype.isbuiltin == 1:
        address: int = _addressof(_from_buffer(array))
        return address
    return array.ctypes.data


def allocate(nbytes: int, zeroed: bool = False) -> tuple[Array, int, int]:
    """Fresh memory that holds ``nbytes`` from an aligned place on: (bytes, offset of that place, its address).

    The content is arbitrary unless ``zeroed``.

    Raises:
        MemoryError: the system refuses that many bytes.
    """
    size = nbytes + ALIGNMENT  # never 0, so that there is an address
    storage: Array = np.zeros(size, _BYTE) if zeroed else _empty(size, _BYTE)
    start: int = _addressof(_from_buffer(storage))
    offset = -start % ALIGNMENT
    return storage, offset, start + offset


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int, zeroed: bool = False) -> tuple[Array, int]:
    """A fresh aligned C-contiguous array and its address; ``nbytes`` is its size. Else as `allocate`."""
    storage, offset, address = allocate(nbytes, zeroed)
    return np.ndarray(shape, dtype, storage, offset), address


def extent_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    """The bytes of the shape with empty axes counted as 1: numpy refuses a shape whose other axes overflow, too."""
    return math.prod(size for size in shape if size) * itemsize


def align_up(nbytes: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
