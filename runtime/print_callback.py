"""What compiled code calls to print: hands values over as they lie in its memory.

An exception must not pass through native code. So one that comes up here, Ctrl-C included, is kept and raised
afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from halfulp.compiler.artifact import PrintedValue, PrintSite

from .memory import Array

PRINT_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
"""``void (i64 site, i64 *words)``, as `halfulp.compiler.artifact.PrintSite` says. Called with the GIL taken."""


class PrintTarget(Protocol):
    """Takes what one execution prints, in the order of the program."""

    def tensor(self, label: str, array: Array) -> None:
        """A tensor of a graph. The array lies in memory of the execution: it is valid during this call only."""

    def line(self, text: str) -> None:
        """A line of text, without its end."""


class FinishedTarget(PrintTarget, Protocol):
    """A target that is told when the execution was over, and good."""

    def finish(self) -> None:
        """What is left to do; it may raise."""


class PrintCallback:
    """What one execution calls to print. What ``target`` raises ends the printing, and is raised by `finish`."""

    def __init__(self, sites: Sequence[PrintSite], target: PrintTarget) -> None:
        errors: list[BaseException] = []

        def called(site: int, words: int) -> None:
            if errors:
                return
            try:
                _show(sites[site], words, target)
            except BaseException as error:
                errors.append(error)

        self._errors = errors
        self._function: Any = PRINT_PROTOTYPE(called)  # lives as long as native code may call it

    @property
    def address(self) -> int:
        """Of the function that native code calls."""
        address = ctypes.cast(self._function, ctypes.c_void_p).value
        assert address is not None
        return address

    def finish(self) -> None:
        """Raises what came up while the execution ran."""
        if self._errors:
            raise self._errors[0]


def _show(site: PrintSite, words: int, target: PrintTarget) -> None:
    if site.is_tensor:
        (value,) = site.values
        address, *extents = _integers(words, 1 + len(value.shape))
        target.tensor(site.text, _in_place(address, value, extents))
        return
    arrays = map(_in_place, _integers(words, len(site.values)), site.values, map(_known, site.values))
    target.line(site.line(list(arrays)))


def _integers(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def _known(value: PrintedValue) -> list[int]:
    return [size for size in value.shape if size is not None]


def _in_place(address: int, value: PrintedValue, shape: Sequence[int]) -> Array:
    dtype = value.dtype.to_numpy()
    count = prod(shape)
    if not count:  # then there may be no memory
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    stored = np.frombuffer(memory, np.uint8 if dtype == np.bool_ else dtype).reshape(shape)
    return stored != 0 if dtype == np.bool_ else stored
