"""The tensors that a program wrote while it ran: one file, or a folder of files, perhaps with a folder for each step.

The order is that of execution where it is known: ``tensor_names.txt`` lists it, and archives keep the order in which
they were filled. Else it is guessed from the names (`execution_key`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from halfulp.compiler.errors import HalfulpError, NotFoundError

from .tensor_files import SUFFIXES, StoredTensor, open_tensors
from .tensor_names import execution_key, parse_name

ORDER_FILE = "tensor_names.txt"

_STEP = re.compile(r"(?:step[_-]?)?(\d+)")


@dataclass(frozen=True)
class DumpedTensor:
    """A tensor of one side: its name, which does not tell the step, and where it comes in the order."""

    name: str
    step: int
    stored: StoredTensor
    place: int = 0


@dataclass
class Dump:
    """One side.

    Attributes:
        path: the file or folder.
        tensors: in order.
        ordered: whether the order is known to be that of execution.
        problems: what cannot be compared, and why: files that cannot be read, names that two files share.
        skipped: files and folders that are no tensors.
    """

    path: Path
    tensors: list[DumpedTensor] = field(default_factory=list)
    ordered: bool = False
    problems: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def steps(self) -> list[int]:
        """The steps that it has, ascending; a flat folder has step 0 only."""
        return sorted({tensor.step for tensor in self.tensors})

    def of_step(self, step: int) -> list[DumpedTensor]:
        """The tensors of one step, in order."""
        return [tensor for tensor in self.tensors if tensor.step == step]


def read_dump(path: str | Path) -> Dump:
    """Everything that a file or folder holds; of files that cannot be read, why.

    Raises:
        NotFoundError: there is nothing at this path.
    """
    path = Path(path)
    dump = Dump(path)
    if path.is_dir():
        try:
            _read_folder(dump, path)
        except OSError as error:
            dump.problems.append((path.name, str(error)))
    elif path.exists():
        found = _open(dump, path, path.name)
        named = [DumpedTensor(printable(tensor.name or path.stem), 0, tensor) for tensor in found]
        dump.ordered = len(named) > 1 and path.suffix != ".safetensors"
        dump.tensors = _without_duplicates(dump, named)
        if not dump.ordered:
            dump.tensors.sort(key=lambda tensor: execution_key(tensor.name))
    else:
        raise NotFoundError(f"there is no file or folder '{path}'")
    dump.tensors = [replace(tensor, place=place) for place, tensor in enumerate(dump.tensors)]
    return dump


def printable(name: str) -> str:
    """The name with everything escaped that would end a line, act on a terminal or be no Unicode."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in name)


def _read_folder(dump: Dump, path: Path) -> None:
    # in order, so that of two folders for one step always the same one counts; the other is named as skipped
    entries = sorted(path.iterdir(), reverse=True)
    folders = {int(match[1]): entry for entry in entries if entry.is_dir() and (match := _step_of(entry))}
    flat = _tensors_of(dump, path, 0, set(folders.values()))
    if flat and folders:
        dump.skipped += [
            f"{folder.name}/ (there are tensors beside the folders of steps)" for folder in folders.values()
        ]
    elif folders:
        dump.tensors = [
            tensor for step, folder in sorted(folders.items()) for tensor in _tensors_of(dump, folder, step, set())
        ]
        return
    dump.tensors = flat


def _step_of(folder: Path) -> re.Match[str] | None:
    return _STEP.fullmatch(folder.name)


def _tensors_of(dump: Dump, folder: Path, step: int, known: set[Path]) -> list[DumpedTensor]:
    """The tensors of one folder in order; ``known`` are folders that somebody else looks at."""
    found: list[DumpedTensor] = []
    inside = "" if folder == dump.path else f"{folder.name}/"
    for entry in sorted(folder.iterdir()):
        if entry.suffix in SUFFIXES and not entry.is_dir():
            opened = _open(dump, entry, printable(inside + entry.name))
            found += [DumpedTensor(printable(_name_in_folder(entry, tensor)), step, tensor) for tensor in opened]
        elif entry.name != ORDER_FILE and entry not in known:
            dump.skipped.append(printable(f"{inside}{entry.name}{'/' if entry.is_dir() else ''}"))
    found = _without_duplicates(dump, found)
    listed = _order_file(folder / ORDER_FILE)
    if listed is None:
        archives = {tensor.stored.path for tensor in found}
        if len(archives) == 1 and len(found) > 1 and found[0].stored.path.suffix != ".safetensors":
            dump.ordered = True
            return found
        return sorted(found, key=lambda tensor: execution_key(tensor.name))
    dump.ordered = True
    bad = {name for name, _ in dump.problems}
    names = {tensor.name for tensor in found}
    dump.problems += [
        (name, f"{inside}{ORDER_FILE} lists it, and there is no file of that name")
        for name in listed
        if name not in names and not bad & {name, *(f"{inside}{name}{suffix}" for suffix in SUFFIXES)}
    ]
    places = {name: place for place, name in enumerate(listed)}
    return sorted(found, key=lambda tensor: (places.get(tensor.name, len(places)), execution_key(tensor.name)))


def _open(dump: Dump, path: Path, shown: str) -> list[StoredTensor]:
    try:
        return open_tensors(path)
    except (HalfulpError, OSError) as error:
        dump.problems.append((shown, printable(str(error))))
        return []


def _name_in_folder(path: Path, tensor: StoredTensor) -> str:
    """The file's name; of an archive the name inside it; of what a layer returned as a tuple or dict, both."""
    if not tensor.name:
        return path.stem
    return f"{path.stem}_{tensor.name}" if parse_name(path.stem).port else tensor.name


def _order_file(path: Path) -> list[str] | None:
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return list(dict.fromkeys(printable(line.strip()) for line in lines if line.strip()))


def _without_duplicates(dump: Dump, found: list[DumpedTensor]) -> list[DumpedTensor]:
    """Which of two tensors of one name is meant nobody can tell, so neither takes part."""
    counts = Counter(tensor.name for tensor in found)
    for name, count in counts.items():
        if count > 1:
            files = sorted({printable(tensor.stored.path.name) for tensor in found if tensor.name == name})
            dump.problems.append((name, f"{count} tensors have this name, in {' and '.join(files)}; keep one of them"))
    return [tensor for tensor in found if counts[tensor.name] == 1]
