"""Files of tensors: every format is read exactly and lazily, and what holds anything else is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from torch_archive import write_archive, write_pt

from halfulp.compiler import GraphError, GraphTypeError, HalfulpError, NotFoundError
from halfulp.runtime import save_max_buffer
from halfulp.runtime.debug.tensor_files import open_tensors, read_tensors
from halfulp.runtime.debug.torch_pickle import ForeignObjectError, unpickle_tensors

Array = np.ndarray[Any, Any]

EXAMPLES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array([2**63 - 1, -(2**63)]),
    np.array(True),
    np.zeros((0, 3), np.float64),
    np.array([1.5, np.nan], ml_dtypes.bfloat16),
    np.arange(6, dtype=np.int16).reshape(2, 3).T,
]


def write_safetensors(path: Path, arrays: dict[str, Array]) -> None:
    names = {"float32": "F32", "float64": "F64", "int64": "I64", "int16": "I16", "bool": "BOOL", "bfloat16": "BF16"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        header[name] = {
            "dtype": names[array.dtype.name], "shape": array.shape, "data_offsets": [len(data), end]
        }  # fmt: skip
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def same(found: Array, wanted: Array) -> bool:
    return found.shape == wanted.shape and found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("array", EXAMPLES, ids=lambda array: f"{array.dtype.name}-{array.shape}")
def test_every_format_is_read_exactly(tmp_path: Path, array: Array) -> None:
    save_max_buffer(tmp_path / "a.max", array, "x")
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array)
    np.savez_compressed(tmp_path / "b.npz", x=array)
    write_safetensors(tmp_path / "a.safetensors", {"x": array})
    write_pt(tmp_path / "a.pt", array)
    for name in ("a.max", "a.npy", "a.npz", "b.npz", "a.safetensors", "a.pt"):
        (tensor,) = open_tensors(tmp_path / name)
        assert tensor.name == ("x" if "z" in name or "safe" in name else "")
        assert tensor.shape == array.shape
        assert tensor.dtype == array.dtype
        assert same(tensor.read(), array), name


def test_large_tensors_are_mapped(tmp_path: Path) -> None:
    array = np.arange(1 << 18, dtype=np.float64)
    save_max_buffer(tmp_path / "a.max", array, "x")
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array)
    write_safetensors(tmp_path / "a.safetensors", {"x": array})
    write_pt(tmp_path / "a.pt", array)
    for name in ("a.max", "a.npy", "a.npz", "a.safetensors", "a.pt"):
        (found,) = read_tensors(tmp_path / name).values()
        owner: Any = found
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner
        assert type(owner).__name__ == "mmap", name
        assert same(found, array)


def test_pt_of_views_and_containers(tmp_path: Path) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    content = {"a": whole[1:3, 2:], "b": [whole.T, (np.array(2.0),)]}
    found = read_tensors(write_pt(tmp_path / "x.pt", content))
    assert list(found) == ["a", "b.0", "b.1.0"]
    assert found["a"].tolist() == whole[1:3, 2:].tolist()
    assert found["b.0"].tolist() == whole.T.tolist()
    assert found["b.1.0"].shape == ()


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (b"cos\nsystem\n(X\x04\x00\x00\x00exittR", "os.system, at byte 2"),
        (b"\x8c\x02os\x8c\x06system\x93(X\x04\x00\x00\x00exittR", "os.system, at byte 14"),
        (b"cbuiltins\neval\n(X\x01\x00\x00\x001tR", "builtins.eval, at byte 2"),
        (b"(X\x01\x00\x00\x001ios\nsystem\n", "the opcode INST, at byte 9"),
        (b")\x81", "the opcode NEWOBJ, at byte 3"),
        (b"X\x01\x00\x00\x001}b", "an object with a state of its own, at byte 9"),
    ],
)
def test_pt_that_holds_code_is_refused_and_not_run(tmp_path: Path, code: bytes, what: str) -> None:
    path = write_pt(tmp_path / "x.pt", {"a": np.ones(2), "b": code})
    with pytest.raises(GraphTypeError) as refused:
        read_tensors(path)
    assert str(refused.value).startswith(f"'{path}' holds more than tensors, which is not read: ")
    with pytest.raises(ForeignObjectError) as foreign:
        unpickle_tensors(b"\x80\x02" + code + b".")
    assert str(foreign.value) == what


def test_pt_of_other_things(tmp_path: Path) -> None:
    path = write_pt(tmp_path / "x.pt", {"step": b"K\x03"})
    with pytest.raises(GraphTypeError) as refused:
        read_tensors(path)
    text = f"'{path}' must hold a tensor, or a dict or list of tensors; 'step' is 3; save them so"
    assert str(refused.value) == text
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    with pytest.raises(GraphError, match=r"is not the archive that torch writes since version 1\.6"):
        read_tensors(tmp_path / "old.pt")


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02t.",
        b"\x80\x02h\x05.",
        b"\x80\x02.",
        b"\x80\x02}(K\x01u.",
        b"\x80\x02]K\x01.",
        b"\xff",
    ],
)
def test_damaged_pickles_are_refused(tmp_path: Path, pickled: bytes) -> None:
    write_archive(tmp_path / "x.pt", pickled, [])
    with pytest.raises(HalfulpError):
        read_tensors(tmp_path / "x.pt")


def test_pt_that_contains_itself_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "x.pt", b"\x80\x02]q\x00h\x00a.", [])
    with pytest.raises(GraphError, match="recursion"):
        read_tensors(tmp_path / "x.pt")


def test_pt_whose_tensors_leave_their_storage(tmp_path: Path) -> None:
    path = write_pt(tmp_path / "x.pt", np.ones((4, 4), np.float32))
    with zipfile.ZipFile(path) as archive:
        pickled = archive.read("x/data.pkl")
    write_archive(tmp_path / "x.pt", pickled, [b"\0" * 60])
    with pytest.raises(GraphError) as refused:
        read_tensors(path)
    text = f"'{path}' cannot be read as .pt: a tensor of shape (4, 4) lies partly outside of its data"
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 12]}, "do not lie where the header says"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "do not lie where the header says"),
        ({"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}, "do not lie where the header says"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0.0, 8.0]}, "do not lie where the header says"),
        ({"dtype": "F4", "shape": [2], "data_offsets": [0, 8]}, "the header says of 'x'"),
        ({"shape": "no"}, "the header says of 'x'"),
        (3, "the header says of 'x' 3"),
    ],
)
def test_damaged_safetensors(tmp_path: Path, entry: object, reason: str) -> None:
    text = json.dumps({"x": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 8)
    with pytest.raises(GraphError, match=reason):
        read_tensors(tmp_path / "x.safetensors")


def test_other_damaged_files(tmp_path: Path) -> None:
    for name in ("a.npy", "a.npz", "a.pt", "a.safetensors", "a.max"):
        for content in (b"", b"nothing", b"\xff" * 16, b"\x93NUMPY\x01\x00\x04\x00{}\n\n"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(HalfulpError):
                read_tensors(tmp_path / name)
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(GraphError, match="cannot be read as"):
        read_tensors(tmp_path / "a.npy")
    for header in (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -2)}",
        b"{'descr': '<f4'",
        b"{'shape': (\n",
    ):
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 8)
        with pytest.raises(GraphError, match="cannot be read as"):
            read_tensors(tmp_path / "a.npy")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}"  # 4 TiB
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 8)
    with pytest.raises(GraphError, match="it does not have the size that its header says"):
        read_tensors(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.array([1j]))
    with pytest.raises(GraphError, match="element type complex128 is not one of bool, integers and floats"):
        read_tensors(tmp_path / "a.npy")
    with pytest.raises(NotFoundError):
        read_tensors(tmp_path / "none.npy")
    with pytest.raises(GraphError, match=r"its name must end in \.max, \.npy, \.npz, \.safetensors, \.pt"):
        read_tensors(tmp_path / "x.bin")
