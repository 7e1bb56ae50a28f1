"""``atom`` and ``red``: read, change and write as one, lane after lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .access import Locate, Step, address_of
from .floats import canonical
from .lanes import Lanes
from .spaces import Access, Place
from .types import Array, ScalarType, as_raw

Change = Callable[..., Array]
"""The new value, from the old one and the operands of the same lanes."""

_CHANGES: dict[str, Change] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": lambda old, compared, new: np.asarray(np.where(old == compared, new, old)),
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
}
_KINDS = {"add": "usf", "min": "us", "max": "us", "and": "b", "or": "b", "xor": "b", "exch": "b", "cas": "b"}
_UNSIGNED_ONLY = {"inc": "u", "dec": "u"}


def change_of(name: str, type: ScalarType) -> Change | None:
    """What an atomic operation does; None if there is none of that name and type."""
    if type.kind not in {**_KINDS, **_UNSIGNED_ONLY}.get(name, ""):
        return None
    change = _CHANGES[name]
    return (lambda old, operand: canonical(np.asarray(change(old, operand)))) if type.is_float else change


def atomic(
    locate: Locate,
    access: Access,
    type: ScalarType,
    change: Change,
    base: int,
    offset: int,
    operands: tuple[int, ...],
    destination: int,
) -> Step:
    """``destination`` is the slot of the old value, or -1."""

    def step(lanes: Lanes) -> None:
        places = locate(lanes, address_of(lanes, base, offset), access)
        number = lanes.number_taking_part
        values = [np.broadcast_to(lanes.taking_part(lanes.registers[slot]), (number,)) for slot in operands]
        old = np.empty(number, type.raw)
        for place in places:
            if lanes.races is not None:
                lanes.races.update(lanes, place, access)
            chosen = np.arange(number) if place.chosen is None else place.chosen
            old[chosen] = _one_by_one(place, [v[chosen] for v in values], chosen.size, type, change)
        if destination >= 0:
            lanes.put(destination, old)

    return step


def _one_by_one(place: Place, values: list[Array], number: int, type: ScalarType, change: Change) -> Array:
    """The old values. Round k serves the k-th lane of every address, in the order of the lanes."""
    index = np.broadcast_to(place.index, (number,))
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    rank = np.arange(number) - np.repeat(starts, np.diff(starts, append=number))
    old = np.empty(number, type.raw)
    for turn in range(int(rank.max()) + 1):
        lanes = order[rank == turn]
        at = index[lanes]
        old[lanes] = place.words[at]
        new = change(old[lanes].view(type.dtype), *(v[lanes].view(type.dtype) for v in values))
        place.words[at] = as_raw(np.ascontiguousarray(new))
    return old
