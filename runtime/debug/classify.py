"""Which rounding explains another program's result: the readings that give its bits, element by element.

``classify(theirs, readings)`` is the core; readings come from `halfulp.runtime.debug.readings` or from anywhere else.
``classify_graph`` makes those of a whole graph. Nothing is inferred from how large a difference is: a reading explains
an element if and only if it has its bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.compiler.graph import Graph
from halfulp.compiler.options import CompileOptions

from ..arrays import contiguous, shape_text
from .graph_inputs import bound_inputs, bound_weights
from .readings import graph_readings
from .running import run_once
from .tensor_files import read_tensors
from .tensor_metrics import is_float
from .ulps import Array, differing

EXAMPLES = 3
NONE = "no reading"


class Example(msgspec.Struct, frozen=True):
    """One element: its index, what we compute, and what the other program has."""

    index: tuple[int, ...]
    ours: float
    theirs: float


class Explanation(msgspec.Struct, frozen=True):
    """One reading beside the other program's result.

    Attributes:
        reading: its name; ``no reading`` for what none explains.
        reproduces: how many of all elements it gives bit for bit.
        differing: how many of those that differ from ours it gives.
        assigned: how many of the differing ones are put down to it.
        also: readings that give the very same elements of those, so that the two cannot be told apart here.
        examples: the first of those.
    """

    reading: str
    reproduces: int
    differing: int
    assigned: int
    also: tuple[str, ...]
    examples: tuple[Example, ...]


class Classification(msgspec.Struct, frozen=True):
    """Why a result differs. ``print(classification)`` shows it.

    Each differing element is put down to one reading: the one that explains the most differing elements, then the one
    that explains the most of what is left, and so on. So one cause is named where one is enough.

    Attributes:
        elements: how many there are.
        differing: how many of them differ from ours in a bit, all NaN being equal.
        explained: how many of the differing ones some reading gives.
        whole: the readings that give every element.
        explanations: every reading that something is put down to, and ``no reading`` last if something is left.
    """

    elements: int
    differing: int
    explained: int
    whole: tuple[str, ...]
    explanations: tuple[Explanation, ...]

    @property
    def cause(self) -> str | None:
        """The one reading that explains every differing element; None if there is no such, or nothing differs."""
        if len(self.explanations) == 1 and self.explained == self.differing > 0:
            return self.explanations[0].reading
        return None

    def to_json(self) -> str:
        """All of it, as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        from .fastmath_text import classification_text

        return classification_text(self)


def classify(theirs: Array, readings: Mapping[str, Array], ours: Array | None = None) -> Classification:
    """Find out which readings give another program's bits.

    Args:
        theirs: the other program's result; integers of the same width are taken for the bits of floats.
        readings: results by name, in the order in which they are preferred.
        ours: what differences are counted from; by default the first reading.

    Raises:
        GraphError: there is no reading, or a shape differs.
        GraphTypeError: an element type differs.
    """
    if not readings:
        raise GraphError("classify() needs at least one reading; multiply_add_readings(a, b, c) makes some")
    ours = next(iter(readings.values())) if ours is None else ours
    theirs = as_floats(theirs, ours, "the other result")
    matches = {name: ~differing(_checked(array, ours, name), theirs) for name, array in readings.items()}
    wrong = differing(ours, theirs)
    labels = _labels(matches, wrong)
    names = list(matches)
    explanations = []
    for number in [*dict.fromkeys(labels[labels >= 0].tolist()), -1]:
        assigned = (labels == number) & wrong
        if assigned.any():
            match = matches[names[number]] if number >= 0 else np.zeros_like(wrong)
            counts = int(match.sum()), int((match & wrong).sum()), int(assigned.sum())
            name = names[number] if number >= 0 else NONE
            also = tuple(n for n, m in matches.items() if number >= 0 and n != name and not (assigned & ~m).any())
            explanations.append(Explanation(name, *counts, also, _examples(assigned, ours, theirs)))
    explanations.sort(key=lambda e: (e.reading == NONE, -e.assigned))
    return Classification(
        elements=int(theirs.size),
        differing=int(wrong.sum()),
        explained=int((wrong & (labels >= 0)).sum()),
        whole=tuple(name for name, match in matches.items() if match.all()),
        explanations=tuple(explanations),
    )


