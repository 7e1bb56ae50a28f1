"""Tensors in files: ``.max``, ``.npy``, ``.npz``, ``.safetensors`` and torch's ``.pt``.

Files are data: nothing in them is executed. Opening one reads where its tensors lie; large ones are mapped, so that
memory is taken for what is looked at.
"""

from __future__ import annotations

import json
import mmap
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError, HalfulpError, NotFoundError

from ..checkpoint import MAPPED_FROM, SUFFIX, read_max_checkpoint
from .torch_pickle import ForeignObjectError, TensorRecord, unpickle_tensors
from .ulps import Array

SUFFIXES = (SUFFIX, ".npy", ".npz", ".safetensors", ".pt")

_SAFETENSORS_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of a file; ``read`` gives its elements, mapped if there are many."""

    name: str
    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], Array]

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)


def read_tensors(path: str | Path) -> dict[str, Array]:
    """The tensors of a file by name; the only one of a file that gives it no name has the name "".

    A ``.pt`` may hold a tensor, or dicts and lists of them; torch need not be installed.

    Raises:
        NotFoundError: there is no such file.
        GraphError: the file is damaged or of another kind.
        GraphTypeError: it holds something else than tensors.
    """
    return {tensor.name: tensor.read() for tensor in open_tensors(path)}


def open_tensors(path: str | Path) -> list[StoredTensor]:
    """The tensors of a file in the order in which it holds them; raises as `read_tensors` does.

    A name may come twice in a damaged archive. Of ``.max``, ``.npy`` and a single ``.pt`` it is "".
    """
    path = Path(path)
    if path.suffix not in _OPENERS:
        raise GraphError(f"'{path}' must be a file of tensors: its name must end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise NotFoundError(f"there is no file '{path}'")
    try:
        return list(_OPENERS[path.suffix](path))
    except HalfulpError:
        raise
    except ForeignObjectError as error:
        raise GraphTypeError(
            f"'{path}' holds more than tensors, which is not read: {error}; save tensors alone"
        ) from None
    except (OSError, ValueError, EOFError, RuntimeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphError(f"'{path}' cannot be read as {path.suffix}: {reason}") from None


def _open_max(path: Path) -> Iterator[StoredTensor]:
    array = read_max_checkpoint(path).array
    yield StoredTensor("", path, array.shape, array.dtype, lambda: read_max_checkpoint(path).array)


def _open_npy(path: Path) -> Iterator[StoredTensor]:
    """By what the file holds; numpy does not look at its name either."""
    if zipfile.is_zipfile(path):
        yield from _open_npz(path)
        return
    with path.open("rb") as file:
        shape, dtype, order, start = _npy_header(file)
    if prod(shape) * dtype.itemsize != path.stat().st_size - start:
        raise ValueError("it does not have the size that its header says")
    yield StoredTensor("", path, shape, dtype, partial(_mapped, path, start, shape, dtype, order))


def _open_npz(path: Path) -> Iterator[StoredTensor]:
    if not zipfile.is_zipfile(path):
        yield from _open_npy(path)
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                shape, dtype, order, start = _npy_header(file)
            if prod(shape) * dtype.itemsize != member.file_size - start:
                raise ValueError(f"{member.filename} does not have the size that its header says")
            if member.compress_type == zipfile.ZIP_STORED:
                read = partial(_mapped, path, _member_offset(path, member) + start, shape, dtype, order)
            else:
                _check_packed(archive, member)
                read = partial(_unpacked, path, member)
            yield StoredTensor(member.filename.removesuffix(".npy"), path, shape, dtype, read)


def _npy_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any], Any, int]:
    """Shape, element type, order in memory ("C" or "F"), and where the data begin."""
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, in_columns, dtype = reader(file)
    except (SyntaxError, tokenize.TokenError) as error:  # the header is a Python literal
        raise ValueError(f"its header is damaged: {error}") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"a tensor cannot have shape {shape}")
    return shape, _element_type(dtype), "F" if in_columns else "C", file.tell()


def _check_packed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Unpack it once, to know that it can be; its checksum is compared at the end."""
    with archive.open(member) as file:
        while file.read(MAPPED_FROM):
            pass


def _unpacked(path: Path, member: zipfile.ZipInfo) -> Array:
    with zipfile.ZipFile(path) as archive, archive.open(member) as file:
        array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        return array.view(_element_type(array.dtype))


