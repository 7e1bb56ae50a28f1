"""How far a large print is, on standard error: only on a terminal, and only if it takes a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

PATIENCE = 1.0
"""Seconds before anything is shown."""

INTERVAL = 0.2
"""Seconds between two lines."""

LONGEST_LABEL = 50


class PrintProgress:
    """A line that is written over and over again, and removed at the end.

    Args:
        label: what is printed.
        total: of what `advance` counts: bytes, or elements.
    """

    def __init__(self, label: str, total: int) -> None:
        self._label = label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL]}..."
        self._total = total
        self._next = time.monotonic() + PATIENCE
        self._shown = 0  # characters of the line

    def __enter__(self) -> PrintProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(f"\r{' ' * self._shown}\r")

    def advance(self, done: int) -> None:
        """Say that so much of it is done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL
        text = f"printing {self._label!r}: {done / max(self._total, 1):.0%}"
        self._write(f"\r{text.ljust(self._shown)}")
        self._shown = len(text)

    def _write(self, text: str) -> None:
        stream: TextIO | None = sys.stderr
        if stream is not None and not stream.closed and stream.isatty():
            stream.write(text)
            stream.flush()
