"""What graphs print: the options of a session, and the one place that writes to standard output."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from halfulp.compiler.errors import GraphError, GraphTypeError

from .buffer import Buffer
from .tensor_text import MOST_DIGITS, compact_text, full_text


class PrintStyle(Enum):
    """How a printed tensor looks: its corners, all of its elements, or not at all."""

    COMPACT = "COMPACT"
    FULL = "FULL"
    NONE = "NONE"


@dataclass(frozen=True)
class PrintOptions:
    """``precision`` counts the digits after the point under FULL."""

    style: PrintStyle = PrintStyle.COMPACT
    precision: int = 6

    @staticmethod
    def of(style: object, precision: object) -> PrintOptions:
        """The options, checked.

        Raises:
            GraphTypeError: an unknown style, or a precision that is no int.
            GraphError: a precision out of range.
        """
        subject = "set_debug_print_options"
        if not isinstance(style, PrintStyle):
            if not isinstance(style, str) or style not in PrintStyle.__members__:
                raise GraphTypeError(
                    f"{subject}: style must be a PrintStyle or its name, COMPACT, FULL or NONE, not {style!r}"
                )
            style = PrintStyle[style]
        if not isinstance(precision, int) or isinstance(precision, bool):
            raise GraphTypeError(f"{subject}: precision must be an int, not {precision!r}")
        if not 0 <= precision <= MOST_DIGITS:
            raise GraphError(f"{subject}: precision must be between 0 and {MOST_DIGITS}, not {precision}")
        return PrintOptions(style, precision)


class Printer:
    """Writes what the models of a session print. ``options`` may be replaced at any time."""

    def __init__(self) -> None:
        self.options = PrintOptions()

    def write(self, printed: Sequence[tuple[str, Buffer]]) -> None:
        """Write labels and values in this order, in one piece: what other threads print comes before or after.

        Raises:
            OSError: standard output refuses the text.
        """
        options = self.options
        if options.style is PrintStyle.NONE:
            return
        lines = [_line(label, buffer, options) for label, buffer in printed]
        _write("".join(lines))


_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # the owner of the old one may be gone


os.register_at_fork(after_in_child=_after_fork)


def _line(label: str, buffer: Buffer, options: PrintOptions) -> str:
    array, dtype = buffer.to_numpy(), buffer.dtype
    if options.style is PrintStyle.FULL:
        text = full_text(array, dtype, options.precision)
    else:
        text = compact_text(array, dtype)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in label)
    return f"{shown} = {text}\n"


def _write(text: str) -> None:
    stream: TextIO | None = sys.stdout
    if stream is None:  # a process without a console
        return
    with _lock:
        try:
            stream.write(text)
        except UnicodeEncodeError as error:
            # A label is not worth the result of an execution: what the stream cannot show is escaped.
            stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