def _open_safetensors(path: Path) -> Iterator[StoredTensor]:
    """Eight bytes with the length of a header in JSON, the header, the data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError("it is shorter than its header")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (start, end) = (
                _dtype(_SAFETENSORS_TYPES[entry["dtype"]]),
                entry["shape"],
                entry["data_offsets"],
            )
            fits = 0 <= start <= end <= size - 8 - length and end - start == prod(shape) * dtype.itemsize
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"the header says of '{name}' {entry!r}") from None
        if not fits or not all(type(number) is int and number >= 0 for number in (start, end, *shape)):
            raise ValueError(f"the data of '{name}' do not lie where the header says")
        shape = tuple(shape)
        yield StoredTensor(name, path, shape, dtype, partial(_mapped, path, 8 + length + start, shape, dtype))


def _open_pt(path: Path) -> Iterator[StoredTensor]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not the archive that torch writes since version 1.6; save it again with torch.save")
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        pickles = [name for name in members if name.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise ValueError("it has no data.pkl as torch.save writes it")
        folder = pickles[0].removesuffix("data.pkl")
        order = folder + "byteorder"
        if order in members and archive.read(order) != b"little":
            raise ValueError("its bytes are in big-endian order")
        found = unpickle_tensors(archive.read(pickles[0]))
    for name, record in _named(found, "", path):
        member = members[f"{folder}data/{record.storage.key}"]
        yield _torch_tensor(name, path, record, member)


def _named(found: Any, name: str, path: Path) -> Iterator[tuple[str, TensorRecord]]:
    """The tensors of nested containers, names joined by points; an item of a list has its number."""
    if isinstance(found, TensorRecord):
        yield name, found
    elif isinstance(found, Mapping | list | tuple) and len(found):
        items = found.items() if isinstance(found, Mapping) else enumerate(found)
        for key, value in items:
            yield from _named(value, f"{name}.{key}" if name else str(key), path)
    else:
        where = f"; '{name}' is {found!r}" if name else ""
        raise GraphTypeError(f"'{path}' must hold a tensor, or a dict or list of tensors{where}; save them so")


def _torch_tensor(name: str, path: Path, record: TensorRecord, member: zipfile.ZipInfo) -> StoredTensor:
    dtype = _dtype(record.dtype)
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("its data are compressed, which torch.save does not do")
    extent = 1 + sum((size - 1) * stride for size, stride in zip(record.shape, record.strides, strict=True))
    if prod(record.shape) and (record.offset + extent) * dtype.itemsize > member.file_size:
        raise ValueError(f"a tensor of shape {record.shape} lies partly outside of its data")

    start = _member_offset(path, member) + record.offset * dtype.itemsize

    def read() -> Array:
        if not prod(record.shape):
            return np.zeros(record.shape, dtype)
        strides = tuple(stride * dtype.itemsize for stride in record.strides)
        return _view(path, start, extent * dtype.itemsize, record.shape, dtype, strides=strides)

    return StoredTensor(name, path, record.shape, dtype, read)


def _member_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Where the data of a member begin: behind its own header, whose length the directory does not tell."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(30)
    start = (
        member.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    )
    if member.flag_bits & 1 or start + member.file_size > path.stat().st_size:
        raise ValueError(f"{member.filename} is encrypted or cut short")
    return start


def _mapped(path: Path, start: int, shape: tuple[int, ...], dtype: np.dtype[Any], order: Any = "C") -> Array:
    """Elements of a file that lie without gaps from byte ``start`` on."""
    return _view(path, start, prod(shape) * dtype.itemsize, shape, dtype, order=order)


def _view(path: Path, start: int, needed: int, shape: tuple[int, ...], dtype: np.dtype[Any], **layout: Any) -> Array:
    """A view of ``needed`` bytes of a file, read if they are few and mapped if they are many."""
    if start + needed > path.stat().st_size:
        raise GraphError(f"'{path}' is cut short: its data would end at byte {start + needed}")
    with path.open("rb") as file:
        if needed < MAPPED_FROM:
            file.seek(start)
            content: bytes | mmap.mmap = file.read(needed)
            start = 0
        else:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.ndarray(shape, dtype, content, start, **layout)


def _element_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of what numpy stored; of bfloat16, which it does not know, it writes only that there are two bytes."""
    if dtype == np.dtype("V2"):
        return _dtype("bfloat16")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"element type {dtype} is not one of bool, integers and floats of up to 64 bits")
    return dtype


@cache
def _dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


_OPENERS: dict[str, Callable[[Path], Iterator[StoredTensor]]] = {
    SUFFIX: _open_max,
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".safetensors": _open_safetensors,
    ".pt": _open_pt,
}


def from_torch(tensor: Any) -> Array:
    """A torch tensor as a numpy array; bfloat16, which numpy lacks, by its bits."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        array: Array = plain.view(torch.int16).numpy().view(DType.bfloat16.to_numpy())
        return array
    return np.asarray(plain.numpy())
