"""Files of the .max format: what others wrote, what we write, and damaged ones."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peak_memory import PRINT_PEAK_KIB

from halfulp import ops
from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorType, Weight
from halfulp.runtime import (
    Buffer,
    CheckpointError,
    InferenceSession,
    load_max_buffer,
    read_max_checkpoint,
    save_max_buffer,
)
from halfulp.runtime.checkpoint import MAPPED_FROM

DATA = Path(__file__).parents[1] / "conformance" / "data" / "checkpoints"
CASES = json.loads((DATA / "cases.json").read_text())
FLOAT8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz]


# --- files of others ---


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["label"]))
def test_files_of_the_reference(case: dict[str, Any], tmp_path: Path) -> None:
    path = DATA / f"{case['label']}.max"
    buffer = load_max_buffer(path)
    assert buffer.dtype.value == case["dtype"]
    assert list(buffer.shape) == case["shape"]
    assert buffer.to_numpy().tobytes().hex() == case["hex"]
    assert read_max_checkpoint(str(path)).name == case["label"]
    save_max_buffer(tmp_path / "copy.max", buffer, case["label"])
    assert (tmp_path / "copy.max").read_bytes() == path.read_bytes()


def test_all_files_of_the_reference_are_listed() -> None:
    assert sorted(case["label"] for case in CASES) == sorted(path.stem for path in DATA.glob("*.max"))


# --- files of ours ---


@pytest.mark.parametrize("dtype", [*(dtype.to_numpy() for dtype in DType), *map(np.dtype, FLOAT8)], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (1, 2, 1, 3, 2), (1,) * 64], ids=str)
def test_types_and_shapes(dtype: np.dtype[Any], shape: tuple[int, ...], tmp_path: Path) -> None:
    size = int(np.prod(shape)) * dtype.itemsize
    array = (np.arange(size) * 7 % (2 if dtype == np.bool_ else 256)).astype(np.uint8).view(dtype).reshape(shape)
    save_max_buffer(tmp_path / "t.max", array, "t")
    read = read_max_checkpoint(tmp_path / "t.max")
    assert (read.name, read.array.dtype, read.array.shape) == ("t", dtype, shape)
    assert read.array.tobytes() == array.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["t.max"]


@settings(max_examples=50)
@given(name=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_name(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("names") / "t.max"
    save_max_buffer(path, np.array([1.5], np.float32), name)
    assert read_max_checkpoint(path).name == name


def test_views_are_written_in_row_major_order(tmp_path: Path) -> None:
    array = np.arange(24, dtype=">i4").reshape(4, 6)[::2, 1::2].T
    save_max_buffer(tmp_path / "t.max", array, "t")
    assert np.array_equal(load_max_buffer(tmp_path / "t.max"), array)


def test_a_file_that_exists_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.max"
    save_max_buffer(path, np.zeros(1000, np.float32), "long")
    before = load_max_buffer(path)
    save_max_buffer(path, Buffer(DType.int8, [2]), "short")
    assert load_max_buffer(path).shape == (2,)
    assert before.shape == (1000,)


# --- mapped files ---


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that is mapped. Its data begins at an odd offset, as most do."""
    path = tmp_path / "large.max"
    save_max_buffer(path, np.arange(MAPPED_FROM // 4, dtype=np.float32), "x")
    return path


def test_a_mapped_buffer_is_an_input_and_a_weight(large: Path) -> None:
    buffer = load_max_buffer(large)
    assert not buffer.to_numpy().flags.aligned
    n = buffer.num_elements
    graph = Graph("g", lambda x: ops.add(x, Weight("w", DType.float32, [n])), [TensorType(DType.float32, [n])])
    model = InferenceSession().load(graph, weights_registry={"w": buffer})
    (y,) = model.execute(buffer)
    assert np.array_equal(y, 2 * np.arange(n, dtype=np.float32))


def test_writing_to_a_mapped_buffer_leaves_the_file(large: Path) -> None:
    before = large.read_bytes()
    buffer = load_max_buffer(large)
    buffer.to_numpy()[:] = 7
    assert buffer.to_numpy()[-1] == 7
    assert large.read_bytes() == before


def test_a_mapped_buffer_outlives_its_file(large: Path) -> None:
    buffer = load_max_buffer(large)
    save_max_buffer(large, np.array([1], np.float32), "x")
    large.unlink()
    assert buffer.to_numpy()[-1] == MAPPED_FROM // 4 - 1


def test_a_file_of_2_gib_takes_little_memory(tmp_path: Path) -> None:
    """Opened, looked at in two places and written again as a part; a sparse file takes no disk either."""
    path = tmp_path / "huge.max"
    save_max_buffer(path, np.empty((0, 2**28), np.float64), "huge")
    head = bytearray(path.read_bytes())
    struct.pack_into("<I", head, 24 + 4 + 4 + 2, 1)
    path.write_bytes(head)
    os.truncate(path, len(head) + 2**31)
    program = (
        "import sys; from halfulp.runtime import load_max_buffer\n"
        "b = load_max_buffer(sys.argv[1]); a = b.to_numpy(); print(a.shape, a[0, 0], a[0, -1])\n" + PRINT_PEAK_KIB
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    shown, kilobytes = done.stdout.splitlines()
    assert shown == "(1, 268435456) 0.0 0.0"
    assert int(kilobytes) < 300_000


# --- damaged files ---

NAME = b"ab"
GOOD_AXES = struct.pack("<2I", 2, 3)


def file_of(
    magic: bytes = bytes.fromhex("93F09F94A52B2B93"),
    version: tuple[int, int] = (0, 1),
    metadata: int = 4 + 2 + 2 + 8 + 8,
    name_size: int = 2,
    name: bytes = NAME,
    code: int = 81,
    rank: int = 2,
    axes: bytes = GOOD_AXES,
    offset: int = 48,
    data: bytes = bytes(24),
) -> bytes:
    """A good file of f32 [2, 3], unless told otherwise."""
    head = magic + struct.pack("<IIQI", *version, metadata, name_size) + name + bytes([code, rank])
    return head + axes + struct.pack("<Q", offset) + data


def test_the_file_that_is_going_to_be_damaged_is_good(tmp_path: Path) -> None:
    (tmp_path / "t.max").write_bytes(file_of())
    assert load_max_buffer(tmp_path / "t.max").shape == (2, 3)


DAMAGED = [
    ("empty", b"", 0, "the file ends inside its header of 24 bytes"),
    ("short magic", file_of()[:5], 5, "the file ends inside its header of 24 bytes"),
    ("short header", file_of()[:23], 23, "the file ends inside its header of 24 bytes"),
    ("other format", b"PK\x03\x04" + bytes(60), 0,
     "this is no .max file: it does not begin with 93 F0 9F 94 A5 2B 2B 93"),
    ("pickle", b"\x80\x04.", 0, "this is no .max file: it does not begin with 93 F0 9F 94 A5 2B 2B 93"),
    ("future version", file_of(version=(1, 0)), 8, "format version 1.0 is not known; this reads 0.x"),
    ("no metadata", file_of(metadata=0), 16, "the metadata has 0 bytes; it needs at least 14"),
    ("truncated metadata", file_of()[:40], 16,
     "the metadata has 24 bytes, and the file ends 16 bytes after its header"),
    ("absurd metadata", file_of(metadata=2**64 - 1), 16,
     "the metadata has 18446744073709551615 bytes, and the file ends 48 bytes after its header"),
    ("absurd name", file_of(name_size=2**32 - 1), 24,
     "the name has 4294967295 bytes, more than the metadata of 24 bytes"),
    ("no text", file_of(name=b"a\xff"), 29, "the name is not UTF-8"),
    ("unknown type", file_of(code=83), 30, "element type 83 is not known"),
    ("absurd rank", file_of(rank=255), 31, "rank 255 is more than 64"),
    ("rank too small", file_of(rank=1), 31, "rank 1 needs 4 bytes of sizes, and the metadata has 8"),
    ("rank too large", file_of(rank=3), 31, "rank 3 needs 12 bytes of sizes, and the metadata has 8"),
    ("metadata too large", file_of(metadata=28), 31, "rank 2 needs 8 bytes of sizes, and the metadata has 12"),
    ("offset", file_of(offset=50), 40, "the data should begin at offset 50, and the metadata ends at 48"),
    ("absurd offset", file_of(offset=2**63), 40,
     "the data should begin at offset 9223372036854775808, and the metadata ends at 48"),
    ("absurd sizes", file_of(axes=b"\xff" * 8), 32,
     "shape [4294967295, 4294967295] of float32 is more than 2**63 bytes"),
    ("absurd sizes of nothing", file_of(rank=3, metadata=28, offset=52, axes=bytes(4) + b"\xff" * 8, data=b""), 32,
     "shape [0, 4294967295, 4294967295] of float32 is more than 2**63 bytes"),
    ("large sizes", file_of(axes=struct.pack("<2I", 2**31, 3)), 48,
     "shape [2147483648, 3] of float32 needs 25769803776 bytes of data, and the file has 24"),
    ("truncated data", file_of()[:-1], 48, "shape [2, 3] of float32 needs 24 bytes of data, and the file has 23"),
    ("no data", file_of()[:48], 48, "shape [2, 3] of float32 needs 24 bytes of data, and the file has 0"),
    ("trailing bytes", file_of() + b"\n", 48, "shape [2, 3] of float32 needs 24 bytes of data, and the file has 25"),
    ("half bool", file_of(code=1, data=b"\x00\x01\x00\x01\x02\x01"), 52, "a bool is 2; it must be 0 or 1"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "offset", "reason"), [case[1:] for case in DAMAGED], ids=[c[0] for c in DAMAGED])
def test_damaged(content: bytes, offset: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "t.max"
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        load_max_buffer(path)
    assert str(caught.value) == f"checkpoint {str(path)!r}: at byte {offset}: {reason}"
    assert (caught.value.path, caught.value.offset, caught.value.reason) == (str(path), offset, reason)


def test_the_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(CheckpointError("t.max", 48, "why")))
    assert (str(error), error.path, error.offset) == ("checkpoint 't.max': at byte 48: why", "t.max", 48)


def test_a_large_file_is_checked_as_a_small_one_is(large: Path) -> None:
    os.truncate(large, large.stat().st_size - 4)
    with pytest.raises(CheckpointError, match=r"needs 1048576 bytes of data, and the file has 1048572$"):
        load_max_buffer(large)


@settings(max_examples=300)
@given(changes=st.lists(st.tuples(st.integers(0, 71), st.integers(0, 255)), max_size=3), length=st.integers(0, 72))
def test_any_damage_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(file_of())
    for at, byte in changes:
        content[at] = byte
    path = tmp_path_factory.mktemp("damaged") / "t.max"
    path.write_bytes(content[:length])
    with contextlib.suppress(CheckpointError):
        assert read_max_checkpoint(path).array.nbytes <= length


def test_nothing_is_allocated_for_absurd_sizes(tmp_path: Path) -> None:
    path = tmp_path / "t.max"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for axes in (struct.pack("<2I", 2**31, 3), struct.pack("<2I", 2**32 - 1, 2**29)):
        path.write_bytes(file_of(axes=axes))
        with pytest.raises(CheckpointError):
            load_max_buffer(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_folders_pipes_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        load_max_buffer(tmp_path)
    with pytest.raises(FileNotFoundError, match="missing"):
        load_max_buffer(tmp_path / "missing.max")
    with pytest.raises(CheckpointError) as caught:
        load_max_buffer("/dev/null")
    assert str(caught.value) == "checkpoint '/dev/null': at byte 0: this is no regular file"


def test_float8_is_for_read_max_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "t.max"
    save_max_buffer(path, np.zeros(3, ml_dtypes.float8_e5m2), "f8")
    with pytest.raises(CheckpointError) as caught:
        load_max_buffer(path)
    assert str(caught.value) == (
        f"checkpoint {str(path)!r}: at byte 30: buffers have no element type float8_e5m2; use read_max_checkpoint()"
    )


# --- what cannot be written ---


@pytest.mark.parametrize(
    ("value", "name", "error", "text"),
    [
        ([1.0], "x", GraphTypeError, "the buffer given to save_max_buffer() must be a Buffer or an array, not list; "
         "make one with np.asarray(x, dtype=...)"),
        (np.zeros(1, np.complex64), "x", GraphTypeError, "save_max_buffer: the .max format has no element type "
         "complex64; it has bool, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float16, bfloat16, "
         "float32, float64, uint8, int8, uint16, int16, uint32, int32, uint64, int64"),
        (np.zeros(1), 3, GraphTypeError, "save_max_buffer: name must be a str, not 3"),
        (np.zeros(1), "a\udc80", GraphError, "save_max_buffer: name 'a\\udc80' holds half of a surrogate pair, which "
         "is no character"),
        (np.zeros((0, 2**32)), "x", GraphError, "save_max_buffer: a .max file cannot hold shape [0, 4294967296]: each "
         "size must be less than 2**32"),
    ],
)  # fmt: skip
def test_what_the_format_cannot_hold(value: Any, name: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    with pytest.raises(error) as caught:
        save_max_buffer(tmp_path / "t.max", value, name)
    assert str(caught.value) == text
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_and_a_missing_folder_are_said_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "t.max"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            save_max_buffer(path, np.zeros(1000), "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == f"[Errno 27] File too large: {str(path)!r}"
    assert list(tmp_path.iterdir()) == []
    missing = tmp_path / "missing" / "t.max"
    with pytest.raises(FileNotFoundError) as absent:
        save_max_buffer(missing, np.zeros(1), "x")
    assert str(absent.value) == f"[Errno 2] No such file or directory: {str(missing)!r}"
