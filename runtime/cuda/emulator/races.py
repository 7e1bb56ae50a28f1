"""Data races: two threads use the same bytes, one of them writes, and nothing orders them.

Only barriers order: ``bar.sync`` the threads of a block, ``bar.warp.sync`` the named lanes of a warp. Shuffles do
not, and threads of different blocks are never ordered within a launch. Atomic, volatile, relaxed, acquire and release
accesses do not race with each other, but order nothing either.

For each granule of memory (as small as the smallest access so far) there are two tags, of the last write and of the
last read. A tag is the time (barriers passed so far), how many threads it stands for, and one of these threads. An
earlier access that is ordered before the new one need not be remembered; several that are not ordered are merged, and
the tag then says "lanes of this warp", "threads of this block" or "of several blocks".

Most reads are of memory that is written in other epochs or not at all. So reads are only noted down, and become tags
when somebody writes to the same piece of memory; if a barrier of all threads comes first, they never do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from .errors import DataRaceError, LaunchError, UninitializedReadError
from .global_memory import Allocation
from .lanes import WARP, Lanes, Launch, unflatten
from .spaces import Access, Place
from .types import S64, Array

# The parts of a tag, from the lowest bit: thread in block, block, level, whether all accesses were strong, time.
_THREAD_BITS, _BLOCK_BITS, _LEVEL_BITS = 10, 23, 2
_ID_BITS = _THREAD_BITS + _BLOCK_BITS
_STRONG = np.int64(1 << _ID_BITS + _LEVEL_BITS)
_TIME_SHIFT = _ID_BITS + _LEVEL_BITS + 1
_ID = np.int64((1 << _ID_BITS) - 1)
_LEVEL = np.int64((1 << _LEVEL_BITS) - 1 << _ID_BITS)
_WHO = _ID | _LEVEL
_ONE_WARP, _ONE_BLOCK, _SEVERAL_BLOCKS = (np.int64(level << _ID_BITS) for level in (1, 2, 3))
_WARP_SHIFT = WARP.bit_length() - 1


_MOST_NOTED = 1 << 21  # granules; what is noted takes memory, tags do not


@dataclass
class Epoch:
    """The time between two barriers. ``since`` has for each lane the tag-like time of its last barrier; accesses of its
    block with a smaller tag are ordered before what it does now. ``since_warp`` is the same of its warp's."""

    time: int
    first_block: int
    since: Array
    since_warp: Array

    def __post_init__(self) -> None:
        self.floor = int(self.since.min())

    def lanes_of(self, tags: Array, width: int) -> Array:
        """The number in the batch of the thread that each tag names."""
        identity = tags & _ID
        blocks = (identity >> _THREAD_BITS) - self.first_block
        return np.asarray(blocks * width + (identity & ((1 << _THREAD_BITS) - 1)))


