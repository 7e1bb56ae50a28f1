"""Pairs that names do not tell: by shape and values, and tensors that are copies of ones that have a partner."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from .chunks import flat_chunks, relative_distance, sample
from .shape_matching import without_ones
from .tensor_names import parse_name
from .ulps import Array

if TYPE_CHECKING:
    from .alignment import Entry, Match, Stage

NEAR, NEAR_IN_LAYER = 0.01, 0.1
"""How far apart two tensors may be that values pair, relative to their norm: anywhere, and in the same layer."""

CANDIDATES = 32
"""How many tensors of the nearest norms each is held against."""


def pairs_by_value(stage: Stage) -> None:
    """Pair what has the same elements but for rounding; of equally near ones, what is nearer in name and order."""
    theirs: dict[Hashable, list[tuple[float, Entry, Array]]] = defaultdict(list)
    for entry in stage.max:
        values = _telling_values(entry)
        if values is not None:
            theirs[_form(entry)].append((float(np.linalg.norm(values)), entry, values))
    for candidates in theirs.values():
        candidates.sort(key=lambda candidate: candidate[0])
    options = []
    for entry in stage.torch:
        found = theirs.get(_form(entry))
        values = _telling_values(entry) if found else None
        if found and values is not None:
            options += [
                (*_rank(stage, entry, other, values, known), entry, other) for other, known in _near(found, values)
            ]
    limits = {True: NEAR_IN_LAYER, False: NEAR}
    options = [option for option in options if option[0] <= limits[_same_layer(option[-2], option[-1])]]
    options.sort(key=lambda option: option[:-2])
    taken: set[int] = set()
    for *_, one, two in options:
        if not taken & {id(one), id(two)}:
            taken |= {id(one), id(two)}
            stage.pair(one, two, "values")
    stage.drop(*([entry for entry in side if id(entry) in taken] for side in (stage.torch, stage.max)))


def copies_of_paired(stage: Stage) -> None:
    """A tensor with the bits of another of its own side is that one, under a second name, and has its partner."""
    from .alignment import Match  # that module imports this one

    for side in ("torch", "max"):
        left = stage.torch if side == "torch" else stage.max
        wanted = {_form(entry) for entry in left}
        known: dict[Hashable, list[Match]] = defaultdict(list)
        for match in stage.found.matches:
            tensor = match.torch if side == "torch" else match.max
            whole = match.torch_part is None and match.max_part is None and match.copied is None
            form = (without_ones(tensor.stored.shape), tensor.stored.dtype)
            if whole and form in wanted:
                known[form, _digest(tensor.stored.read())].append(match)
        found = []
        for entry in left:
            if _telling_values(entry) is None or _has_namesake(stage, side, entry):
                continue
            matches = known.get((_form(entry), _digest(entry.tensor.stored.read())))
            if matches:
                match = max(matches, key=lambda match: _common_layers(match, side, entry))
                found.append(entry)
                ours, theirs = (entry.tensor, match.max) if side == "torch" else (match.torch, entry.tensor)
                copied = match.torch.name if side == "torch" else match.max.name
                stage.found.matches.append(Match(ours, theirs, "copy", copied=copied))
        stage.drop(found, found)


def _common_layers(match: Match, side: str, entry: Entry) -> int:
    """How many layers from the root on two names share: of several equal tensors the nearest is named."""
    other = match.torch.name if side == "torch" else match.max.name
    pairs = zip(parse_name(other).path, parse_name(entry.tensor.name).path, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _has_namesake(stage: Stage, side: str, entry: Entry) -> bool:
    """Whether the other side has a tensor of this name that has no partner either: that is the story to tell."""
    others = stage.max if side == "torch" else stage.torch
    return any(other.name == entry.name for other in others)


def _form(entry: Entry) -> Hashable:
    return (without_ones(entry.tensor.stored.shape), entry.tensor.stored.dtype)


def _telling_values(entry: Entry) -> Array | None:
    """A sample of a tensor that has enough different elements for its values to mean something."""
    stored = entry.tensor.stored
    if stored.size < 4:
        return None
    values = sample(stored.read())
    if not np.isfinite(values).all() or len(np.unique(values)) < 3:
        return None
    return values


def _near(found: list[tuple[float, Entry, Array]], values: Array) -> list[tuple[Entry, Array]]:
    norms = [norm for norm, _, _ in found]
    place = int(np.searchsorted(norms, float(np.linalg.norm(values))))
    start = max(0, min(place - CANDIDATES // 2, len(found) - CANDIDATES))
    return [(entry, known) for _, entry, known in found[start : start + CANDIDATES]]


def _rank(stage: Stage, one: Entry, other: Entry, values: Array, known: Array) -> tuple[float, int, int, int, int]:
    """Smallest is best: by values, then by how much of the paths is the same, then by place in the order."""
    distance = relative_distance(values, known)
    unlike = 0 if one.name.path == other.name.path else 1 if _same_layer(one, other) else 2
    ports = int(one.name.port != other.name.port)
    gap = abs(one.tensor.place - other.tensor.place) if stage.both_ordered else 0
    return (distance, unlike, ports, gap, one.tensor.place)


def _same_layer(one: Entry, other: Entry) -> bool:
    return bool(one.name.numbers) and one.name.numbers == other.name.numbers


def _digest(array: Array) -> bytes:
    digest = hashlib.sha256()
    for chunk in flat_chunks(array):
        digest.update(np.ascontiguousarray(chunk).view(np.uint8).data)
    return digest.digest()
