"""Which tensor of one program is which of another's: by name, by rules about names, then by shape and values.

Each stage takes what the ones before it left over, and pairs only what can be told apart. The stages by values are in
`value_alignment`, the reasons for what has no partner in `alignment_reasons`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .alignment_reasons import reasons
from .fused_layouts import Part, part_sizes, parts_of
from .shape_matching import shapes_fit
from .tensor_folders import Dump, DumpedTensor
from .tensor_names import FUSED, Path, TensorName, parse_name, renamed
from .value_alignment import copies_of_paired, pairs_by_value

Side = Literal["torch", "max"]
Rule = Literal["name", "renamed", "prefix", "fused", "argument", "values", "copy", "only one"]

MOST_OPTIONS = 4096
"""Pairs of equal key among which one looks for those that fit only each other."""

_PARAMETERS = ("weight", "bias")


@dataclass(eq=False)
class Entry:
    """A tensor and its name in the common spelling."""

    tensor: DumpedTensor
    name: TensorName


@dataclass(frozen=True)
class Match:
    """Two tensors that are the same one, or a part of a fused one; ``copied`` names a tensor with the same bits."""

    torch: DumpedTensor
    max: DumpedTensor
    rule: Rule
    torch_part: Part | None = None
    max_part: Part | None = None
    copied: str | None = None


@dataclass(frozen=True)
class Leftover:
    """A tensor, or a part of one, without a partner."""

    side: Side
    tensor: DumpedTensor
    reason: str


@dataclass
class Alignment:
    """The pairs, in the order of execution, and what is left."""

    matches: list[Match] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


@dataclass
class Stage:
    """One step of both programs, while it is being aligned."""

    torch: list[Entry]
    max: list[Entry]
    allow_reshape: bool
    both_ordered: bool
    found: Alignment = field(default_factory=Alignment)

    def fits(self, torch: Entry, other: Entry) -> bool:
        """Whether the shapes allow a comparison."""
        one, two = torch.tensor.stored, other.tensor.stored
        integers = one.dtype.kind in "iu" and two.dtype.kind in "iu"
        return shapes_fit(one.shape, two.shape, integers, self.allow_reshape)

    def pair(self, torch: Entry, other: Entry, rule: Rule) -> None:
        """Two whole tensors belong together."""
        self.found.matches.append(Match(torch.tensor, other.tensor, rule))

    def drop(self, torch: Iterable[Entry], other: Iterable[Entry]) -> None:
        """What has a partner takes no part in later stages."""
        gone = {*map(id, torch), *map(id, other)}
        self.torch = [entry for entry in self.torch if id(entry) not in gone]
        self.max = [entry for entry in self.max if id(entry) not in gone]


def align(
    torch: Dump, other: Dump, renamings: Mapping[str, str] | None = None, allow_reshape: bool = False
) -> Alignment:
    """Pair the tensors of two dumps.

    Args:
        torch: one side.
        other: the other one.
        renamings: parts of paths of the first side, and what they are called on the other.
        allow_reshape: whether tensors of different shapes with as many elements may be paired.
    """
    found = Alignment()
    pairs, lonely = _paired_steps(torch, other)
    for ours, theirs in pairs:
        entries = [Entry(tensor, _canonical(renamed(tensor.name, dict(renamings or {})))) for tensor in ours]
        stage = Stage(entries, [Entry(tensor, _canonical(tensor.name)) for tensor in theirs], allow_reshape, False)
        stage.both_ordered = torch.ordered and other.ordered
        _align_step(stage)
        by_torch = torch.ordered or not other.ordered
        stage.found.matches.sort(key=lambda match: _position(match, by_torch))
        found.matches += stage.found.matches
        found.leftovers += stage.found.leftovers
    for side, tensors, reason in lonely:
        found.leftovers += [Leftover(side, tensor, reason) for tensor in tensors]
    return found


def _canonical(text: str) -> TensorName:
    return parse_name(text).canonical


def _position(match: Match, by_torch: bool) -> tuple[int, int]:
    first, second = match.torch.place, match.max.place
    return (first, second) if by_torch else (second, first)


def _paired_steps(
    torch: Dump, other: Dump
) -> tuple[list[tuple[list[DumpedTensor], list[DumpedTensor]]], list[tuple[Side, list[DumpedTensor], str]]]:
    """The tensors of the steps that belong together, and those of steps that one side does not have."""
    ours, theirs = ({step: dump.of_step(step) for step in dump.steps} for dump in (torch, other))
    if len(ours) == 1 and len(theirs) > 1:
        ours = _by_runs(ours, list(theirs))
    elif len(theirs) == 1 and len(ours) > 1:
        theirs = _by_runs(theirs, list(ours))
    if len(ours) == len(theirs) and not ours.keys() & theirs.keys():
        theirs = dict(zip(ours, theirs.values(), strict=True))
    lonely: list[tuple[Side, list[DumpedTensor], str]] = []
    lonely += [("torch", found, f"max has no step {step}") for step, found in ours.items() if step not in theirs]
    lonely += [("max", found, f"torch has no step {step}") for step, found in theirs.items() if step not in ours]
    return [(found, theirs[step]) for step, found in ours.items() if step in theirs], lonely


def _by_runs(flat: dict[int, list[DumpedTensor]], steps: list[int]) -> dict[int, list[DumpedTensor]]:
    """The tensors of a flat folder by steps: those of the second execution end in ``(2)``, and so on."""
    found: dict[int, list[DumpedTensor]] = defaultdict(list)
    for tensor in next(iter(flat.values())):
        run = parse_name(tensor.name).run
        step = steps[run - 1] if 1 <= run <= len(steps) else steps[-1] + run - len(steps)
        found[step].append(replace(tensor, name=tensor.name.removesuffix(f"({run})")))
    return dict(sorted(found.items()))


def _align_step(stage: Stage) -> None:
    if len(stage.torch) == len(stage.max) == 1 and stage.fits(stage.torch[0], stage.max[0]):
        same = stage.torch[0].tensor.name == stage.max[0].tensor.name
        stage.pair(stage.torch[0], stage.max[0], "name" if same else "only one")
        return
    everything = [*stage.torch], [*stage.max]
    _pair_by(stage, "name", lambda entry: entry.tensor.name)
    _pair_by_rules(stage, "renamed")
    _translate_prefixes(stage)
    _pair_by_rules(stage, "prefix")
    _pair_fused(stage)
    _pair_by(stage, "argument", lambda entry: _key(entry, None), same_kind=True)
    pairs_by_value(stage)
    copies_of_paired(stage)
    stage.found.leftovers += reasons(stage, *everything)


def _pair_by_rules(stage: Stage, rule: Rule) -> None:
    _pair_by(stage, rule, lambda entry: _key(entry, entry.name.field))
    _pair_by(stage, rule, lambda entry: _key(entry, _field(entry.name)))


def _key(entry: Entry, field_name: str | None) -> tuple[Hashable, ...]:
    name = entry.name
    return (name.path, name.call, name.run, name.port, field_name)


def _field(name: TensorName) -> str:
    """A single result is ``-output`` in one program and ``-output_0`` in another."""
    return "" if name.field == "0" else name.field


def _pair_by(stage: Stage, rule: Rule, key: Callable[[Entry], Hashable], same_kind: bool = False) -> None:
    """Pair those of equal key; of several, those that fit only each other."""
    theirs: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in stage.max:
        theirs[key(entry)].append(entry)
    ours: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in stage.torch:
        if key(entry) in theirs:
            ours[key(entry)].append(entry)
    done: list[tuple[Entry, Entry]] = []
    for shared, entries in ours.items():
        if len(entries) * len(theirs[shared]) > MOST_OPTIONS:
            continue
        options = [(one, two) for one in entries for two in theirs[shared] if stage.fits(one, two)]
        if same_kind:
            options = [(one, two) for one, two in options if _kind(one) == _kind(two)]
        for one, two in options:
            if sum(one is other for other, _ in options) == 1 and sum(two is other for _, other in options) == 1:
                done.append((one, two))
    for one, two in done:
        stage.pair(one, two, rule)
    stage.drop((one for one, _ in done), (two for _, two in done))


def _kind(entry: Entry) -> str:
    kind = entry.tensor.stored.dtype.kind
    return "integer" if kind in "iu" else "bool" if kind == "b" else "float"


def _translate_prefixes(stage: Stage) -> None:
    """Paths that differ in their beginnings only: many pairs tell what a beginning is called on the other side."""
    votes: dict[tuple[Path, Path], int] = defaultdict(int)
    longest: dict[tuple[Path, Path], int] = defaultdict(int)
    theirs: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in stage.max:
        theirs[_ending(entry)].append(entry)
    for entry in stage.torch:
        for other in theirs[_ending(entry)] if len(theirs[_ending(entry)]) <= 64 else ():
            one, two = entry.name.path, other.name.path
            length = _common_ending(one, two)
            begins = one[: len(one) - length], two[: len(two) - length]
            if stage.fits(entry, other) and not any(part.isdigit() for part in (*begins[0], *begins[1])):
                votes[begins] += 1
                longest[begins] = max(longest[begins], length)
    accepted: dict[Path, Path] = {}
    for (one, two), count in sorted(votes.items(), key=lambda vote: -vote[1]):
        if one not in accepted and two not in accepted.values() and (count > 1 or longest[one, two] > 1):
            accepted[one] = two
    paths = {entry.name.path for entry in stage.max}
    layers = {path[:end] for path in paths for end in range(1, len(path))}
    for entry in stage.torch:
        for one, two in sorted(accepted.items(), key=lambda pair: -len(pair[0])):
            path = (*two, *entry.name.path[len(one) :])
            if entry.name.path[: len(one)] == one and (path in paths or path[:-1] in layers):
                entry.name = replace(entry.name, path=path)
                break


def _ending(entry: Entry) -> Hashable:
    name = entry.name
    return (name.numbers, name.path[-1:], name.call, name.run, name.port, _field(name))


def _common_ending(one: Path, other: Path) -> int:
    length = 0
    for first, second in zip(reversed(one), reversed(other), strict=False):
        if first != second:
            break
        length += 1
    return length


def _pair_fused(stage: Stage) -> None:
    """A fused projection of one side beside its parts on the other."""
    for fused_side in ("max", "torch"):
        whole, split = (stage.max, stage.torch) if fused_side == "max" else (stage.torch, stage.max)
        parts = {_key(entry, _field(entry.name)): entry for entry in split}
        for entry in whole:
            place = -2 if entry.name.path[-1:] and entry.name.path[-1] in _PARAMETERS else -1
            names = FUSED.get(entry.name.path[place], ()) if len(entry.name.path) >= -place else ()
            given: dict[int, Entry] = {}
            for number, part in enumerate(names):
                path = list(entry.name.path)
                path[place] = part
                name = replace(entry.name, path=tuple(path))
                found = parts.get(_key(Entry(entry.tensor, name), _field(name)))
                if found is not None:
                    given[number] = found
            if given:
                _pair_parts(stage, fused_side, entry, names, given)


def _pair_parts(stage: Stage, side: Side, fused: Entry, names: tuple[str, ...], given: dict[int, Entry]) -> None:
    parts: dict[int, Part | None] = dict.fromkeys(given)
    if fused.name.port != "input":
        found = _parts_by_size(fused, len(names), given)
        if found is None:
            return
        parts = {number: found[number] for number in given}
        missing = [number for number in range(len(names)) if number not in given]
        other = "torch" if side == "max" else "max"
        stage.found.leftovers += [
            Leftover(side, fused.tensor, f"{found[number]}: {other} has no {names[number]}") for number in missing
        ]
    for number, entry in given.items():
        torch, other_entry = (entry, fused) if side == "max" else (fused, entry)
        torch_part, max_part = (None, parts[number]) if side == "max" else (parts[number], None)
        stage.found.matches.append(Match(torch.tensor, other_entry.tensor, "fused", torch_part, max_part))
    stage.drop([*given.values(), fused], [*given.values(), fused])


def _parts_by_size(fused: Entry, count: int, given: dict[int, Entry]) -> list[Part] | None:
    """Where the parts lie; None if the sizes do not add up or the rest of the shapes differs."""
    whole = fused.tensor.stored
    axis = 0 if fused.name.path[-1] in _PARAMETERS else -1
    if not whole.shape or not all(entry.tensor.stored.shape for entry in given.values()):
        return None
    known = [given[number].tensor.stored.shape[axis] if number in given else None for number in range(count)]
    sizes = part_sizes(whole.shape[axis], known)
    if sizes is None or 0 in sizes:
        return None
    for number, entry in given.items():
        shape = list(whole.shape)
        shape[axis] = sizes[number]
        if not shapes_fit(entry.tensor.stored.shape, tuple(shape)):
            return None
    return parts_of(axis, sizes, whole.read(), {number: entry.tensor.stored.read() for number, entry in given.items()})
