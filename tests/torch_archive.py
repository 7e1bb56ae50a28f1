"""Writes ``.pt`` files as ``torch.save`` does, without torch."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

STORAGES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage",
    "uint8": "ByteStorage", "bool": "BoolStorage",
}  # fmt: skip


def write_pt(path: Path, content: Any) -> Path:
    """Arrays, and dicts, lists and tuples of them; bytes stand for themselves in the pickle."""
    storages: list[bytes] = []
    pickled = b"\x80\x02" + _pickled(content, storages) + b"."
    write_archive(path, pickled, storages)
    return path


def write_archive(path: Path, pickled: bytes, storages: list[bytes]) -> None:
    """An archive around a pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", pickled)
        archive.writestr(f"{path.stem}/byteorder", "little")
        for key, data in enumerate(storages):
            archive.writestr(f"{path.stem}/data/{key}", data)
        archive.writestr(f"{path.stem}/version", "3\n")


def _pickled(content: Any, storages: list[bytes]) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, np.ndarray):
        return _tensor(content, storages)
    if isinstance(content, Mapping):
        items = b"".join(_text(name) + _pickled(value, storages) for name, value in content.items())
        return b"}(" + items + b"u"
    items = b"".join(_pickled(value, storages) for value in content)
    return b"(" + items + b"t" if isinstance(content, tuple) else b"](" + items + b"e"


def _tensor(array: np.ndarray[Any, Any], storages: list[bytes]) -> bytes:
    """A view of a storage of its own; strides as the array has them, where they are not negative."""
    owner = array if array.base is None or not isinstance(array.base, np.ndarray) else array.base
    offset = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // array.itemsize
    strides = [stride // array.itemsize for stride in array.strides]
    storage = STORAGES[array.dtype.name]
    key = str(len(storages))
    storages.append(np.ascontiguousarray(owner).tobytes() if owner.flags.c_contiguous else owner.T.tobytes())
    reference = b"(" + _text("storage") + f"ctorch\n{storage}\n".encode() + _text(key) + _text("cpu")
    reference += _number(owner.size) + b"tQ"
    sizes = b"".join(b"(" + b"".join(map(_number, each)) + b"t" for each in (array.shape, strides))
    hooks = b"ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + reference + _number(offset) + sizes + b"\x89" + hooks + b"tR"


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _number(number: int) -> bytes:
    return b"J" + struct.pack("<i", number)
