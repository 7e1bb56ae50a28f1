"""The kernel of a group of fused ops (``fuse-ops``): each program computes a block of a row, or a whole row.

Every value of the group is evaluated where a program stands: a map by its recipe on the blocks of its operands, a
value from outside by a load through the views in between. Nothing of the group goes through memory but its outputs.

A block is a chunk of reduction order R, so rows are reduced chunk by chunk. It is 16 KiB of f32, which stays in a
core's first cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ...dialects import graph
from ...dialects.tile.compute import CHUNK
from ...dialects.tile.memory import ELEMENT
from ...dialects.tile.reduction import identity as identity_of
from ...dialects.tile.reduction import safe_flags
from ...dims import Dim
from ...registry import find_op
from ...tile_builder import KernelBuilder, Value
from .access import Positions, call_of
from .entry import Entry, flags_of
from .evaluation import Evaluation
from .group import FusedGroup

WHOLE_ROW_BYTES = 65536
"""Rows of a known size up to this are one block: what several loops over the row want is kept in the frame, which
has room for a few such blocks."""


class GroupKernel:
    """Launches the kernel of one group."""

    def __init__(self, entry: Entry, group: FusedGroup) -> None:
        self.entry, self.group = entry, group
        self.flat = group.is_flat
        self.sources = list(dict.fromkeys(value for value, _ in group.sources()))
        self.offsets = group.offsets()
        self.whole_row = bool(group.reductions) and 0 < group.row_bytes <= WHOLE_ROW_BYTES

    def launch(self) -> None:
        """Emits the kernel and its launch."""
        builder = self.entry.builder
        refs = [self.entry.ref(value) for value in (*self.sources, *self.group.outputs)]
        if self.flat:
            refs = [builder.flatten(ref) for ref in refs]
        sizes = [self.entry.dim(size) for size in self.group.space]
        offsets = [self.entry.dim(offset) for offset in self.offsets]
        builder.launch(self.group.name, [*refs, *offsets, sizes[-1]], self._grid(refs, sizes), self._body)

    def _grid(self, refs: Sequence[Value], sizes: Sequence[Value]) -> list[Value]:
        builder = self.entry.builder
        if self.flat:
            return [(builder.dim(refs[-1], 0) + (CHUNK - 1)) // CHUNK]
        if self.group.reductions:
            return list(sizes[:-1])
        chunks = (sizes[-1] + (CHUNK - 1)) // CHUNK
        if any(self.group.is_row_value(value) for value in self.group.outputs):
            chunks = builder.binary("maxs", chunks, 1)  # a row has its value even if it has no elements
        return [*sizes[:-1], chunks]

    def _body(self, k: KernelBuilder) -> None:
        count = len(self.sources) + len(self.group.outputs)
        refs = dict(zip((*self.sources, *self.group.outputs), k.arguments[:count], strict=True))
        offsets = dict(zip(self.offsets, k.arguments[count:-1], strict=True))
        program = Program(self.group, k, refs, offsets, self.flat, self.entry.fp_contract)
        if not self.group.reductions:
            *outer, chunk = k.program_ids
            program.store_block(outer, chunk * CHUNK, CHUNK)
        elif self.whole_row:
            program.run_row(k.program_ids, k.arguments[-1], int(self.group.space[-1]))
        else:
            program.run_row(k.program_ids, k.arguments[-1], None)


class Program(Evaluation):
    """One program of the kernel: evaluates values of the group at a block of a row."""

    def __init__(
        self,
        group: FusedGroup,
        k: KernelBuilder,
        refs: dict[SSAValue, Value],
        offsets: dict[Dim, Value],
        flat: bool,
        fp_contract: str,
    ) -> None:
        super().__init__(group, k, refs, offsets, fp_contract)
        self.flat = flat
        self.outer: Sequence[Value] = ()
        self.column: Value | int = 0
        self.size = CHUNK
        self.rows: dict[SSAValue, Value] = {}

    # -- evaluation

    @property
    def block_shape(self) -> Sequence[int]:
        return [self.size]

    def at(self, column: Value | int) -> None:
        """Moves along the row; blocks evaluated elsewhere are forgotten, what belongs to the row is not."""
        self.column, self.known = column, dict(self.rows)

    def know(self, values: dict[SSAValue, Value]) -> None:
        """Values of the row that stay known wherever the program moves."""
        self.rows |= values
        self.known |= values

    def _load(self, value: SSAValue, positions: Positions) -> Value:
        ref, last = self.refs[value], len(self.group.space) - 1
        if not any(position.axis is not None for position in positions) and self.flat:
            return self.k.read(ref, 0)
        if self.flat:
            return self.k.load(self._window(ref, [self.column], 0))
        indices: list[Value | int] = []
        along = None
        for axis, position in enumerate(positions):
            along = axis if position.axis == last else along
            indices.append(self._index(position.axis, position.offset, last))
        if along is None:
            return self.k.read(ref, *(indices or [0]))
        return self.k.load(self._window(ref, indices, along))

    def _index(self, axis: int | None, offset: Dim, last: int) -> Value | int:
        return self.moved(0 if axis is None else self.column if axis == last else self.outer[axis], offset)

    def _window(self, ref: Value, indices: Sequence[Value | int], along: int) -> Value:
        """A block of the row: ``size`` elements along axis ``along``, one along the others."""
        shape = [self.size if axis == along else 1 for axis in range(len(indices))]
        squeezed = [axis for axis in range(len(indices)) if axis != along]
        return self.k.window(ref, indices, shape, indexing=ELEMENT, squeezed=squeezed)

    # -- what a program does

    def store_block(self, outer: Sequence[Value], column: Value | int, size: int) -> None:
        """Computes and stores the outputs at one block."""
        self.outer, self.size = outer, size
        self.at(column)
        for value in self.group.outputs:
            self._store(value)

    def _store(self, value: SSAValue) -> None:
        result, ref = self.evaluate(value), self.refs[value]
        if self.flat:
            self.k.store(self.whole(result), self._window(ref, [self.column], 0))
        elif self.group.is_row_value(value):
            self.k.write(result, ref, *self.outer, 0)
        else:
            self.k.store(self.whole(result), self._window(ref, [*self.outer, self.column], len(self.outer)))

    def run_row(self, outer: Sequence[Value], count: Value, whole: int | None) -> None:
        """Computes a row: one pass for each depth of reductions, and a last one that stores.

        ``whole``: the row's size if it is one block, which is then evaluated once for all passes.
        """
        self.outer, self.size = outer, whole or CHUNK
        self.at(0)
        for depth in range(1, max(self._depths().values()) + 1):
            ready = [op for op in self.group.reductions if self._depths()[op] == depth]
            if whole is not None:
                self.know({op.outputs[0]: self._reduce(op, None) for op in ready})
            else:
                self._reduce_in_chunks(ready, count)
        if whole is None:
            self.at(0)
        self._store_all([value for value in self.group.outputs if self.group.is_row_value(value)])
        full = [value for value in self.group.outputs if not self.group.is_row_value(value)]
        if full and whole is not None:
            self._store_all(full)
        elif full:
            self._each_chunk(count, lambda: self._store_all(full))

    def _depths(self) -> dict[graph.ApplyOp, int]:
        """How many reductions lie one behind another up to each reduction."""
        depth: dict[SSAValue, int] = {}
        found: dict[graph.ApplyOp, int] = {}
        for op in self.group.members:
            below = max((depth.get(operand, 0) for operand in op.arguments), default=0)
            if op in self.group.reductions:
                below += 1
                found[op] = below
            depth[op.outputs[0]] = below
        return found

    def _reduce(self, op: graph.ApplyOp, count: Value | None) -> Value:
        definition = find_op(op.callee.data, op.subject)
        assert definition.reduction is not None
        block = self.whole(self.evaluate(op.arguments[0]))
        self.k.fastmath = flags_of(op)
        return self.k.reduce(definition.reduction(call_of(definition, op)), block, count=count)

    def _reduce_in_chunks(self, ops: Sequence[graph.ApplyOp], count: Value) -> None:
        """All of ``ops`` in one pass. Chunk results join as in order R, so the bits are those of a whole row."""
        k, kinds = self.k, []
        for op in ops:
            definition = find_op(op.callee.data, op.subject)
            assert definition.reduction is not None
            kinds.append(definition.reduction(call_of(definition, op)))
        elements = [op.output_types[0].dtype.to_element_type() for op in ops]
        start = [k.constant(identity_of(kind, e), e) for kind, e in zip(kinds, elements, strict=True)]

        def chunk(index: Value, *totals: Value) -> Sequence[Value]:
            self.at(index * CHUNK)
            joined = []
            for op, kind, total in zip(ops, kinds, totals, strict=True):
                part = self._reduce(op, count - index * CHUNK)
                k.fastmath = safe_flags(flags_of(op))
                joined.append(k.binary(kind, total, part))
            return joined

        totals = k.for_loop(0, (count + (CHUNK - 1)) // CHUNK, start, chunk)
        self.know({op.outputs[0]: total for op, total in zip(ops, totals, strict=True)})

    def _store_all(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            self._store(value)

    def _each_chunk(self, count: Value, body: Callable[[], None]) -> None:
        def chunk(index: Value) -> None:
            self.at(index * CHUNK)
            body()

        self.k.for_loop(0, (count + (CHUNK - 1)) // CHUNK, [], chunk)
