"""The exceptions a user can meet, and how the place in their source is shown.

A message names its subject, the rule, the actual value and, last, the remedy. ``error.message`` is that text alone;
``str(error)`` adds the user's source line where one is known::

    graph 'g': output() was already called at model.py:7; pass all outputs to one call
      at model.py:9: g.output(y)
"""

from __future__ import annotations

import difflib
import linecache
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's program. ``str()`` gives ``file:line``."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    def with_source(self) -> str:
        """``file:line: the source text``; without the text if the file can no longer be read."""
        text = linecache.getline(self.filename, self.line).strip()
        return f"{self}: {text}" if text else str(self)


class HalfulpError(Exception):
    """The root of halfulp's own exceptions: a message and, where known, the user's source line."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        if self.location is None:
            return self.message
        return f"{self.message}\n  at {self.location.with_source()}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the message alone, which those with further arguments do not take; a process
        # pool waits forever for an error that cannot be read back.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[HalfulpError], arguments: tuple[Any, ...], state: dict[str, Any]) -> HalfulpError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class GraphError(HalfulpError, ValueError):
    """A graph, a type, a dim or an option breaks a rule of the language."""


class GraphTypeError(HalfulpError, TypeError):
    """An argument is of a kind that can never be right there, whatever its value."""


class NotFoundError(HalfulpError, LookupError):
    """A name, or the graph that an op needs around it, does not exist."""


class CompileError(HalfulpError, RuntimeError):
    """A well-formed graph cannot be compiled for the chosen target and options."""


class FailedCheckError(HalfulpError, ValueError):
    """A check inside a kernel failed. ``program`` is the program of the grid, counted row-major.

    ``is_bounds``: it is about an index that is out of bounds.
    """

    def __init__(self, message: str, kernel: str, program: int, *, is_bounds: bool = False) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.program = program
        self.is_bounds = is_bounds


def near_names(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x' or 'y'?"`` for the known names closest to ``name``, or an empty string."""
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""


def quoted_list(names: Iterable[str]) -> str:
    """``'a', 'b', 'c'`` in the order given, or ``none``."""
    return ", ".join(repr(n) for n in names) or "none"
