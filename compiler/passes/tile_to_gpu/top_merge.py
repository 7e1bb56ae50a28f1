"""``tile.top_merge`` by the threads of a block: all look for candidates that beat the last entry, one puts them in.

A round takes one candidate a thread. In most rounds none gets any further than the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import SSAValue

from ...dialects import gpu_ext, tile
from ...dialects.gpu_ext import WARP
from ...dialects.tile.types import shape_of
from ..tile_to_loops.loop_builder import Index
from ..tile_to_loops.strips import Memo
from ..tile_to_loops.top_merge import TopMerge
from .blocks import ThreadStrips, point, write_block

BYTE = IntegerType(8)


class ThreadTopMerge(TopMerge):
    """Lowers one ``tile.top_merge``."""

    strips: ThreadStrips

    def __init__(self, strips: ThreadStrips, op: tile.TopMergeOp) -> None:
        super().__init__(strips, op)
        self.threads = strips.threads
        (self.size,) = shape_of(op.values.type)

    def lower(self) -> None:
        strips, op, builder = self.strips, self.op, self.builder
        strips.blocks[op.merged_values] = self.values
        strips.blocks[op.merged_indices] = self.indices
        if self.entries == 0:
            return
        write_block(strips, op.top_values, self.values)
        write_block(strips, op.top_indices, self.indices)
        count = self.threads.threads
        self.waiting = [self.threads.alloca(memory.element, count) for memory in (self.values, self.indices)]
        self.hits = self.threads.alloca(BYTE, count)
        self.warps = self.threads.alloca(i32, count // WARP)
        builder.loop(0, self.size, count, (), lambda first, _: self._round_of_threads(first))

    def _round_of_threads(self, first: Index) -> Sequence[SSAValue]:
        """Candidates ``first`` .. ``first`` + threads - 1."""
        builder, thread = self.builder, self.threads.thread
        last = self._entry(self.entries - 1)
        at = builder.add(first, thread)
        exists = builder.compare("slt", builder.ssa(at), builder.ssa(self.size))

        def candidate() -> Sequence[SSAValue]:
            memo: Memo = {}
            found = [self.strips.evaluate(block, point([at]), memo) for block in (self.op.values, self.op.indices)]
            for value, memory in zip(found, self.waiting, strict=True):
                builder.store(value, memory, thread)
            return [self._beats(found[0], found[1], *last)]

        (hit,) = builder.if_(exists, [i1], candidate, lambda: [builder.scalar(0, i1)])
        builder.store(builder.cast(hit, "extui", BYTE), self.hits, thread)
        builder.if_(self._any(hit), [], self._insert_hits)
        return ()

    def _any(self, hit: SSAValue) -> SSAValue:
        """Whether any thread has a hit; the same in all threads."""
        builder, thread = self.builder, self.threads.thread
        word = builder.cast(hit, "extui", i32)
        distance = WARP // 2
        while distance:
            word = builder.binary(arith.OrIOp, word, builder.emit(gpu_ext.ShuffleDownOp(word, distance)))
            distance //= 2
        is_first = builder.compare("eq", builder.ssa(builder.rem(thread, WARP)), builder.ssa(0))

        def tell() -> Sequence[SSAValue]:
            builder.store(word, self.warps, builder.div(thread, WARP))
            return ()

        builder.if_(is_first, [], tell)
        found = builder.load(self.warps, 0, 1)
        for warp in range(1, self.threads.threads // WARP):
            found = builder.binary(arith.OrIOp, found, builder.load(self.warps, warp, 1))
        return builder.compare("ne", found, builder.scalar(0, i32))

    def _insert_hits(self) -> Sequence[SSAValue]:
        builder = self.builder

        def one(at: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            def insert() -> Sequence[SSAValue]:
                value, index = (builder.load(memory, at, 1) for memory in self.waiting)
                self._insert(value, index)
                return ()

            hit = builder.compare("ne", builder.load(self.hits, at, 1), builder.scalar(0, BYTE))
            builder.if_(hit, [], insert)
            return ()

        self.threads.alone(lambda: builder.loop(0, self.threads.threads, 1, (), one))
        return ()


def lower_top_merge(strips: ThreadStrips, op: tile.TopMergeOp) -> None:
    """Merges candidates into a copy of the entries."""
    ThreadTopMerge(strips, op).lower()
