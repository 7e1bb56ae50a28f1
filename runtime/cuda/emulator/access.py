"""Loads and stores, as steps of a decoded kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .lanes import Lanes
from .spaces import Access, Place
from .types import RAW, Array, DType, ScalarType

Step = Callable[[Lanes], None]
Locate = Callable[[Lanes, Array, Access], list[Place]]


def address_of(lanes: Lanes, slot: int, offset: int) -> Array:
    """The participants' addresses, or one for all; 32-bit addresses are extended by zeros."""
    base = lanes.taking_part(lanes.registers[slot])
    if base.dtype != np.uint64:
        base = base.astype(np.uint64)
    return base + np.uint64(offset % (1 << 64)) if offset else base


def load(
    locate: Locate, access: Access, type: ScalarType, base: int, offset: int, destinations: Sequence[tuple[int, int]]
) -> Step:
    """``destinations`` are the slots and the bits of the registers, -1 for an element that nobody wants."""
    extensions = [_extension(type, RAW[bits]) for _, bits in destinations]

    def step(lanes: Lanes) -> None:
        places = locate(lanes, address_of(lanes, base, offset), access)
        if lanes.races is not None:
            for place in places:
                lanes.races.read(lanes, place, access)
        for number, (slot, _) in enumerate(destinations):
            if slot >= 0:
                values = _gather(lanes, places, number)
                extend = extensions[number]
                lanes.put(slot, values if extend is None else extend(values))

    return step


def _gather(lanes: Lanes, places: list[Place], number: int) -> Array:
    """Element ``number`` of the participants' accesses."""
    if len(places) == 1 and places[0].chosen is None:
        place = places[0]
        return np.asarray(place.words[place.index + number if number else place.index])
    values = np.empty(lanes.number_taking_part, places[0].words.dtype)
    for place in places:
        values[slice(None) if place.chosen is None else place.chosen] = place.words[place.index + number]
    return values


def _extension(type: ScalarType, register: DType) -> Callable[[Array], Array] | None:
    """Sign or zero extension to the width of the register; None if the widths are the same."""
    if type.raw == register:
        return None
    if not type.is_signed:
        return lambda values: values.astype(register)
    wide = np.dtype(f"i{register.itemsize}")
    return lambda values: values.view(type.dtype).astype(wide).view(register)


def store(locate: Locate, access: Access, type: ScalarType, base: int, offset: int, sources: Sequence[int]) -> Step:
    """``sources`` are the slots of the elements; registers wider than the type are cut off."""

    def step(lanes: Lanes) -> None:
        places = locate(lanes, address_of(lanes, base, offset), access)
        if lanes.races is not None:
            for place in places:
                lanes.races.write(lanes, place, access)
        for number, slot in enumerate(sources):
            values = lanes.taking_part(lanes.registers[slot])
            if values.dtype != type.raw:
                values = values.astype(type.raw)
            for place in places:
                _scatter(place, number, values)

    return step


def _scatter(place: Place, number: int, values: Array) -> None:
    """Of lanes with the same address the last one wins."""
    index = place.index + number if number else place.index
    if place.chosen is not None and values.size > 1:
        values = values[place.chosen]
    if index.size == 1:
        values = values[-1:]
    place.words[index] = values
