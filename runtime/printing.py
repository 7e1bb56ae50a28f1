"""What graphs print: the options of a session, and the one place that writes to standard output.

`halfulp.runtime.tensor_text` makes the texts, `halfulp.runtime.print_files` the names of files.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TextIO

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError

from .checkpoint import SUFFIX, max_header
from .memory import Array
from .print_files import PrintFolder, new_folder
from .print_progress import PrintProgress
from .tensor_text import MOST_DIGITS, PIECE, compact_text, full_text_pieces


class PrintStyle(Enum):
    """What becomes of a printed tensor.

    COMPACT and FULL write text to standard output: the corners of the tensor, or all of it. BINARY writes its bytes
    to a file, BINARY_MAX_CHECKPOINT a file of the ``.max`` format, which has type, shape and label too. NONE does
    nothing.
    """

    COMPACT = "COMPACT"
    FULL = "FULL"
    BINARY = "BINARY"
    BINARY_MAX_CHECKPOINT = "BINARY_MAX_CHECKPOINT"
    NONE = "NONE"

    @property
    def writes_files(self) -> bool:
        """Whether tensors go to files."""
        return self in (PrintStyle.BINARY, PrintStyle.BINARY_MAX_CHECKPOINT)


@dataclass(frozen=True)
class PrintOptions:
    """``precision`` counts the digits after the point under FULL; the rest is for the styles that write files."""

    style: PrintStyle = PrintStyle.COMPACT
    precision: int = 6
    output_directory: Path | None = None
    folder_per_execute: bool = False

    @staticmethod
    def of(style: object, precision: object, output_directory: object, folder_per_execute: object) -> PrintOptions:
        """The options, checked.

        Raises:
            GraphTypeError: an unknown style, or an option of another type.
            GraphError: a precision out of range, or no directory for a style that writes files.
        """
        subject = "set_debug_print_options"
        if not isinstance(style, PrintStyle):
            if not isinstance(style, str) or style not in PrintStyle.__members__:
                *names, last = PrintStyle.__members__
                raise GraphTypeError(
                    f"{subject}: style must be a PrintStyle or its name, {', '.join(names)} or {last}, not {style!r}"
                )
            style = PrintStyle[style]
        if not isinstance(precision, int) or isinstance(precision, bool):
            raise GraphTypeError(f"{subject}: precision must be an int, not {precision!r}")
        if not 0 <= precision <= MOST_DIGITS:
            raise GraphError(f"{subject}: precision must be between 0 and {MOST_DIGITS}, not {precision}")
        if not isinstance(folder_per_execute, bool):
            raise GraphTypeError(f"{subject}: folder_per_execute must be a bool, not {folder_per_execute!r}")
        return PrintOptions(style, precision, _directory(subject, style, output_directory), folder_per_execute)


def _directory(subject: str, style: PrintStyle, given: object) -> Path | None:
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise GraphTypeError(f"{subject}: output_directory must be a path, not {given!r}")
    text = os.fspath(given) if given is not None else ""
    if not isinstance(text, str):
        raise GraphTypeError(f"{subject}: output_directory must be a path of text, not {given!r}")
    if not text:
        if style.writes_files:
            raise GraphError(
                f"{subject}: the output directory cannot be empty under {style.name}; pass output_directory=..."
            )
        return None
    return Path(text).absolute()  # the process may change its own directory before the next print


class Printer:
    """Writes what the models of a session print. ``options`` may be replaced at any time."""

    def __init__(self) -> None:
        self.options = PrintOptions()
        self._folders: dict[Path, PrintFolder] = {}

    def start(self) -> PrintedExecution | None:
        """What takes the prints of one execution, under the options of now; None if nothing is to be printed."""
        return None if self.options.style is PrintStyle.NONE else PrintedExecution(self.options, self._folders)


class PrintedExecution:
    """Shows what one execution prints. Files are written at once, text when `finish` is called."""

    def __init__(self, options: PrintOptions, folders: dict[Path, PrintFolder]) -> None:
        """``folders`` are those of the session, by path."""
        self._options = options
        self._folders = folders
        self._folder: PrintFolder | None = None
        self._parts: list[_Full | str] = []

    def tensor(self, label: str, array: Array) -> None:
        """Show a tensor in host memory, C-contiguous; it is not looked at after this call.

        Raises:
            OSError: its file cannot be written.
        """
        style, dtype = self._options.style, DType.from_numpy(array.dtype)
        if style.writes_files:
            self._write_file(label, array)
        elif style is PrintStyle.FULL:
            # its text would take more memory than a copy
            self._parts.append(_Full(label, array.copy(), dtype, self._options.precision))
        else:
            self._parts.append(f"{_shown(label)} = {compact_text(array, dtype)}\n")

    def line(self, text: str) -> None:
        """Show a line of text. It goes to standard output under the styles that write files, too."""
        self._parts.append(f"{text}\n")

    def finish(self) -> None:
        """Write the text, in one piece: what other threads print comes before or after.

        Raises:
            OSError: standard output refuses it.
        """
        if self._parts:
            _write(piece for part in self._parts for piece in ([part] if isinstance(part, str) else part.pieces()))

    def _write_file(self, label: str, array: Array) -> None:
        if self._folder is None:
            self._folder = self._choose_folder()
        with PrintProgress(label, array.nbytes) as progress:
            if self._options.style is PrintStyle.BINARY:
                self._folder.write(label, "", [array], progress.advance)
            else:
                self._folder.write(label, SUFFIX, [max_header(array, label), array], progress.advance)

    def _choose_folder(self) -> PrintFolder:
        directory = self._options.output_directory
        assert directory is not None, "the options were checked"
        if self._options.folder_per_execute:
            return PrintFolder(new_folder(directory))
        return self._folders.setdefault(directory, PrintFolder(directory))


@dataclass(frozen=True)
class _Full:
    """A tensor that is going to be shown under FULL."""

    label: str
    array: Array
    dtype: DType
    precision: int

    def pieces(self) -> Iterator[str]:
        """Its line."""
        yield f"{_shown(self.label)} = "
        with PrintProgress(self.label, self.array.size) as progress:
            for number, piece in enumerate(full_text_pieces(self.array, self.dtype, self.precision)):
                yield piece
                progress.advance(min(number * PIECE, self.array.size))
        yield "\n"


def _shown(label: str) -> str:
    """A label takes one line, and does nothing to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in label)


_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # the owner of the old one may be gone


os.register_at_fork(after_in_child=_after_fork)

_WRITTEN_AT_ONCE = 1 << 20
"""Characters. Less than that is one write, which no other writer to the same stream can divide."""


def _write(pieces: Iterable[str]) -> None:
    stream: TextIO | None = sys.stdout
    if stream is None:  # a process without a console
        return
    with _lock:
        waiting: list[str] = []
        length = 0
        for piece in pieces:
            waiting.append(piece)
            length += len(piece)
            if length >= _WRITTEN_AT_ONCE:
                _write_text(stream, "".join(waiting))
                waiting, length = [], 0
        if waiting:
            _write_text(stream, "".join(waiting))


def _write_text(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        # A label is not worth the result of an execution: what the stream cannot show is escaped.
        stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
