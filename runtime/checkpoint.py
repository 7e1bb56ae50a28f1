"""Tensors in files of the ``.max`` format, one in each.

All numbers are little-endian and nothing is padded::

    93 F0 9F 94 A5 2B 2B 93   magic
    u32 major = 0, u32 minor = 1
    u64 size of the metadata = 4 + len(name) + 2 + 4 * rank + 8
    u32 len(name), name in UTF-8, u8 element type, u8 rank, rank x u32 dims, u64 offset of the data
    data in C order, up to the end of the file

The format was read off files that Modular MAX wrote. A file is data: nothing in it is executed or unpickled, every
size is checked against the size of the file before it is used, and a large file is mapped, not read.
"""

from __future__ import annotations

import math
import mmap
import os
import stat
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError

from .arrays import contiguous, from_object, shape_text
from .atomic_file import write_file
from .buffer import Buffer, wrap
from .device import CPU
from .errors import CheckpointError
from .memory import MAX_BYTES, Array, aligned_array, extent_bytes

MAGIC = bytes.fromhex("93F09F94A52B2B93")
MAJOR, MINOR = 0, 1
SUFFIX = ".max"

MOST_AXES = 64
"""numpy's own limit."""

MAPPED_FROM = 1 << 20
"""Bytes from which a file is mapped. Smaller ones are read: that is quicker, and needs no mapping for each."""

_PREFIX = struct.Struct("<8sIIQ")
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_FIXED_METADATA = _U32.size + 2 + _U64.size

_CODES = {
    "bool": 1, "float8_e4m3fn": 75, "float8_e4m3fnuz": 76, "float8_e5m2": 77, "float8_e5m2fnuz": 78, "float16": 79,
    "bfloat16": 80, "float32": 81, "float64": 82, "uint8": 134, "int8": 135, "uint16": 136, "int16": 137,
    "uint32": 138, "int32": 139, "uint64": 140, "int64": 141,
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}


@dataclass(frozen=True)
class Checkpoint:
    """The content of a file: a tensor and its name. The array may be unaligned, where it is mapped."""

    name: str
    array: Array


def save_max_buffer(path: str | os.PathLike[str], buffer: Any, name: str) -> None:
    """Write a tensor to a ``.max`` file, under another name first, so that nobody sees half of it.

    Args:
        path: the file; one that exists is replaced.
        buffer: a `Buffer` on any device or a numpy array, of any shape; as an array also of the four float8 types of
            ml_dtypes that the format knows.
        name: the name of the tensor inside the file, any text.

    Raises:
        GraphTypeError: ``buffer`` is no array, its element type has no code in the format, or ``name`` is no str.
        GraphError: the format cannot hold it: a size of 2**32 or more, or a name that is no Unicode text.
        OSError: the file cannot be written; the error names it.
    """
    subject = "the buffer given to save_max_buffer()"
    host = buffer.to(CPU()).to_numpy() if isinstance(buffer, Buffer) else from_object(buffer, subject)
    array = contiguous(host)
    write_file(Path(path), [max_header(array, name), array])


def load_max_buffer(path: str | os.PathLike[str]) -> Buffer:
    """The tensor of a ``.max`` file, with its exact type, shape and bits.

    A file of 1 MiB or more is mapped: memory is taken for what is looked at, and what is written to the buffer never
    reaches the file. Do not truncate the file or write into it while the buffer lives; replacing it by another one, as
    `save_max_buffer` does, is safe.

    Raises:
        CheckpointError: the file is no ``.max`` file, is damaged, or has an element type that buffers do not have
            (float8; `read_max_checkpoint` reads those).
        OSError: it cannot be read.
    """
    checkpoint = read_max_checkpoint(path)
    array = checkpoint.array
    try:
        dtype = DType.from_numpy(array.dtype)
    except GraphTypeError:
        reason = f"buffers have no element type {array.dtype}; use read_max_checkpoint()"
        raise CheckpointError(path, _type_offset(checkpoint.name), reason) from None
    return wrap(array, dtype, CPU())


def read_max_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The name and the array of a ``.max`` file; else as `load_max_buffer`, float8 included."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(path, 0, "this is no regular file")
        if status.st_size < MAPPED_FROM:
            content: bytes | mmap.mmap = file.read(status.st_size + 1)  # one more: it may have grown meanwhile
        else:
            content = mmap.mmap(file.fileno(), status.st_size, access=mmap.ACCESS_COPY)
    name, dtype, shape, start = _Header(path, content).read()
    array: Array = np.ndarray(shape, dtype, content, start)
    if isinstance(content, bytes):
        array = _aligned(array)
    if dtype == np.bool_:
        _check_bools(path, array, start)
    return Checkpoint(name, array)


