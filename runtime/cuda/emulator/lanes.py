"""The threads of a batch of blocks, in step: every register is one array over all of them.

A batch holds several blocks; each takes a whole number of warps, and the lanes beyond its last thread never run. A
register whose value is the same in all lanes may be an array of one element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .errors import Fault, Triple
from .syntax import Instruction
from .types import Array

if TYPE_CHECKING:
    from .races import RaceDetector

WARP = 32


@dataclass(frozen=True)
class Launch:
    """What all batches of a launch share. ``threads`` is the block's size, ``lanes`` the same in whole warps."""

    kernel: str
    grid: Triple
    block: Triple
    dynamic_shared: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def lanes(self) -> int:
        return -(-self.threads // WARP) * WARP

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


class Lanes:
    """The state of a batch.

    Attributes:
        mask: which lanes an instruction may change; None if these are all that have not exited.
        participants: indices of the lanes that execute it; None if all lanes of the batch do.
    """

    def __init__(self, launch: Launch, blocks: range, registers: list[Array]) -> None:
        self.launch = launch
        self.blocks = blocks
        self.width = launch.lanes
        self.count = len(blocks) * self.width
        self.registers = registers
        self.mask: Array | None = None
        self.participants: Array | None = None
        self.races: RaceDetector | None = None
        self.shared = np.zeros(0, np.uint8)
        self.local = np.zeros(0, np.uint8)
        self.local_bytes = 0
        places = np.arange(self.count, dtype=np.int64)
        self.lane_in_block = places % self.width
        self.lane_in_warp = (places % WARP).astype(np.uint32)
        self.first_of_warp = places - places % WARP
        self.block_of_lane = places // self.width
        self.exists = self.lane_in_block < launch.threads
        self.sources: dict[int, tuple[Array, Array]] = {}  # where the lanes of a shuffle read, by line

    def activate(self, present: Array | None, mask: Array | None) -> None:
        """Chooses the lanes that execute what follows; ``present`` is None for all lanes of the batch."""
        self.mask = mask
        self.participants = None if present is None else np.flatnonzero(present)

    def taking_part(self, register: Array) -> Array:
        """The values of a register in the participants, or its one value."""
        if self.participants is None or register.size == 1:
            return register
        return register[self.participants]

    def put(self, slot: int, values: Array) -> None:
        """Gives the participants new values, one each or the same for all."""
        if self.participants is None or (self.mask is None and values.size == 1):
            self.registers[slot] = values
            return
        changed = np.array(np.broadcast_to(self.registers[slot], (self.count,)))
        changed[self.participants] = values
        self.registers[slot] = changed

    @property
    def number_taking_part(self) -> int:
        return self.count if self.participants is None else self.participants.size

    def all_lanes(self) -> Array:
        """Indices of the participants."""
        return np.arange(self.count) if self.participants is None else self.participants

    def fault(self, instruction: Instruction, participant: int) -> Fault:
        """The place of a fault of the participant with that number."""
        lane = int(participant if self.participants is None else self.participants[participant])
        return self.fault_of_lane(instruction, lane)

    def fault_of_lane(self, instruction: Instruction, lane: int) -> Fault:
        block, thread = self.indices_of(lane)
        return Fault(self.launch.kernel, instruction, block, thread)

    def indices_of(self, lane: int) -> tuple[Triple, Triple]:
        """The indices of block and thread."""
        return self.block_index(self.blocks[lane // self.width]), unflatten(lane % self.width, self.launch.block)

    def block_index(self, block: int) -> Triple:
        return unflatten(block, self.launch.grid)


def unflatten(number: int, extents: Triple) -> Triple:
    """The index (x, y, z) of a number that counts x fastest."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)
