"""Where the variables of a small state space lie: shared, local, constant, parameters.

Variables are kept apart by unused bytes, so that running over the end of one is found instead of hitting the next.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from .types import Array

_GAP = 32  # twice the widest access
_FIRST = 32  # address 0 belongs to no variable


@dataclass
class Layout:
    """Addresses of variables; ``nbytes`` is the room that all of them take, gaps included."""

    nbytes: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def place(self, name: str, nbytes: int, alignment: int) -> int:
        """The address of a new variable, beyond all others."""
        first = self.nbytes + _GAP if self.starts else _FIRST
        address = -(-first // alignment) * alignment
        self.starts.append(address)
        self.ends.append(address + nbytes)
        self.names.append(name)
        self.nbytes = address + nbytes
        return address

    def resize_last(self, nbytes: int) -> None:
        """Changes the size of the variable that was placed last."""
        self.nbytes = self.ends[-1] = self.starts[-1] + nbytes

    def variable_of(self, addresses: Array, nbytes: int) -> int | Array:
        """The number of the variable that all accesses are inside of, or of each access its own; -1 for none."""
        low, high = int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses)) + nbytes
        place = bisect_right(self.starts, low) - 1
        if place >= 0 and high <= self.ends[place]:
            return place
        places = np.searchsorted(np.array(self.starts, np.uint64), addresses, side="right") - 1
        ends = np.array([0, *self.ends], np.uint64)[places + 1]
        # in this form no sum can wrap
        outside = (addresses >= ends) | (ends - addresses < np.uint64(nbytes))
        return np.where(outside, -1, places)

    def describe(self, address: int) -> str:
        """The variable nearest to an address, for messages."""
        if not self.starts:
            return "there is none"
        place = max(bisect_right(self.starts, address) - 1, 0)
        start, end, name = self.starts[place], self.ends[place], self.names[place]
        if address < start:
            return f"it is {start - address} bytes before {name!r}"
        if address < end:
            return f"it is {end - address} bytes before the end of {name!r}"
        return f"it is {address - end} bytes after the end of {name!r}"
