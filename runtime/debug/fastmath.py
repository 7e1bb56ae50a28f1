"""One graph under every numeric mode: what differs from a baseline, by how much, who is nearer to the exact result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from halfulp.compiler.errors import CompileError
from halfulp.compiler.graph import Graph
from halfulp.compiler.options import CompileOptions

from ..model import Model
from .comparison import Exact, OutputResult, Reference, compared, exact_outputs
from .graph_inputs import bound_inputs, bound_weights, origin_text
from .modes import BASELINE, chosen_modes, mode_options
from .running import median_seconds, outputs_of, quiet_session
from .ulps import Array, differing

Outputs = list[Array]


class ModeResult(msgspec.Struct, frozen=True):
    """One mode.

    Attributes:
        mode: its name.
        options: what it was compiled with, as `CompileOptions.key` writes it.
        outputs: each output.
        same_as: an earlier mode that gave the same bits everywhere, if there is one.
        seconds: the median time of an execution.
        time_ratio: that, over the baseline's.
        contractions: each product and sum that became one fma, as `Model.numerics_report` says it.
        problem: why the graph cannot be compiled so; then the other fields are empty.
    """

    mode: str
    options: str
    outputs: tuple[OutputResult, ...] = ()
    same_as: str | None = None
    seconds: float = 0.0
    time_ratio: float = 0.0
    contractions: tuple[str, ...] = ()
    problem: str | None = None


class FastmathMatrix(msgspec.Struct, frozen=True):
    """All modes of one graph. ``print(matrix)`` shows a table, `to_json` is for programs.

    Attributes:
        graph: the graph's name.
        baseline: the mode that all are compared with.
        reference: what the errors are measured from.
        inputs: where the inputs came from, and their shapes.
        modes: the results, in the order asked for.
    """

    graph: str
    baseline: str
    reference: str
    inputs: str
    modes: tuple[ModeResult, ...]

    def mode(self, name: str) -> ModeResult:
        """The result of one mode.

        Raises:
            KeyError: it was not run.
        """
        found = {result.mode: result for result in self.modes}
        return found[name]

    def to_json(self) -> str:
        """All of it, as JSON; an infinite number is written as null."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        from .fastmath_text import matrix_text

        return matrix_text(self)


def fastmath_matrix(
    graph: Graph,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    weights: Mapping[str, Any] | None = None,
    modes: Iterable[str] | None = None,
    baseline: str = BASELINE,
    reference: Literal["float64"] | Reference | Sequence[Any] = "float64",
    options: CompileOptions | None = None,
    timed: bool = True,
) -> FastmathMatrix:
    """Run a graph under each mode and compare.

    Args:
        graph: a complete graph.
        inputs: an array for each input, by name or in order; None makes seeded ones.
        weights: by name; those that are missing are seeded.
        modes: names from `halfulp.runtime.debug.modes.MODES`; None takes all.
        baseline: the mode that the others are compared with.
        reference: ``"float64"`` evaluates the graph in float64; a function of the inputs, floats as float64, gives the
            outputs of another program; a sequence holds them.
        options: target, threads and effort.
        timed: whether to time the modes; all ratios are 0 otherwise.

    Raises:
        NotFoundError: an unknown mode.
        GraphError, GraphTypeError: inputs, weights or reference do not fit the graph.
        CompileError: the graph cannot be compiled under the baseline.
    """
    names = chosen_modes(modes)
    arrays, bound = bound_inputs(graph, inputs), bound_weights(graph, weights)
    models, problems = _load(graph, dict.fromkeys([baseline, *names]), options, bound)
    if baseline in problems:
        raise problems[baseline]
    results = {name: outputs_of(model, graph, arrays) for name, model in models.items()}
    exact = exact_outputs(graph, arrays, bound, reference, results[baseline])
    seconds = median_seconds(models, graph, arrays) if timed else dict.fromkeys(models, 0.0)
    done: list[ModeResult] = []
    for name in names:
        key = mode_options(name, options).key()
        if name in problems:
            done.append(ModeResult(name, key, problem=problems[name].message))
            continue
        twin = next((o.mode for o in done if not o.problem and same_bits(results[o.mode], results[name])), None)
        outputs = _all_compared(results[name], results[baseline], exact)
        ratio = seconds[name] / seconds[baseline] if seconds[baseline] else 0.0
        report = tuple(map(str, models[name].numerics_report()))
        done.append(ModeResult(name, key, outputs, twin, seconds[name], ratio, report))
    return FastmathMatrix(
        graph.name, baseline, exact.name, origin_text(graph, arrays, seeded=inputs is None), tuple(done)
    )


def _load(
    graph: Graph, modes: Iterable[str], options: CompileOptions | None, weights: Mapping[str, Array]
) -> tuple[dict[str, Model], dict[str, CompileError]]:
    """The models by mode, and what is in the way of the others."""
    session = quiet_session()
    models: dict[str, Model] = {}
    problems: dict[str, CompileError] = {}
    for name in modes:
        try:
            models[name] = session.load(graph, mode_options(name, options), weights)
        except CompileError as error:
            problems[name] = error
    return models, problems


def _all_compared(outputs: Outputs, baseline: Outputs, exact: Exact) -> tuple[OutputResult, ...]:
    pairs = zip(outputs, baseline, strict=True)
    return tuple(compared(index, got, base, exact) for index, (got, base) in enumerate(pairs))


def same_bits(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether two results have the same bits in all outputs, all NaN being equal."""
    return all(a.shape == b.shape and not differing(a, b).any() for a, b in zip(one, other, strict=True))
