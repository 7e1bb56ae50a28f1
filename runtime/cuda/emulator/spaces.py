"""State spaces: from the addresses of an access to arrays of words and indices into them, or to a fault.

Generic addresses are those of global memory, and three windows far away from it, of 4 GiB each, for shared, local and
constant memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np

from .errors import KernelFaultError, MisalignedAccessError, OutOfBoundsError, ReadOnlyError
from .global_memory import Allocation, GlobalMemory
from .lanes import Lanes
from .layout import Layout
from .syntax import Instruction
from .types import RAW, S64, Array

WINDOWS = {"shared": 0x0100_0000_0000_0000, "local": 0x0200_0000_0000_0000, "const": 0x0300_0000_0000_0000}
_WINDOW_BITS = 32


@dataclass(frozen=True)
class Access:
    """How an instruction uses memory: ``count`` elements of ``element`` bytes side by side."""

    instruction: Instruction
    verb: str  # reads, writes or updates
    element: int
    count: int = 1
    strong: bool = False  # relaxed, acquire, release, volatile or atomic: such accesses do not race with each other

    @property
    def nbytes(self) -> int:
        return self.element * self.count


@dataclass(frozen=True)
class Place:
    """Words in memory, and for each lane the index of its first one.

    ``chosen`` are the numbers of the participants that this is about, None for all of them. ``index`` may have one
    element for all. ``owner`` identifies memory that threads share, for the detection of races: an allocation, or the
    number of a variable in shared memory; None elsewhere.
    """

    words: Array
    index: Array
    chosen: Array | None = None
    owner: Allocation | int | None = None


class Space(Protocol):
    """One state space of a running kernel."""

    def locate(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        """Where the participants' accesses go; ``addresses`` are theirs, or one for all.

        Raises:
            KernelFaultError: misaligned, outside, or not to be written.
        """
        ...


def complain(
    error: type[KernelFaultError], lanes: Lanes, access: Access, lane: int, address: int, why: str
) -> NoReturn:
    """Raises a fault of the participant with the number ``lane``."""
    fault = lanes.fault(access.instruction, lane)
    raise error(fault, f"{access.verb} {access.nbytes} bytes at {address:#x}: {why}")


def check_alignment(lanes: Lanes, addresses: Array, access: Access) -> None:
    """Every address must be a multiple of the size of the access."""
    low_bits = np.uint64(access.nbytes - 1)
    if low_bits and int(np.bitwise_or.reduce(addresses) & low_bits):
        lane = int(np.argmax((addresses & low_bits) != 0))
        why = f"the address must be a multiple of {access.nbytes}"
        complain(MisalignedAccessError, lanes, access, lane, int(addresses[lane]), why)


class GlobalSpace:
    """Global memory: one allocation or several in one access."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory

    def locate(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        check_alignment(lanes, addresses, access)
        low, high = int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses)) + access.nbytes
        allocation = self.memory.find(low)
        if allocation is not None and high <= allocation.end:
            return [_inside(allocation, addresses, access, None)]
        return self._scattered(lanes, addresses, access)

    def _scattered(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        """Several allocations, or a fault."""
        starts = np.array(self.memory.addresses, np.uint64)
        which = np.searchsorted(starts, addresses, side="right") - 1
        places = []
        for number in np.unique(which):
            chosen = np.flatnonzero(which == number)
            allocation = self.memory.allocations[self.memory.addresses[number]] if number >= 0 else None
            last = int(addresses[chosen].max())
            if allocation is None or last + access.nbytes > allocation.end:
                limit = 0 if allocation is None else allocation.end
                lane = next(int(c) for c in chosen if int(addresses[c]) + access.nbytes > limit)
                address = int(addresses[lane])
                why = f"no memory there; {self.memory.describe(address)}"
                complain(OutOfBoundsError, lanes, access, lane, address, why)
            places.append(_inside(allocation, addresses[chosen], access, None if addresses.size == 1 else chosen))
        return places


def _inside(allocation: Allocation, addresses: Array, access: Access, chosen: Array | None) -> Place:
    offsets = (addresses - np.uint64(allocation.address)).view(S64)
    return Place(allocation.words[access.element], offsets >> _shift(access), chosen, allocation)


def _shift(access: Access) -> int:
    return access.element.bit_length() - 1


class VariableSpace(ABC):
    """Memory for variables; the subclasses say who has a copy of his own."""

    name = ""
    watched = False  # whether threads share it, so that races are possible

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def locate(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        check_alignment(lanes, addresses, access)
        variable = self.layout.variable_of(addresses, access.nbytes)
        data, index = self.storage(lanes, addresses.view(S64))
        words, index = data.view(RAW[8 * access.element]), index >> _shift(access)
        if isinstance(variable, int):
            return [Place(words, index, None, variable if self.watched else None)]
        if (variable < 0).any():
            lane = int(np.argmin(variable))
            address = int(addresses[lane])
            why = f"no {self.name} variable there; {self.layout.describe(address)}"
            complain(OutOfBoundsError, lanes, access, lane, address, why)
        if not self.watched:
            return [Place(words, index)]
        groups = [(int(number), np.flatnonzero(variable == number)) for number in np.unique(variable)]
        return [Place(words, index[chosen], chosen, number) for number, chosen in groups]

    @abstractmethod
    def storage(self, lanes: Lanes, offsets: Array) -> tuple[Array, Array]:
        """The bytes that hold the variables, and the place in them for each participant."""


class SharedSpace(VariableSpace):
    """Each block has its own copy."""

    name = "shared"
    watched = True

    def storage(self, lanes: Lanes, offsets: Array) -> tuple[Array, Array]:
        if len(lanes.blocks) == 1:
            return lanes.shared, offsets
        stride = lanes.shared.size // len(lanes.blocks)
        return lanes.shared, offsets + lanes.taking_part(lanes.block_of_lane) * stride


class LocalSpace(VariableSpace):
    """Each lane has its own copy. Parameters of functions lie here too."""

    name = "local"

    def storage(self, lanes: Lanes, offsets: Array) -> tuple[Array, Array]:
        return lanes.local, offsets + lanes.all_lanes() * lanes.local_bytes


class FixedSpace(VariableSpace):
    """One copy for all, which no kernel may write: constants, and the parameters of the kernel."""

    def __init__(self, layout: Layout, name: str, data: Array) -> None:
        super().__init__(layout)
        self.name = name
        self.data = data

    def locate(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        if access.verb != "reads":
            why = f"{self.name} memory is read-only for kernels"
            complain(ReadOnlyError, lanes, access, 0, int(addresses[0]), why)
        return super().locate(lanes, addresses, access)

    def storage(self, lanes: Lanes, offsets: Array) -> tuple[Array, Array]:
        return self.data, offsets


class GenericSpace:
    """Addresses without a state space: the window says which it is."""

    def __init__(self, spaces: dict[str, Space]) -> None:
        self.windows = {base >> _WINDOW_BITS: (np.uint64(base), spaces[name]) for name, base in WINDOWS.items()}
        self.otherwise = (np.uint64(0), spaces["global"])

    def locate(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        first = int(np.minimum.reduce(addresses)) >> _WINDOW_BITS
        last = int(np.maximum.reduce(addresses)) >> _WINDOW_BITS
        if first == last or not (first in self.windows or last in self.windows):
            base, space = self.windows.get(first, self.otherwise)
            return space.locate(lanes, addresses - base if base else addresses, access)
        return self._mixed(lanes, addresses, access)

    def _mixed(self, lanes: Lanes, addresses: Array, access: Access) -> list[Place]:
        """Lanes with addresses in several windows: each space sees its own lanes as the participants."""
        everybody = lanes.participants
        numbers = lanes.all_lanes()
        places = []
        windows = addresses >> np.uint64(_WINDOW_BITS)
        kinds = np.where(np.isin(windows, list(self.windows)), windows, np.uint64(0))
        for kind in np.unique(kinds):
            chosen = np.flatnonzero(kinds == kind)
            base, space = self.windows.get(int(kind), self.otherwise)
            lanes.participants = numbers[chosen]
            try:
                for place in space.locate(lanes, addresses[chosen] - base, access):
                    inner = chosen if place.chosen is None else chosen[place.chosen]
                    places.append(Place(place.words, place.index, inner, place.owner))
            finally:
                lanes.participants = everybody
        return places
