"""Models of one graph under several options, run on the same inputs, and timed turn by turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from halfulp.compiler.graph import Graph
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.types import BufferType

from ..loading import load_code
from ..model import Model
from ..native_model import NativeModel
from ..printing import Printer, PrintOptions, PrintStyle
from ..session import InferenceSession
from ..weights import bind_weights
from .ulps import Array

LEAST_ROUNDS, MOST_ROUNDS = 5, 50
TIME_FOR_ROUNDS = 6.0
"""Seconds that timing all modes may take, the least number of rounds aside."""


def quiet_session() -> InferenceSession:
    """A session whose models print nothing: an experiment runs them many times."""
    session = InferenceSession()
    session.set_debug_print_options(PrintStyle.NONE)
    return session


def run_once(graph: Graph, options: CompileOptions, inputs: Sequence[Array], weights: Mapping[str, Any]) -> list[Array]:
    """The outputs of a graph that is compiled for this one run, past all caches."""
    from halfulp.compiler.pipeline import compile_graph

    loaded = load_code(compile_graph(graph, options))
    bound = bind_weights(graph.name, graph.weights.values(), weights)
    model: Model = NativeModel(loaded.compiled, loaded.code, bound, _silent_printer())
    return outputs_of(model, graph, inputs)


def outputs_of(model: Model, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of one execution, which leaves the inputs as they are."""
    return [buffer.to_numpy() for buffer in model.execute(*_own_buffers(graph, inputs))]


def _own_buffers(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The inputs, those copied that the graph may change: every run must start from the same."""
    pairs = zip(graph.input_types, inputs, strict=True)
    return [array.copy() if isinstance(kind, BufferType) else array for kind, array in pairs]


def _silent_printer() -> Printer:
    printer = Printer()
    printer.options = PrintOptions(PrintStyle.NONE)
    return printer


def median_seconds(models: Mapping[str, Model], graph: Graph, inputs: Sequence[Array]) -> dict[str, float]:
    """The median time of each model. All run in turn, round by round, so that what else the machine does hits all.

    Each round begins with another model: the first one after a pause finds colder caches.
    """
    names = list(models)
    seconds: dict[str, list[float]] = {name: [] for name in models}
    start = time.perf_counter()
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > TIME_FOR_ROUNDS:
            break
        first = number % len(names)
        for name in names[first:] + names[:first]:
            own = _own_buffers(graph, inputs)
            begin = time.perf_counter()
            models[name].execute(*own)
            seconds[name].append(time.perf_counter() - begin)
    return {name: median(times) for name, times in seconds.items()}
