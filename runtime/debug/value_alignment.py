"""Pairs that names do not tell: by shape and values, and tensors that are copies of ones that have a partner."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from .chunks import flat_chunks, sample
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
    theirs: dict[Hashable, list[tuple[Entry, Array]]] = defaultdict(list)
    for entry in stage.max:
        values = _telling_values(entry)
        if values is not None:
            theirs[_kind_of_form(entry)].append((entry, values))
    known = {form: _Known(found) for form, found in theirs.items()}
    options = []
    for entry in stage.torch:
        values = _telling_values(entry) if _kind_of_form(entry) in known else None
        if values is not None:
            for distance, other in known[_kind_of_form(entry)].near(values):
                limit = NEAR_IN_LAYER if _same_layer(entry, other) else NEAR
                if distance <= limit and stage.fits(entry, other):
                    options.append((distance, *_unlike(stage, entry, other), entry, other))
    options.sort(key=lambda option: option[:-2])
    taken: set[int] = set()
    for *_, one, two in options:
        if not taken & {id(one), id(two)}:
            taken |= {id(one), id(two)}
            stage.pair(one, two, "values")
    stage.drop(*([entry for entry in side if id(entry) in taken] for side in (stage.torch, stage.max)))


class _Known:
    """Tensors of one shape and type by their norms: what is near in values is near in norm."""

    def __init__(self, found: list[tuple[Entry, Array]]) -> None:
        samples = np.stack([values for _, values in found])
        norms = np.linalg.norm(samples, axis=1)
        order = np.argsort(norms, kind="stable")
        self.entries = [found[place][0] for place in order]
        self.samples, self.norms = samples[order], norms[order]

    def near(self, values: Array) -> list[tuple[float, Entry]]:
        """Those that are near enough to be of interest, with their distances."""
        norm = float(np.linalg.norm(values))
        place = int(np.searchsorted(self.norms, norm))
        start = max(0, min(place - CANDIDATES // 2, len(self.entries) - CANDIDATES))
        end = start + CANDIDATES
        apart = np.linalg.norm(self.samples[start:end] - values, axis=1)
        distances = apart / np.maximum(self.norms[start:end], norm)
        return [
            (float(distances[each]), self.entries[start + int(each)])
            for each in np.flatnonzero(distances <= NEAR_IN_LAYER)
        ]


def copies_of_paired(stage: Stage) -> None:
    """A tensor with the bits of another of its own side is that one, under a second name, and has its partner."""
    from .alignment import Match  # that module imports this one

    for side in ("torch", "max"):
        left = stage.torch if side == "torch" else stage.max
        wanted = {_form(entry) for entry in left}
        known: dict[tuple[Hashable, bytes], list[Match]] = defaultdict(list)
        for match in stage.found.matches:
            tensor = match.torch if side == "torch" else match.max
            whole = match.torch_part is None and match.max_part is None and match.copied is None
            form = (without_ones(tensor.stored.shape), tensor.stored.dtype)
            if whole and form in wanted:
                known[form, _digest(tensor.stored.read())].append(match)
        forms = {form for form, _ in known}
        # of one with a namesake on the other side, which has no partner either, that is the story to tell
        namesakes = {entry.name for entry in (stage.max if side == "torch" else stage.torch)}
        found = []
        for entry in left:
            if _form(entry) not in forms or entry.name in namesakes or _telling_values(entry) is None:
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


def _form(entry: Entry) -> Hashable:
    return (without_ones(entry.tensor.stored.shape), entry.tensor.stored.dtype)


def _kind_of_form(entry: Entry) -> Hashable:
    """What shapes that fit have in common, and the kind of type: two programs may compute in different widths."""
    stored = entry.tensor.stored
    kind = "integer" if stored.dtype.kind in "iu" else "bool" if stored.dtype.kind == "b" else "float"
    return (stored.size, without_ones(stored.shape)[-1:] if kind == "float" else (), kind)


def _telling_values(entry: Entry) -> Array | None:
    """A sample of a tensor that has enough different elements for its values to mean something."""
    stored = entry.tensor.stored
    if stored.size < 4:
        return None
    values = sample(stored.read())
    if not np.isfinite(values).all() or len(np.unique(values)) < 3:
        return None
    return values


def _unlike(stage: Stage, one: Entry, other: Entry) -> tuple[int, int, int, int]:
    """Smallest is best: by how much of the paths is the same, then by place in the order."""
    paths = 0 if one.name.path == other.name.path else 1 if _same_layer(one, other) else 2
    ports = int(one.name.port != other.name.port)
    gap = abs(one.tensor.place - other.tensor.place) if stage.both_ordered else 0
    return (paths, ports, gap, one.tensor.place)


def _same_layer(one: Entry, other: Entry) -> bool:
    return bool(one.name.numbers) and one.name.numbers == other.name.numbers


def _digest(array: Array) -> bytes:
    digest = hashlib.sha256()
    for chunk in flat_chunks(array):
        digest.update(np.ascontiguousarray(chunk).view(np.uint8).data)
    return digest.digest()
