"""What an execution of a model needs memory for, and when: `Model.memory_report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfulp.compiler.artifact import BufferRole, CompiledGraph

from .arrays import shape_text
from .binding import Layout, Placement, Shape, ShapePlan

if TYPE_CHECKING:
    from halfulp.compiler.ptx_artifact import CompiledPtx


@dataclass(frozen=True)
class BufferUse:
    """An intermediate result: ``nbytes`` at ``offset`` of arena ``stage``, from step ``first`` to step ``last``.

    ``writer`` and ``reader`` name the kernels of those two steps. Steps count the launches and checks of the graph.
    """

    name: str
    dtype: str
    shape: Shape
    nbytes: int
    stage: int
    offset: int
    first: int
    last: int
    writer: str
    reader: str


@dataclass(frozen=True)
class MemoryReport:
    """Bytes that an execution needs. The sizes of data that only its execution decides are known where they were given.

    ``peak`` is the size of all arenas of intermediates, ``lower_bound`` the most bytes of intermediates that are alive
    at once, each rounded up to the alignment: no placing can do with less. ``thread_arena`` is what each of ``threads``
    threads needs for the large blocks of kernels. ``unknown`` lists what has no size yet.
    """

    buffers: tuple[BufferUse, ...]
    peak: int
    lower_bound: int
    inputs: int
    outputs: int
    weights: int
    constants: int
    unknown: tuple[str, ...]
    thread_arena: int = 0
    threads: int = 1

    def __str__(self) -> str:
        lines = [
            f"intermediates: {self.peak} bytes, {self.lower_bound} of them alive at once",
            f"inputs: {self.inputs}, outputs: {self.outputs}, weights: {self.weights}, constants: {self.constants}",
        ]
        lines += [
            f"  {use.name}: {use.dtype} {shape_text(use.shape)}, {use.nbytes} bytes at {use.offset} of arena "
            f"{use.stage}, steps {use.first} ({use.writer}) to {use.last} ({use.reader})"
            for use in self.buffers
        ]
        if self.thread_arena:
            lines.append(f"blocks of kernels: {self.thread_arena} bytes for each of {self.threads} threads")
        if self.unknown:
            lines.append(f"not known before the graph runs: {', '.join(self.unknown)}")
        return "\n".join(lines)


def memory_report(
    compiled: CompiledGraph | CompiledPtx,
    plan: ShapePlan,
    shapes: Sequence[Shape],
    dims: Mapping[str, int],
    threads: int = 1,
) -> MemoryReport:
    """The report for inputs of these shapes, these values of dims that the graph computes, and so many threads.

    Raises:
        ExecutionError: a rank or size is wrong, or symbolic dimensions disagree.
    """
    layouts = [plan.start(tuple(shapes))]
    for segment in compiled.segments[:-1]:
        if any(name not in dims for name in segment.defines):
            break
        layouts.append(plan.advance(layouts[-1], tuple(dims[name] for name in segment.defines)))
    known = layouts[-1].shapes
    totals = dict.fromkeys(BufferRole, 0)
    for spec, shape in zip(compiled.buffers, known, strict=True):
        if shape is not None:
            totals[spec.role] += plan.nbytes(spec, shape)
    return MemoryReport(
        buffers=tuple(_use(compiled, layout, placement) for layout in layouts for placement in layout.intermediates),
        peak=sum(layout.arena_bytes for layout in layouts),
        lower_bound=sum(map(plan.alive_at_once, layouts)),
        inputs=totals[BufferRole.INPUT],
        outputs=totals[BufferRole.OUTPUT],
        weights=totals[BufferRole.WEIGHT],
        constants=totals[BufferRole.CONSTANT],
        unknown=tuple(spec.name for spec, shape in zip(compiled.buffers, known, strict=True) if shape is None),
        thread_arena=compiled.thread_arena_bytes,
        threads=threads,
    )


def _use(compiled: CompiledGraph | CompiledPtx, layout: Layout, placement: Placement) -> BufferUse:
    spec = placement.spec
    return BufferUse(
        name=spec.name,
        dtype=str(spec.dtype),
        shape=placement.shape,
        nbytes=placement.nbytes,
        stage=layout.stage,
        offset=placement.offset,
        first=spec.first,
        last=min(spec.last, max(len(compiled.steps) - 1, 0)),
        writer=_step(compiled, spec.first),
        reader=_step(compiled, spec.last),
    )


def _step(compiled: CompiledGraph | CompiledPtx, number: int) -> str:
    return compiled.steps[number] if number < len(compiled.steps) else "the end"