def max_header(array: Array, name: str) -> bytes:
    """The bytes of a file that come before the data.

    Raises:
        GraphTypeError: the element type has no code in the format, or the name is no str.
        GraphError: a size that the format cannot hold, or a name that is no Unicode text.
    """
    if not isinstance(name, str):
        raise GraphTypeError(f"save_max_buffer: name must be a str, not {name!r}")
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise GraphError(
            f"save_max_buffer: name {name!r} holds half of a surrogate pair, which is no character"
        ) from None
    code = _CODES.get(array.dtype.name)
    if code is None:
        raise GraphTypeError(
            f"save_max_buffer: the .max format has no element type {array.dtype}; it has {', '.join(_CODES)}"
        )
    if max(array.shape, default=0) >= 2**32:
        raise GraphError(
            f"save_max_buffer: a .max file cannot hold shape {shape_text(array.shape)}: "
            "each size must be less than 2**32"
        )
    size = _FIXED_METADATA + len(encoded) + 4 * array.ndim
    dims = struct.pack(f"<{array.ndim}I", *array.shape)
    parts = [_PREFIX.pack(MAGIC, MAJOR, MINOR, size), _U32.pack(len(encoded)), encoded, bytes([code, array.ndim]), dims]
    return b"".join([*parts, _U64.pack(_PREFIX.size + size)])


class _Header:
    """Reads and checks what comes before the data; ``content`` is the whole file."""

    def __init__(self, path: str | os.PathLike[str], content: bytes | mmap.mmap) -> None:
        self.path = path
        self.content = content
        self.size = len(content)

    def read(self) -> tuple[str, np.dtype[Any], tuple[int, ...], int]:
        """Name, element type, shape, and where the data begins; they fit the size of the file exactly."""
        end = self._metadata_end()
        at = _PREFIX.size
        (length,) = _U32.unpack_from(self.content, at)
        if _FIXED_METADATA + length > end - _PREFIX.size:
            raise self._refuse(at, f"the name has {length} bytes, more than the metadata of {end - _PREFIX.size} bytes")
        at += _U32.size
        try:
            name = self.content[at : at + length].decode()
        except UnicodeDecodeError as error:
            raise self._refuse(at + error.start, "the name is not UTF-8") from None
        at += length
        dtype, shape = self._type(at), self._shape(at + 1, end)
        self._check_data(end, dtype, shape)
        return name, dtype, shape, end

    def _metadata_end(self) -> int:
        """The end of the metadata; the file goes at least as far."""
        if self.content[: len(MAGIC)] != MAGIC[: self.size]:
            raise self._refuse(0, "this is no .max file: it does not begin with 93 F0 9F 94 A5 2B 2B 93")
        if self.size < _PREFIX.size:
            raise self._refuse(self.size, f"the file ends inside its header of {_PREFIX.size} bytes")
        _, major, minor, size = _PREFIX.unpack_from(self.content)
        if major != MAJOR:
            raise self._refuse(len(MAGIC), f"format version {major}.{minor} is not known; this reads {MAJOR}.x")
        at = _PREFIX.size - _U64.size
        if size < _FIXED_METADATA:
            raise self._refuse(at, f"the metadata has {size} bytes; it needs at least {_FIXED_METADATA}")
        if _PREFIX.size + size > self.size:
            rest = self.size - _PREFIX.size
            raise self._refuse(at, f"the metadata has {size} bytes, and the file ends {rest} bytes after its header")
        return int(_PREFIX.size + size)

    def _type(self, at: int) -> np.dtype[Any]:
        code = self.content[at]
        if code not in _NAMES:
            raise self._refuse(at, f"element type {code} is not known")
        return _numpy_type(_NAMES[code])

    def _shape(self, at: int, end: int) -> tuple[int, ...]:
        rank = self.content[at]
        if rank > MOST_AXES:
            raise self._refuse(at, f"rank {rank} is more than {MOST_AXES}")
        if at + 1 + 4 * rank + _U64.size != end:
            room = end - at - 1 - _U64.size
            raise self._refuse(at, f"rank {rank} needs {4 * rank} bytes of sizes, and the metadata has {room}")
        shape: tuple[int, ...] = struct.unpack_from(f"<{rank}I", self.content, at + 1)
        return shape

    def _check_data(self, end: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        at = end - _U64.size
        (offset,) = _U64.unpack_from(self.content, at)
        if offset != end:
            raise self._refuse(at, f"the data should begin at offset {offset}, and the metadata ends at {end}")
        described = f"shape {shape_text(shape)} of {dtype.name}"
        if extent_bytes(shape, dtype.itemsize) > MAX_BYTES:
            raise self._refuse(at - 4 * len(shape), f"{described} is more than 2**63 bytes")
        needed, found = math.prod(shape) * dtype.itemsize, self.size - end
        if found != needed:
            raise self._refuse(end, f"{described} needs {needed} bytes of data, and the file has {found}")

    def _refuse(self, offset: int, reason: str) -> CheckpointError:
        return CheckpointError(self.path, offset, reason)


@cache
def _numpy_type(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def _type_offset(name: str) -> int:
    return _PREFIX.size + _U32.size + len(name.encode())


def _aligned(array: Array) -> Array:
    """A copy that native code can read in place; the offset of the data in a file may be any."""
    copy, _ = aligned_array(array.shape, array.dtype, array.nbytes)
    copy[...] = array
    return copy


def _check_bools(path: str | os.PathLike[str], array: Array, start: int) -> None:
    """A bool that is neither 0 nor 1 has no meaning, and native code would not even be consistent about it."""
    data = array.view(np.uint8).reshape(-1)
    for first in range(0, len(data), MAPPED_FROM):
        wrong = np.flatnonzero(data[first : first + MAPPED_FROM] > 1)
        if len(wrong):
            at = first + int(wrong[0])
            raise CheckpointError(path, start + at, f"a bool is {data[at]}; it must be 0 or 1")
