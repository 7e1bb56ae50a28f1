"""Where printed tensors go under the binary styles: one file for each, none of them ever replaced.

A file has the name of the label, as far as that can be a file's name. Where the name is taken, by an earlier print or
by anything else, the next number stands behind it: ``x``, ``x(2)``, ``x(3)``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from .atomic_file import Content, write_file

LONGEST_NAME = 255
"""Bytes that a file's name may have on the usual file systems."""

_ROOM_FOR_NUMBER = len("(9999999999)")

_SEPARATORS = str.maketrans({" ": "_", "/": "_", "\\": "_"})


def file_stem(label: str, suffix: str) -> str:
    """The label as a file's name: spaces, slashes, backslashes and what cannot be printed become ``_``.

    A name that is too long is cut, and a hash of the whole label takes the place of the rest. Different labels may
    still get one name; their files then get numbers.

    >>> file_stem("layer 0/attention", ".max")
    'layer_0_attention'
    """
    stem = "".join(c if c.isprintable() else "_" for c in label.translate(_SEPARATORS))
    if stem in ("", ".", ".."):
        stem = "_" * max(len(stem), 1)
    room = LONGEST_NAME - len(suffix) - _ROOM_FOR_NUMBER
    encoded = stem.encode()
    if len(encoded) <= room:
        return stem
    mark = f"~{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return encoded[: room - len(mark)].decode(errors="ignore") + mark


class PrintFolder:
    """A folder that printed tensors are written to; it is made when the first one is.

    Several threads, and other processes, may write to it at the same time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: dict[str, int] = {}  # by stem: the number that the next file will try
        self._own: set[str] = set()
        self._has_warned = False

    def write(
        self, label: str, suffix: str, contents: list[Content], progress: Callable[[int], None] | None = None
    ) -> Path:
        """Write a file of that label; gives its path.

        Raises:
            OSError: the folder cannot be made or the file not be written; the error names it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        stem = file_stem(label, suffix)
        key = stem + suffix
        # Whoever empties the folder between two executions starts again with the name itself.
        first = self._numbers.get(key, 1) if os.path.lexists(self.path / key) else 1
        for number in itertools.count(first):
            name = key if number == 1 else f"{stem}({number}){suffix}"
            path = self.path / name
            if os.path.lexists(path):  # looked at before anything large is written
                self._warn(name)
                continue
            self._own.add(name)
            try:
                write_file(path, contents, replace=False, progress=progress)
            except FileExistsError:
                continue  # another thread or process was faster
            self._numbers[key] = number + 1
            return path
        raise AssertionError("there is always another number")

    def _warn(self, name: str) -> None:
        """Files of an earlier run are kept, and are easily mistaken for those of this one."""
        if name in self._own or self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"{str(self.path / name)!r} exists and is kept, so what is printed now gets another number; choose an "
            "empty output_directory to have the files of one run only",
            stacklevel=2,
        )


def new_folder(parent: Path) -> Path:
    """A new folder of ``parent``, named by the lowest number that is above all others there; the first one is 0.

    Raises:
        OSError: it cannot be made; the error names it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with os.scandir(parent) as entries:
        numbers = [int(entry.name) for entry in entries if entry.name.isascii() and entry.name.isdigit()]
    for number in itertools.count(max(numbers, default=-1) + 1):
        path = parent / str(number)
        try:
            path.mkdir()
        except FileExistsError:
            continue  # another thread or process was faster
        return path
    raise AssertionError("there is always another number")
