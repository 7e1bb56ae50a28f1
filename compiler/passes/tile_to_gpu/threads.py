"""Emits the code of one thread among those of a block: its share of a loop, and memory that the block has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects import gpu_ext
from ...dialects.gpu_ext import GLOBAL_SPACE, SHARED_SPACE, memory_in
from ..tile_to_loops.loop_builder import Index, LoopBuilder, bytes_of

SHARED_BYTES = 48 << 10
"""Shared memory that a block of threads may have on every GPU without asking the driver for more."""

ALIGNMENT = 16
"""Bytes; every piece of memory starts at a multiple, so that four words can be moved at once."""

X = gpu.DimensionAttr(gpu.DimensionEnum.X)


class ThreadBuilder(LoopBuilder):
    """A `LoopBuilder` for one of the ``threads`` threads of a block.

    What it emits runs in every thread; what must be done once is given to ``spread`` or ``alone``. ``scratch`` is the
    global memory of all blocks, from which this one takes what does not fit into shared memory.
    """

    def __init__(self, entry: Block, threads: int, scratch: SSAValue) -> None:
        super().__init__(entry)
        self.threads = threads
        self.scratch_bytes = 0
        self.shared_bytes = 0
        self._scratch = scratch
        self.thread = self.emit(gpu.ThreadIdOp(X))
        self.mark_natural(self.thread, threads - 1)

    def spread(self, count: Index, body: Callable[[Index], None]) -> None:
        """Runs ``body`` for 0 .. ``count`` - 1, each number in one thread: thread t takes t, t + threads, ..."""

        def one(index: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
            body(index)
            return ()

        if isinstance(count, int) and count <= self.threads:
            # Even if all threads have one: what stands in a branch is one access to insert-barriers.
            if count > 0:
                self.if_(self.compare("ult", self.thread, self.ssa(count)), [], lambda: one(self.thread, []))
            return
        self.loop(self.thread, count, self.threads, (), one)

    def alone(self, body: Callable[[], object]) -> None:
        """Runs ``body`` in one thread only."""

        def one(_: Index) -> None:
            body()

        self.spread(1, one)

    def alloca(self, element: Attribute, size: int) -> SSAValue:
        """Memory of the block of threads: shared while there is room, then global."""
        size = max(size, 1)
        length = -(-size * bytes_of(element) // ALIGNMENT) * ALIGNMENT
        if self.shared_bytes + length <= SHARED_BYTES:
            self.shared_bytes += length
            return self._shared(memory_in(element, size, SHARED_SPACE))
        offset = self.scratch_bytes
        self.scratch_bytes += length
        return self.emit(gpu_ext.BlockScratchOp(self._scratch, offset, memory_in(element, size, GLOBAL_SPACE)))

    def _shared(self, kind: MemRefType) -> SSAValue:
        op = memref.AllocaOp.get(kind.element_type, alignment=ALIGNMENT, shape=kind.get_shape())
        return self.emit(
            memref.AllocaOp.create(operands=[], result_types=[kind], properties=op.properties, attributes=op.attributes)
        )
