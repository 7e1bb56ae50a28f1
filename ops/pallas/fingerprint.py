"""What a function will do, as far as that can be told without calling it: its code and all values that it refers to.

Two calls of `pallas_call` share a traced kernel only if the fingerprints of kernel and index maps are equal. A
function that refers to something whose content may change unseen, such as a list, has none, and is traced anew.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from halfulp.compiler import DType

_VALUES = (bool, int, float, complex, str, bytes, type(None), type(...), DType, Enum, np.generic, np.dtype)
_MOST_DEPTH = 8


class NoFingerprint(Exception):  # noqa: N818 (no error: the caller traces anew)
    """The function refers to something whose content may change."""


def fingerprint(function: Callable[..., Any] | None) -> Any:
    """A hashable value that is equal for functions that do the same.

    Raises:
        NoFingerprint: there is none.
    """
    return None if function is None else _Reader().read(function, 0, frozenset())


def sources_of(functions: Iterable[Callable[..., Any] | None]) -> Sources | None:
    """The variables that some functions read; None if one of the functions has no fingerprint."""
    reader = _Reader()
    try:
        for function in functions:
            if function is not None:
                reader.read(function, 0, frozenset())
    except NoFingerprint:
        return None
    return Sources(tuple(reader.cells), tuple(reader.globals))


@dataclass(frozen=True)
class Sources:
    """The variables that functions read, and what was in them. Those hold nothing whose content may change."""

    cells: tuple[tuple[types.CellType, Any], ...]
    globals: tuple[tuple[dict[str, Any], str, Any], ...]

    def are_unchanged(self) -> bool:
        """Whether every variable still holds the same object, so that the functions still do the same."""
        try:
            return all(cell.cell_contents is held for cell, held in self.cells) and all(
                names.get(name) is held for names, name, held in self.globals
            )
        except ValueError:  # an empty cell
            return False


class _Reader:
    """Reads functions, and notes the variables that it comes by."""

    def __init__(self) -> None:
        self.cells: list[tuple[types.CellType, Any]] = []
        self.globals: list[tuple[dict[str, Any], str, Any]] = []

    def read(self, value: Any, depth: int, seen: frozenset[int]) -> Any:
        """The fingerprint of a value that a function refers to."""
        if isinstance(value, _VALUES):
            # 1, 1.0 and True are equal, -0.0 and 0.0 too
            return (type(value), repr(value)) if isinstance(value, float | np.generic) else (type(value), value)
        if depth > _MOST_DEPTH:
            raise NoFingerprint
        if isinstance(value, tuple | frozenset):
            return (type(value), *(self.read(item, depth + 1, seen) for item in value))
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
            return ("named", getattr(value, "__module__", ""), value)
        if isinstance(value, types.FunctionType):
            return self._function(value, depth, seen)
        if hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
            parts = (value.func, value.args, tuple(sorted(value.keywords.items())))
            return ("partial", *(self.read(part, depth + 1, seen) for part in parts))
        if type(value).__module__.startswith("halfulp.") and _is_hashable(value):
            return ("value", type(value), value)
        raise NoFingerprint

    def _function(self, function: types.FunctionType, depth: int, seen: frozenset[int]) -> Any:
        if (function.__module__ or "").startswith("halfulp.") and not function.__closure__:
            return ("own", function.__module__, function.__qualname__)
        if id(function) in seen:
            return ("recursion", function.__qualname__)
        seen = seen | {id(function)}
        cells = [self._cell(cell, depth, seen) for cell in function.__closure__ or ()]
        globals_used = []
        for name in _names_in(function.__code__):
            if name in function.__globals__:
                value = function.__globals__[name]
                self.globals.append((function.__globals__, name, value))
                globals_used.append((name, self.read(value, depth + 1, seen)))
        defaults = self.read(function.__defaults__ or (), depth + 1, seen)
        keywords = self.read(tuple(sorted((function.__kwdefaults__ or {}).items())), depth + 1, seen)
        return ("function", function.__code__, tuple(cells), tuple(globals_used), defaults, keywords)

    def _cell(self, cell: types.CellType, depth: int, seen: frozenset[int]) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:
            return "empty"
        self.cells.append((cell, value))
        return self.read(value, depth + 1, seen)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _names_in(code: types.CodeType) -> list[str]:
    """The globals (and attributes) named in a function and the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(_names_in(constant))
    return sorted(names)
