"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.runtime.atomic_file import write_file


def test_pieces_follow_one_another(tmp_path: Path) -> None:
    array = np.array([1, 2], ml_dtypes.bfloat16)
    write_file(tmp_path / "f", [b"ab", memoryview(b"cd"), array, np.zeros((0, 3)), b""])
    assert (tmp_path / "f").read_bytes() == b"abcd" + array.tobytes()
    write_file(tmp_path / "f", [b"new"])
    assert (tmp_path / "f").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


def no_links(source: object, target: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted", str(source), None, str(target))


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_must_not_be_replaced(has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "f"
    write_file(path, [b"first"], replace=False)
    with pytest.raises(FileExistsError) as caught:
        write_file(path, [b"second"], replace=False)
    assert str(caught.value) == f"[Errno 17] File exists: {str(path)!r}"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["f"]


def test_nothing_is_left_of_a_write_that_is_broken_off(tmp_path: Path) -> None:
    def contents() -> Iterator[bytes]:
        yield b"part"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "f", contents())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("missing/f", FileNotFoundError, "[Errno 2] No such file or directory"),
        ("folder", IsADirectoryError, "[Errno 21] Is a directory"),
        ("x" * 300, OSError, "[Errno 36] File name too long"),
    ],
)
def test_errors_name_the_file(name: str, error: type[Exception], text: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(error) as caught:
        write_file(tmp_path / name, [b"x"])
    assert str(caught.value) == f"{text}: {str(tmp_path / name)!r}"
    assert os.listdir(tmp_path) == ["folder"]


def test_progress(tmp_path: Path) -> None:
    seen: list[int] = []
    array: Any = np.zeros(40 << 20, np.uint8)
    write_file(tmp_path / "f", [b"head", array], progress=seen.append)
    assert seen == [4, 4 + (16 << 20), 4 + (32 << 20), 4 + (40 << 20)]
