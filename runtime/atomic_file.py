"""Files that appear whole or not at all.

Everything is written under another name in the same folder, which then becomes the file's name. Every failure is an
OSError that names the file; those of ``write`` and ``close``, a full disk for instance, do not by themselves.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from .memory import Array

Content: TypeAlias = "bytes | memoryview | Array"

_PIECE = 16 << 20
"""Bytes between two calls of ``progress``."""

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a file system without hard links says."""


def write_file(
    path: Path, contents: Iterable[Content], replace: bool = True, progress: Callable[[int], None] | None = None
) -> None:
    """Write a file, all at once for whoever looks at it.

    Args:
        path: where; the folder must exist.
        contents: pieces that follow one another; arrays must be C-contiguous.
        replace: whether a file of that name is replaced.
        progress: called with the bytes written so far, after every 16 MiB.

    Raises:
        FileExistsError: there is such a file, and it is not to be replaced.
        OSError: the file cannot be written. Nothing of it is left.
    """
    unfinished = path.with_name(f".{secrets.token_hex(8)}.tmp")  # short: the name itself may have the greatest length
    try:
        with open(unfinished, "xb") as file:
            written = 0
            for piece in _pieces(contents):
                file.write(piece)
                written += len(piece)
                if progress is not None:
                    progress(written)
        if replace:
            os.replace(unfinished, path)
        else:
            _rename_to_new(unfinished, path)
    except OSError as error:
        _remove(unfinished)
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
    except BaseException:
        _remove(unfinished)
        raise


def _pieces(contents: Iterable[Content]) -> Iterable[memoryview]:
    for content in contents:
        if isinstance(content, (bytes, memoryview)):
            view = memoryview(content).cast("B")
        elif content.size == 0:
            continue
        else:
            plain: Any = content.reshape(-1).view("u1")  # ml_dtypes have no buffers of their own
            view = memoryview(plain)
        for start in range(0, len(view), _PIECE):
            yield view[start : start + _PIECE]


def _rename_to_new(source: Path, target: Path) -> None:
    """Rename, unless the new name is taken; no other process can come between."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Taking the name first is the next best: for a moment the file is there, and empty.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        os.replace(source, target)
    else:
        os.unlink(source)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return  # it was never made, or the folder is gone; the error that is being raised says why
