"""From the shapes of the inputs to the sizes of everything: binds and checks symbolic dims, and lays out memory.

A graph runs in stages. The layout before its first segment depends only on the input shapes; after a segment that
computes dims, the layout before the next depends on the one before and on the dims' values. Layouts are immutable, so a
model caches them and threads share them.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from halfulp.compiler.artifact import MAX_EXTENT, BufferRole, BufferSpec, CompiledGraph
from halfulp.compiler.dims import Dim, StaticDim, SymbolicDim

from .arrays import shape_text
from .errors import ExecutionError
from .memory import MAX_BYTES, align_up, extent_bytes
from .placing import PlacingPlan

if TYPE_CHECKING:
    from halfulp.compiler.ptx_artifact import CompiledPtx

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A buffer that a stage allocates. ``slot`` counts all buffers of the graph; ``offset`` lies in the arena."""

    spec: BufferSpec
    slot: int
    shape: Shape
    dtype: np.dtype[Any]
    nbytes: int
    offset: int = 0


@dataclass(slots=True)
class Bindings:
    """The values of symbolic dims, and where each came from, for messages."""

    values: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Bindings:
        """Independent bindings with the same content."""
        return Bindings(dict(self.values), dict(self.origins))

    def where(self, dim: Dim) -> str:
        """``m = 2, n = 3``: the values of the symbols in a dim."""
        return ", ".join(f"{name} = {self.values[name]}" for name in dim.symbols)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is allocated before a segment runs, and the sizes it is called with.

    Compared by identity, so that it can be half of a cache's key. ``shapes`` has an entry for each buffer of the
    graph, None while unknown; ``extents`` is their packed i64 array, 0 where unknown.
    """

    stage: int
    outputs: tuple[Placement, ...]
    intermediates: tuple[Placement, ...]
    arena_bytes: int
    extents: bytes
    shapes: tuple[Shape | None, ...]
    bindings: Bindings


class ShapePlan:
    """Computes the layouts of one compiled graph. It never changes."""

    def __init__(self, compiled: CompiledGraph | CompiledPtx) -> None:
        self._name = compiled.name
        self._specs = compiled.buffers
        self._dims = tuple(tuple(_simplified(dim) for dim in spec.shape) for spec in compiled.buffers)
        slots = {spec.index: slot for slot, spec in enumerate(compiled.buffers) if spec.role is BufferRole.INPUT}
        self._inputs = tuple(slots[index] for index in range(len(slots)))
        self._extents = struct.Struct(f"{sum(len(spec.shape) or 1 for spec in compiled.buffers)}q")
        self._defines = tuple(segment.defines for segment in compiled.segments)
        self._stages = self._assign_stages()
        self._arenas = tuple(
            PlacingPlan([(self._specs[slot].first, self._specs[slot].last) for slot in self._intermediates(stage)])
            for stage in range(len(self._stages))
        )

    def start(self, input_shapes: tuple[Shape, ...]) -> Layout:
        """The layout before the first segment.

        Raises:
            ExecutionError: a wrong rank or size, symbols that disagree, a negative or an impossible size.
        """
        bindings = Bindings()
        shapes: list[Shape | None] = [None] * len(self._specs)
        for slot, shape in zip(self._inputs, input_shapes, strict=True):
            self._bind_input(slot, shape, bindings)
            shapes[slot] = shape
        return self._layout(0, bindings, shapes)

    def advance(self, layout: Layout, computed: tuple[int, ...]) -> Layout:
        """The layout after the segment of ``layout``, which left these values in the dims that it defines.

        Raises:
            ExecutionError: a negative or an impossible size, or one that contradicts what an input says.
        """
        bindings = layout.bindings.copy()
        for name, value in zip(self._defines[layout.stage], computed, strict=True):
            if value < 0:
                raise self._error(f"symbolic dimension '{name}' is computed as {value}; sizes must not be negative")
            self._bind(bindings, name, value, "as computed from the inputs' values")
        return self._layout(layout.stage + 1, bindings, list(layout.shapes))

    def _intermediates(self, stage: int) -> list[int]:
        """The slots that lie in the arena of a stage."""
        return [slot for slot in self._stages[stage] if self._specs[slot].role is BufferRole.INTERMEDIATE]

    def _assign_stages(self) -> tuple[tuple[int, ...], ...]:
        """The slots that get their shape at each stage; the stage after the last segment may have none."""
        symbols_known = {name for slot in self._inputs for dim in self._specs[slot].shape for name in dim.symbols}
        waiting = [slot for slot in range(len(self._specs)) if slot not in self._inputs]
        stages: list[tuple[int, ...]] = []
        for defined in ((), *self._defines):
            symbols_known.update(defined)
            ready = [s for s in waiting if symbols_known.issuperset(n for d in self._specs[s].shape for n in d.symbols)]
            waiting = [s for s in waiting if s not in ready]
            stages.append(tuple(ready))
        assert not waiting, f"no segment defines the dims of {[self._specs[s].name for s in waiting]}"
        assert not stages[-1], f"no segment computes {[self._specs[s].name for s in stages[-1]]}"
        return tuple(stages)

    def _bind_input(self, slot: int, shape: Shape, bindings: Bindings) -> None:
        dims, subject = self._dims[slot], describe(self._specs[slot])
        if len(shape) != len(dims):
            raise self._error(
                f"{subject} must have rank {len(dims)}, shape {shape_text(dims)}; "
                f"got rank {len(shape)}, shape {shape_text(shape)}"
            )
        for axis, (dim, size) in enumerate(zip(dims, shape, strict=True)):
            if isinstance(dim, str):
                self._bind(bindings, dim, size, f"on axis {axis} of {subject}")
            elif dim != size:
                raise self._error(
                    f"{subject} must have size {dim} on axis {axis}, shape {shape_text(dims)}; "
                    f"got size {size}, shape {shape_text(shape)}"
                )

    def _bind(self, bindings: Bindings, name: str, value: int, origin: str) -> None:
        known = bindings.values.setdefault(name, value)
        if known != value:
            raise self._error(
                f"symbolic dimension '{name}' is {known} {bindings.origins[name]} but {value} {origin}; "
                "the two must be equal"
            )
        bindings.origins.setdefault(name, origin)

    def _layout(self, stage: int, bindings: Bindings, shapes: list[Shape | None]) -> Layout:
        placements: list[Placement] = []
        for slot in self._stages[stage]:
            spec = self._specs[slot]
            shapes[slot] = shape = self._evaluate(slot, bindings)
            nbytes = self.nbytes(spec, shape)
            placements.append(Placement(spec, slot, shape, spec.dtype.to_numpy(), nbytes))
        outputs = tuple(p for p in placements if p.spec.role is BufferRole.OUTPUT)
        intermediates = [p for p in placements if p.spec.role is BufferRole.INTERMEDIATE]
        sizes = [align_up(p.nbytes) for p in intermediates]
        placing = self._arenas[stage].place(sizes)
        if placing.nbytes > MAX_BYTES:
            raise self._error(f"the intermediate results need {placing.nbytes} bytes in all, more than 2**63")
        placed = tuple(replace(p, offset=at) for p, at in zip(intermediates, placing.offsets, strict=True))
        extents = [
            size
            for spec, shape in zip(self._specs, shapes, strict=True)
            # compiled code takes a scalar for one element along one axis
            for size in ((shape or (1,)) if shape is not None else (0,) * len(spec.shape) or (1,))
        ]
        if max(extents, default=0) > MAX_EXTENT:
            raise self._error(f"a size of {max(extents)} is more than 2**62, the most that compiled code takes")
        packed = self._extents.pack(*extents)
        return Layout(stage, outputs, placed, placing.nbytes, packed, tuple(shapes), bindings)

    @staticmethod
    def nbytes(spec: BufferSpec, shape: Shape) -> int:
        """The bytes of a buffer of this shape."""
        return math.prod(shape) * spec.dtype.size_in_bytes

    def alive_at_once(self, layout: Layout) -> int:
        """The least bytes that the arena of a layout could have."""
        return self._arenas[layout.stage].alive_at_once([align_up(p.nbytes) for p in layout.intermediates])

    def _evaluate(self, slot: int, bindings: Bindings) -> Shape:
        """The shape of a buffer; its size in bytes fits an i64."""
        spec, dims = self._specs[slot], self._dims[slot]
        shape = tuple(
            dim
            if isinstance(dim, int)
            else bindings.values[dim]
            if isinstance(dim, str)
            else self._evaluate_algebraic(spec, axis, dim, bindings)
            for axis, dim in enumerate(dims)
        )
        if extent_bytes(shape, spec.dtype.size_in_bytes) > MAX_BYTES:
            raise self._error(
                f"{describe(spec)} would have shape {shape_text(shape)} ({shape_text(dims)}) of {spec.dtype}, "
                "more than 2**63 bytes"
            )
        return shape

    def _evaluate_algebraic(self, spec: BufferSpec, axis: int, dim: Dim, bindings: Bindings) -> int:
        try:
            size = dim.evaluate(bindings.values)
        except ZeroDivisionError:
            raise self._error(
                f"axis {axis} of {describe(spec)} has size '{dim}', a division by 0 where {bindings.where(dim)}"
            ) from None
        if size < 0:
            raise self._error(
                f"axis {axis} of {describe(spec)} has size '{dim}', which is {size} where {bindings.where(dim)}; "
                "sizes must not be negative"
            )
        return size

    def _error(self, text: str) -> ExecutionError:
        return ExecutionError(f"model '{self._name}': {text}")


def describe(spec: BufferSpec) -> str:
    """``input 0 ('x')``, ``weight 'w'``, ``intermediate 't3'``: a buffer as messages name it."""
    if spec.role in (BufferRole.INPUT, BufferRole.OUTPUT):
        return f"{spec.role.value} {spec.index} ('{spec.name}')"
    return f"{spec.role.value} '{spec.name}'"


def _simplified(dim: Dim) -> int | str | Dim:
    """A static dim as an int and a symbol as its name: these two are most of all, and quicker to evaluate."""
    if isinstance(dim, StaticDim):
        return int(dim)
    return dim.name if isinstance(dim, SymbolicDim) else dim
