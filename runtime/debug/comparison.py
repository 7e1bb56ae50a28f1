"""Two results of one graph, element by element, and both beside a more precise one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import CompileError, GraphError
from halfulp.compiler.graph import Graph

from ..arrays import shape_text
from .evaluation import Trace, evaluate_in_float64, operand_scale
from .ulps import Array, absolute_error, differing, histogram, root_mean_square, ulp_distance, ulp_size

Verdict = Literal["closer", "equal", "worse", "unknown"]
Reference = Callable[..., Sequence[Any]]
"""A function of the inputs, floats as float64, that gives the outputs."""


class OutputResult(msgspec.Struct, frozen=True):
    """One output under one mode, beside the baseline's.

    Attributes:
        output: its name, ``output_0`` and so on.
        dtype: its element type.
        shape: its sizes.
        differing: how many elements differ from the baseline in a bit, all NaN being equal.
        max_ulp: the most numbers of the type between an element and the baseline's; None for integers.
        max_ulp_of_operand: the largest difference in ulp of the larger operand, where the output is a sum.
        error: the root mean square of the distances from the reference; None without one.
        max_error: the largest of them.
        verdict: whether ``error`` is less than the baseline's (``closer``), the same or greater.
        histogram: how many elements are 0, 1, 2 to 3, 4 to 7, ... numbers from the baseline's; the last one counts
            those with a NaN on one side.
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    differing: int
    max_ulp: float | None
    max_ulp_of_operand: float | None
    error: float | None
    max_error: float | None
    verdict: Verdict
    histogram: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass
class Exact:
    """What errors are measured from: an array for each output, or None; and how large the operands of sums were."""

    name: str
    outputs: list[Array | None]
    scales: list[Array | None]


def exact_outputs(
    graph: Graph,
    inputs: Sequence[Array],
    weights: Mapping[str, Array],
    reference: Literal["float64"] | Reference | Sequence[Any],
    outputs: Sequence[Array],
) -> Exact:
    """The reference's outputs, and for outputs that are sums how large the larger operand was.

    Raises:
        GraphError: the reference has another number of outputs, or one of another shape.
        CompileError: an op has no reference in float64, and none was given.
    """
    trace: Trace | None = None
    try:
        trace = evaluate_in_float64(graph, inputs, weights)
    except CompileError:
        if reference == "float64":
            raise
    scales: list[Array | None] = [None] * len(outputs)
    if trace is not None:
        scales = [operand_scale(trace, value) for value in trace.graph.outputs]
    if isinstance(reference, str):
        assert trace is not None
        name = "the graph in float64"
        if trace.in_own_precision:
            name += f", but {', '.join(trace.in_own_precision)} in its own precision"
        # of a result in float64 this is no better than the result itself
        found = [None if got.dtype == np.float64 else exact for got, exact in zip(outputs, trace.outputs, strict=True)]
        return Exact(name, list(found), scales)
    name = "the outputs given"
    given: Any = reference
    if callable(reference):
        given, name = reference(*map(_widened, inputs)), getattr(reference, "__name__", "the function given")
    arrays = [np.asarray(array) for array in given]
    _check_reference(graph, arrays, outputs)
    return Exact(name, list(arrays), scales)


def _check_reference(graph: Graph, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
    if len(arrays) != len(outputs):
        raise GraphError(f"the reference has {len(arrays)} outputs, but graph '{graph.name}' has {len(outputs)}")
    for index, (array, output) in enumerate(zip(arrays, outputs, strict=True)):
        if array.shape != output.shape:
            raise GraphError(
                f"output {index} of the reference has shape {shape_text(array.shape)}, but that of graph "
                f"'{graph.name}' has {shape_text(output.shape)}"
            )


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if DType.from_numpy(array.dtype).is_float else array


def compared(index: int, got: Array, base: Array, exact: Exact) -> OutputResult:
    """Output number ``index`` beside the baseline's."""
    dtype, unequal = DType.from_numpy(got.dtype), differing(got, base)
    verdict: Verdict = "unknown" if unequal.any() else "equal"
    if not dtype.is_float:
        distance, max_ulp, of_operand = unequal.astype(np.float64), None, None
    else:
        distance = ulp_distance(got, base)
        max_ulp, of_operand = float(distance.max(initial=0.0)), _in_ulp_of_operand(got, base, exact.scales[index])
    error = max_error = None
    reference = exact.outputs[index] if dtype.is_float else None
    if reference is not None:
        own, others = absolute_error(got, reference), absolute_error(base, reference)
        error, max_error = root_mean_square(own), float(own.max(initial=0.0))
        verdict = verdict_of(own, others)
    return OutputResult(
        output=f"output_{index}",
        dtype=dtype.value,
        shape=got.shape,
        differing=int(unequal.sum()),
        max_ulp=max_ulp,
        max_ulp_of_operand=of_operand,
        error=error,
        max_error=max_error,
        verdict=verdict,
        histogram=tuple(histogram(distance)),
    )


def _in_ulp_of_operand(got: Array, base: Array, scale: Array | None) -> float | None:
    if scale is None:
        return None
    difference = absolute_error(got, base.astype(np.float64))
    return float((difference / ulp_size(scale, DType.from_numpy(got.dtype))).max(initial=0.0))


def verdict_of(own: Array, baseline: Array) -> Verdict:
    """By the root mean square of two arrays of errors; by the number of infinite ones first, if there are any."""
    infinite = int(np.isinf(own).sum()), int(np.isinf(baseline).sum())
    finite = np.isfinite(own) & np.isfinite(baseline)
    mine, theirs = (
        infinite
        if infinite[0] != infinite[1]
        else (
            root_mean_square(own[finite]),
            root_mean_square(baseline[finite]),
        )
    )
    return "closer" if mine < theirs else "worse" if mine > theirs else "equal"
