"""The steps of a compilation as they are done: for a caller that shows progress, and for dumps of every stage.

With ``HALFULP_DUMP=folder`` each compilation writes what every step leaves behind, numbered in order::

    folder/softmax-1/01-verify-graph.mlir
    folder/softmax-1/02-contract-fma.mlir
    ...
    folder/softmax-1/11-emit-llvm.ll
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

from .errors import CompileError

DUMP_VARIABLE = "HALFULP_DUMP"

Progress = Callable[[int, int, str], object]
"""``progress(done, total, step)``; what it raises ends the compilation."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def dumps_are_wanted() -> bool:
    """Whether the environment asks for dumps, which only a compilation from the start gives."""
    return bool(os.environ.get(DUMP_VARIABLE))


class Steps:
    """Counts the steps of one compilation.

    Args:
        name: of the graph, for the folder of dumps.
        total: how many steps there are.
        progress: told after each.
        dumps: whether to write dumps if the environment asks for them.
    """

    def __init__(self, name: str, total: int, progress: Progress | None = None, *, dumps: bool = True) -> None:
        self._total = total
        self._progress = progress
        self._count = 0
        chosen = os.environ.get(DUMP_VARIABLE) if dumps else None
        self._folder = _new_folder(Path(chosen), name) if chosen else None

    def done(self, step: str, text: Callable[[], str], suffix: str = "mlir") -> None:
        """Notes a step. ``text`` gives what it leaves behind, an empty text nothing to dump.

        Raises:
            CompileError: the dump cannot be written.
        """
        self._count += 1
        if self._folder is not None and (content := text()):
            path = self._folder / f"{self._count:02}-{step}.{suffix}"
            try:
                path.write_text(content, encoding="utf-8")
            except OSError as error:
                raise _cannot_write(path, error) from error
        if self._progress is not None:
            self._progress(self._count, self._total, step)


def _new_folder(parent: Path, name: str) -> Path:
    """A folder for one compilation, numbered, so that none overwrites another's."""
    stem = _UNSAFE.sub("_", name) or "graph"
    for number in itertools.count(1):
        folder = parent / f"{stem}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if parent.is_dir():
                continue
            raise _cannot_write(parent, NotADirectoryError("it is not a folder")) from None
        except OSError as error:
            raise _cannot_write(folder, error) from error
        return folder
    raise AssertionError("counting never ends")


def _cannot_write(path: Path, error: OSError) -> CompileError:
    return CompileError(
        f"{DUMP_VARIABLE}: cannot write {path}: {error.strerror or error}; "
        "set it to a folder that can be written, or unset it"
    )
