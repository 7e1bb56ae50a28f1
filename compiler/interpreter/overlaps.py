"""Finds two programs of a kernel that touch one element of a buffer, at least one of them writing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .exact import Array
from .memory import Reference

if TYPE_CHECKING:
    from .frame import Value

NOBODY = -1


class _Touched:
    """Of one buffer, the program that last wrote and the one that last read each element."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.writer = np.full(shape, NOBODY, np.int64)
        self.reader = np.full(shape, NOBODY, np.int64)
        self.places = np.arange(self.writer.size, dtype=np.int64).reshape(shape)


class OverlapDetector:
    """Observes the launches of one kernel (`halfulp.compiler.interpreter.frame.Observer`).

    Args:
        kernel: its name.
        names: those of its arguments, for the message; further arguments are scratch and not looked at.
        ordered: axes of the grid whose programs are meant to follow each other: programs that differ along these
            alone may touch one element.

    Attributes:
        found: what was found first, None if nothing was.
    """

    def __init__(self, kernel: str, names: Sequence[str], ordered: Sequence[int] = ()) -> None:
        self.kernel = kernel
        self.names = tuple(names)
        self.ordered = frozenset(ordered)
        self.found: str | None = None
        self._buffers: dict[int, _Touched] = {}
        self._programs: list[tuple[int, ...]] = []
        self._groups: dict[tuple[int, ...], int] = {}
        self._active = False

    def launch(self, kernel: str, buffers: Sequence[Value]) -> None:
        self._active = kernel == self.kernel
        if self._active:
            self._buffers = {
                _address(reference.array): _Touched(name, reference.array.shape)
                for name, reference in zip(self.names, buffers, strict=False)
                if isinstance(reference, Reference)
            }
            self._programs, self._groups = [], {}

    def program(self, kernel: str, program: tuple[int, ...]) -> None:
        if self._active:
            self._programs.append(program)

    def _group(self, number: int) -> int:
        """Programs of one group may touch the same elements."""
        program = self._programs[number]
        key = tuple(NOBODY if axis in self.ordered else index for axis, index in enumerate(program))
        return self._groups.setdefault(key, len(self._groups))

    def access(self, reference: Reference, mask: Array | None, *, writes: bool) -> None:
        touched = self._buffers.get(_address(reference.array)) if self._active else None
        if touched is None or self.found is not None:
            return
        number = len(self._programs) - 1
        wanted: Array | bool = True
        for before, word in ((touched.writer, "writes"), (touched.reader, "reads")):
            part, place = reference.valid(before)
            wanted = np.ones(part.shape, np.bool_) if mask is None else mask[place]
            if writes or before is touched.writer:
                self._look(touched, reference, part, wanted, (word, "writes" if writes else "reads"))
        part, _ = reference.valid(touched.writer if writes else touched.reader)
        np.copyto(part, number, where=wanted)

    def _look(
        self, touched: _Touched, reference: Reference, before: Array, wanted: Array, words: tuple[str, str]
    ) -> None:
        """Compares who touched the elements before with the program that runs."""
        number = len(self._programs) - 1
        others = {int(n) for n in np.unique(before[wanted]) if n not in (NOBODY, number)}
        clashing = sorted(n for n in others if self._group(n) != self._group(number))
        if not clashing or self.found is not None:
            return
        at = np.argwhere((before == clashing[0]) & wanted)[0]
        places, _ = reference.valid(touched.places)
        element = np.unravel_index(int(places[tuple(at)]), touched.places.shape)
        shown = f"({', '.join(str(int(i)) for i in element)}{',' if len(element) == 1 else ''})"
        self.found = (
            f"program {self._programs[clashing[0]]} {words[0]} element {shown} of {touched.name}, and program "
            f"{self._programs[number]} {words[1]} it, too; give each element to one program, or declare the axes along "
            "which programs share it as 'arbitrary' in dimension_semantics"
        )


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