@dataclass
class Touched:
    """An access: for each participant the index of its first element, and what it takes to make granules and tags."""

    epoch: Epoch
    place: Place
    access: Access
    tags: Array  # of all lanes of the batch
    participants: Array | None

    def numbers(self) -> Array:
        """The participants that it is about."""
        everybody = len(self.tags) if self.participants is None else len(self.participants)
        return np.arange(everybody) if self.place.chosen is None else self.place.chosen

    def expanded(self, granule: int) -> tuple[Array, Array, Array]:
        """For each granule that a lane touches: the number of the participant, the granule, the tag."""
        numbers = self.numbers()
        tags = self.tags if self.participants is None else self.tags[self.participants]
        if self.place.chosen is not None:
            tags = tags[numbers]
        if self.access.strong:
            tags = tags | _STRONG
        index, total = self.granules(granule)
        if index.size != tags.size * total:  # all lanes at one place
            index = np.tile(index, tags.size)
        if total == 1:
            return numbers, index, tags
        return np.repeat(numbers, total), index, np.repeat(tags, total)

    def granules(self, granule: int) -> tuple[Array, int]:
        """The granules, and how many belong to a lane; only those of one lane if all are at one place."""
        element = self.access.element
        if self.access.nbytes == granule:  # the address is a multiple of both
            return (self.place.index if element == granule else self.place.index // (granule // element)), 1
        total = self.access.nbytes // granule
        start = (
            self.place.index * (element // granule) if element >= granule else self.place.index // (granule // element)
        )
        return (start[:, None] + np.arange(total)).reshape(-1), total


@dataclass
class Shadow:
    """Tags of a piece of memory, 0 where nobody has been; and reads that are not tags yet."""

    granule: int  # bytes that share a tag
    writes: Array
    reads: Array
    written: bool = False
    read: bool = False
    noted: list[Touched] = field(default_factory=list)
    number_noted: int = 0

    @classmethod
    def of(cls, nbytes: int, granule: int) -> Shadow:
        return cls(granule, np.zeros(nbytes // granule, S64), np.zeros(nbytes // granule, S64))

    def refine(self, granule: int) -> None:
        """Makes the granules smaller."""
        factor = self.granule // granule
        self.granule = granule
        self.writes, self.reads = (
            tags.repeat(factor) if used else np.zeros(tags.size * factor, S64)
            for tags, used in ((self.writes, self.written), (self.reads, self.read))
        )


class RaceDetector:
    """Watches one launch. `start_batch` before each batch, `barrier` and `warp_barrier` whenever threads meet."""

    def __init__(self, launch: Launch, uninitialized: bool) -> None:
        if launch.blocks >= 1 << _BLOCK_BITS:
            raise LaunchError(
                f"kernel {launch.kernel!r}: races are detected in grids of less than {1 << _BLOCK_BITS} blocks, not "
                f"{launch.blocks}; make the emulator with detect_races=False"
            )
        self.launch = launch
        self.uninitialized = uninitialized
        self.single_block = launch.blocks == 1
        self.time = 1
        self.shadows: dict[Allocation | int, Shadow] = {}  # by the owner of a place

    def start_batch(self, lanes: Lanes) -> None:
        """Fresh shared memory, and threads that nothing orders yet."""
        blocks = np.asarray(lanes.blocks, S64)[lanes.block_of_lane]
        self.who = (blocks << _THREAD_BITS) | lanes.lane_in_block
        self.shadows = {owner: shadow for owner, shadow in self.shadows.items() if isinstance(owner, Allocation)}
        self.shared_bytes = lanes.shared.size
        since = np.ones(lanes.count, S64)  # so that 0, nobody, is before it
        self._start_epoch(Epoch(self.time, lanes.blocks[0], since, since))

    def _start_epoch(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.tags = self.who + (np.int64(epoch.time) << _TIME_SHIFT)

    def barrier(self, waiting: Array | None) -> None:
        """The lanes (all if None) have met at ``bar.sync``, whole blocks at a time."""
        if waiting is None:  # all that was read is ordered before all that comes
            for owner, shadow in self.shadows.items():
                if self.single_block or isinstance(owner, int):
                    self._forget(shadow)
        self._tick(self.epoch.since, self.epoch.since_warp, waiting, 0)

    def warp_barrier(self, waiting: Array | None) -> None:
        """The lanes have met at ``bar.warp.sync``."""
        self._tick(self.epoch.since, self.epoch.since_warp, waiting, 1)

    def _tick(self, since: Array, since_warp: Array, waiting: Array | None, which: int) -> None:
        self.time += 1
        both = [since, since_warp]
        both[which] = both[which].copy()
        both[which][slice(None) if waiting is None else waiting] = np.int64(self.time) << _TIME_SHIFT
        self._start_epoch(Epoch(self.time, self.epoch.first_block, *both))

    @staticmethod
    def _forget(shadow: Shadow) -> None:
        shadow.noted.clear()
        shadow.number_noted = 0

    # accesses

    def read(self, lanes: Lanes, place: Place, access: Access) -> None:
        """A load: no unordered write may have been there."""
        if place.owner is None:
            return
        shadow = self._shadow(place, access)
        touched = self._touched(lanes, place, access)
        shared = isinstance(place.owner, int)
        if shadow.written or (shared and self.uninitialized):
            index, _ = touched.granules(shadow.granule)
            old = shadow.writes[index]
            if shared and self.uninitialized and not np.minimum.reduce(old):
                numbers, index, _ = touched.expanded(shadow.granule)
                self._unwritten(lanes, access, int(numbers[np.argmin(shadow.writes[index] != 0)]))
            if self._suspicious(touched, old):
                numbers, index, new = touched.expanded(shadow.granule)
                self._check(lanes, touched, numbers, shadow.writes[index], new, "written")
        shadow.noted.append(touched)
        shadow.number_noted += place.index.size
        if shadow.number_noted > _MOST_NOTED:
            self._tag_reads(shadow)

    def write(self, lanes: Lanes, place: Place, access: Access) -> None:
        """A store: nobody else may have been there."""
        if place.owner is None:
            return
        shadow = self._shadow(place, access)
        touched = self._touched(lanes, place, access)
        numbers, index, new = touched.expanded(shadow.granule)
        self._check_reads(shadow, lanes, touched, numbers, index, new)
        if shadow.written:
            self._check(lanes, touched, numbers, shadow.writes[index], new, "written")
        shadow.writes[index] = new
        shadow.written = True
        if index.size > 1 and not access.strong:  # two lanes of this very instruction at the same place?
            self._check(lanes, touched, numbers, shadow.writes[index], new, "written")

    def update(self, lanes: Lanes, place: Place, access: Access) -> None:
        """An atomic operation."""
        if place.owner is None:
            return
        shadow = self._shadow(place, access)
        touched = self._touched(lanes, place, access)
        numbers, index, new = touched.expanded(shadow.granule)
        self._check_reads(shadow, lanes, touched, numbers, index, new)
        self._check(lanes, touched, numbers, shadow.writes[index], new, "written")
        index, new = _one_tag_each(index, new)
        self._remember(shadow.writes, touched.epoch, index, new)
        shadow.written = True

    def _shadow(self, place: Place, access: Access) -> Shadow:
        owner = place.owner
        assert owner is not None
        shadow = self.shadows.get(owner)
        if shadow is None:
            # for a shared variable as large as all of shared memory, so that indices can stay as they are; pages that
            # nobody touches cost nothing
            nbytes = owner.data.size if isinstance(owner, Allocation) else self.shared_bytes
            shadow = self.shadows[owner] = Shadow.of(nbytes, access.nbytes)
        if access.nbytes < shadow.granule:
            shadow.refine(access.nbytes)
        return shadow

    def _touched(self, lanes: Lanes, place: Place, access: Access) -> Touched:
        return Touched(self.epoch, place, access, self.tags, lanes.participants)

    def _check_reads(
        self, shadow: Shadow, lanes: Lanes, touched: Touched, numbers: Array, index: Array, new: Array
    ) -> None:
        if shadow.noted:
            self._tag_reads(shadow)
        if shadow.read:
            self._check(lanes, touched, numbers, shadow.reads[index], new, "read")

    def _suspicious(self, touched: Touched, old: Array) -> bool:
        """False if nobody was there, or only before a barrier of everybody."""
        across_blocks = not self.single_block and isinstance(touched.place.owner, Allocation)
        return int(np.maximum.reduce(old)) >= (1 if across_blocks else touched.epoch.floor)

    def _check(self, lanes: Lanes, touched: Touched, numbers: Array, old: Array, new: Array, verb: str) -> None:
        if not self._suspicious(touched, old):
            return
        unordered = self._unordered(touched.epoch, old, new)
        if touched.access.strong:
            unordered &= (old & _STRONG) == 0
        if np.count_nonzero(unordered):
            at = int(np.argmax(unordered))
            self._race(lanes, touched.access, int(numbers[at]), int(old[at]), verb)

    def _unordered(self, epoch: Epoch, old: Array, new: Array) -> Array:
        """Whether an old access is by another thread (or several) and not ordered before the new one."""
        differing = old ^ new
        others = (differing & _WHO) != 0
        if not np.count_nonzero(others):
            return np.asarray(others)
        where = epoch.lanes_of(new, self.launch.lanes)
        recent = old >= epoch.since[where]
        if not self.single_block:
            same_block = (differing & _ID) >> _THREAD_BITS == 0
            recent |= (~same_block | ((old & _LEVEL) == _SEVERAL_BLOCKS)) & (old != 0)
        unordered = others & recent
        if np.count_nonzero(unordered):
            same_warp = ((differing & _ID) >> _WARP_SHIFT == 0) & ((old & _LEVEL) <= _ONE_WARP)
            unordered &= ~(same_warp & (old < epoch.since_warp[where]))
        return np.asarray(unordered)

    # remembering

    def _tag_reads(self, shadow: Shadow) -> None:
        """What is noted becomes tags, an epoch after the other."""
        start = 0
        while start < len(shadow.noted):
            epoch = shadow.noted[start].epoch
            end = start
            while end < len(shadow.noted) and shadow.noted[end].epoch is epoch:
                end += 1
            parts = [touched.expanded(shadow.granule)[1:] for touched in shadow.noted[start:end]]
            index, new = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            self._remember(shadow.reads, epoch, *_one_tag_each(index, new))
            start = end
        shadow.read = True
        self._forget(shadow)

    def _remember(self, tags: Array, epoch: Epoch, index: Array, new: Array) -> None:
        """Writes new tags, one for a granule, merged with those of accesses that are not ordered before them."""
        old = tags[index]
        unordered = self._unordered(epoch, old, new)
        tags[index] = np.where(unordered, _merged(old, new), new) if unordered.any() else new

    # messages

    def _race(self, lanes: Lanes, access: Access, number: int, old: int, verb: str) -> NoReturn:
        fault = lanes.fault(access.instruction, number)
        identity = old & int(_ID)
        block = unflatten(identity >> _THREAD_BITS, self.launch.grid)
        thread = unflatten(identity & (1 << _THREAD_BITS) - 1, self.launch.block)
        others = (" alone", " and other lanes of its warp", " and other threads of its block", " and other blocks")
        level = (old & int(_LEVEL)) >> _ID_BITS
        by = f"thread {thread} of block {block}{others[level] if level else ''}"
        remedy = (
            "put a barrier between the two"
            if block == fault.block
            else ("threads of different blocks need atomic operations, or a launch each")
        )
        raise DataRaceError(fault, f"{access.verb} bytes that {by} has {verb}: {remedy}")

    def _unwritten(self, lanes: Lanes, access: Access, number: int) -> NoReturn:
        fault = lanes.fault(access.instruction, number)
        raise UninitializedReadError(fault, "reads shared memory that no thread of the block has written before")


def _one_tag_each(index: Array, tags: Array) -> tuple[Array, Array]:
    """Accesses of one epoch: each granule once, with a tag that stands for all that touched it."""
    if index.size == 1:
        return index, tags
    order = np.argsort(index, kind="stable")
    index, tags = index[order], tags[order]
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    if starts.size == index.size:
        return index, tags
    # the identities apart from the rest, so that the extremes tell how far apart the threads are
    identity = tags & _ID
    lowest, highest = (extreme.reduceat(identity, starts) for extreme in (np.minimum, np.maximum))
    rest = np.bitwise_and.reduceat(tags & ~_ID, starts)
    return index[starts], _merged(lowest | rest, highest | rest)


def _merged(old: Array, new: Array) -> Array:
    """One tag for two that are not ordered: the later time, the higher thread, and how far apart they are."""
    differing = (old ^ new) & _ID
    level = np.where(
        differing == 0,
        np.int64(0),
        np.where(
            differing >> _WARP_SHIFT == 0,
            _ONE_WARP,
            np.where(differing >> _THREAD_BITS == 0, _ONE_BLOCK, _SEVERAL_BLOCKS),
        ),
    )
    level = np.maximum(level, np.maximum(old & _LEVEL, new & _LEVEL))
    who = np.maximum(old & _ID, new & _ID)
    time = np.maximum(old >> _TIME_SHIFT, new >> _TIME_SHIFT) << _TIME_SHIFT
    return np.asarray(time | level | who | (old & new & _STRONG))