def element_labels(theirs: Array, readings: Mapping[str, Array], ours: Array) -> Array:
    """For each element the number of the reading that it is put down to, -1 for none and -2 where nothing differs."""
    theirs = as_floats(theirs, ours, "the other result")
    matches = {name: ~differing(array, theirs) for name, array in readings.items()}
    wrong = differing(ours, theirs)
    return np.where(wrong, _labels(matches, wrong), -2)


def _labels(matches: Mapping[str, Array], wrong: Array) -> Array:
    """Greedily: the reading that explains most of what is unexplained, until none explains any of it."""
    labels, left = np.full(wrong.shape, -1), wrong.copy()
    while left.any():
        counts = [int((match & left).sum()) for match in matches.values()]
        best = int(np.argmax(counts))
        if not counts[best]:
            break
        found = left & list(matches.values())[best]
        labels[found] = best
        left &= ~found
    return labels


def _examples(where: Array, ours: Array, theirs: Array) -> tuple[Example, ...]:
    places = np.argwhere(where)[:EXAMPLES]
    return tuple(
        Example(index, float(ours[index]), float(theirs[index])) for index in (tuple(map(int, at)) for at in places)
    )


def as_floats(array: Array, like: Array, subject: str) -> Array:
    """``array`` in the type of ``like``: as it is, or, beside floats, by its bits: integers or bytes of the same width.

    Raises:
        GraphError: the shape differs.
        GraphTypeError: the type does, and it does not hold bits.
    """
    array = np.asarray(array)
    holds_bits = array.dtype.kind in "iuV" and array.dtype.itemsize == like.dtype.itemsize and is_float(like.dtype)
    if array.dtype != like.dtype and holds_bits:
        array = contiguous(array).view(like.dtype)
    return _checked(array, like, subject)


def _checked(array: Array, like: Array, subject: str) -> Array:
    if array.shape != like.shape:
        raise GraphError(f"{subject} has shape {shape_text(array.shape)}, but ours is {shape_text(like.shape)}")
    if array.dtype != like.dtype:
        ours = DType.from_numpy(like.dtype)
        raise GraphTypeError(f"{subject} is {array.dtype}, but ours is {ours}; compare results of one type")
    return array


def classify_graph(
    graph: Graph,
    theirs: Mapping[str, Array] | Sequence[Array] | str | Path,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    weights: Mapping[str, Any] | None = None,
    options: CompileOptions | None = None,
) -> dict[str, Classification]:
    """Explain what another program computed in the place of a graph, output by output.

    Args:
        graph: a complete graph.
        theirs: the other program's outputs: in order, by name (``output_0`` and so on), or a file of them (``.npy``,
            ``.npz``, ``.pt``, ...). Outputs that are left out of a mapping are not looked at.
        inputs: an array for each input, by name or in order; None makes seeded ones.
        weights: by name; those that are missing are seeded.
        options: what differences are counted from; None is the default mode.

    Raises:
        NotFoundError: there is no such file.
        GraphError, GraphTypeError: outputs, inputs or weights do not fit the graph.
    """
    arrays, bound = bound_inputs(graph, inputs), bound_weights(graph, weights)
    options = CompileOptions() if options is None else options
    ours = run_once(graph, options, arrays, bound)
    named = _named(graph, theirs, len(ours))
    readings = graph_readings(graph, arrays, bound, options)
    result = {}
    for index, array in named.items():
        of_output = {name: outputs[index] for name, outputs in readings.items()}
        result[f"output_{index}"] = classify(as_floats(array, ours[index], f"output_{index}"), of_output, ours[index])
    return result


def _named(graph: Graph, theirs: Mapping[str, Array] | Sequence[Array] | str | Path, count: int) -> dict[int, Array]:
    """The arrays by the number of the output."""
    given: Any = read_tensors(theirs) if isinstance(theirs, str | Path) else theirs
    known = {f"output_{index}": index for index in range(count)}
    if isinstance(given, Mapping) and given and set(given) <= set(known):
        return {known[name]: array for name, array in given.items()}
    arrays = list(given.values()) if isinstance(given, Mapping) else list(given)
    if len(arrays) != count:
        names = ", ".join(known)
        raise GraphError(
            f"graph '{graph.name}' has {count} outputs, but {len(arrays)} are given; name them {names} to give some"
        )
    return dict(enumerate(arrays))
