"""Where the large blocks of a kernel lie: in an arena, of which each thread that runs its programs has its own.

A block of less than `LARGE` bytes lies on the stack. A larger one is an argument of the kernel's function, memory that
overlaps nothing else. The arenas of an execution lie one behind another; the runtime provides them, as long as the
module's attribute `ARENA_ATTRIBUTE` says, and leaves their address in the status words. Whoever calls the kernel
computes from it, and from the number of the thread, where its blocks are. So nothing is shared by two executions, and a
thread that runs several rounds uses the same memory for all.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...artifact import STATUS_ARENAS
from ...dialects import vector_ext
from .loop_builder import INDEX, Index, LoopBuilder, bytes_of

LARGE = 16 << 10
MOST_BYTES = 64 << 20
"""Of one kernel's blocks, for each thread; more than the caches of any CPU hold."""
ALIGNMENT = 128
"""Two cache lines, which CPUs fetch together: no two threads write to one of them."""
ARENA_ATTRIBUTE = "halfulp.thread_arena"


class ArenaBlocks:
    """The large blocks of one kernel, whose function begins with ``entry``."""

    def __init__(self, kernel: str, entry: Block) -> None:
        self.kernel = kernel
        self._entry = entry
        self._places: list[tuple[MemRefType, int]] = []  # each with its offset
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._places)

    def take(self, element: Attribute, size: int) -> SSAValue | None:
        """Memory of ``size`` elements, a new argument of the function; None if that is little, and for the stack."""
        length = size * bytes_of(element)
        if length < LARGE:
            return None
        kind = MemRefType(element, [size])
        self._places.append((kind, self.nbytes))
        self.nbytes += -(-length // ALIGNMENT) * ALIGNMENT
        return self._entry.insert_arg(kind, len(self._entry.args))

    def verify(self) -> None:
        """DiagnosticException if the blocks take more memory than a thread's arena may have."""
        if self.nbytes > MOST_BYTES:
            raise DiagnosticException(
                f"tile.kernel @{self.kernel}: its blocks take {self.nbytes} bytes of memory in each thread, but"
                f" {MOST_BYTES} is the most; use smaller blocks"
            )

    def arguments(self, builder: LoopBuilder, status: SSAValue, thread: Index, arena_bytes: int) -> list[SSAValue]:
        """Where the blocks are in the arena of the thread of this number, if arenas are ``arena_bytes`` long."""
        if not self._places:
            return []
        first = builder.cast(builder.load(status, STATUS_ARENAS, 1), "index_cast", INDEX)
        arena = builder.add(first, builder.mul(thread, arena_bytes))
        return [
            builder.emit(vector_ext.MemoryAtOp(builder.ssa(builder.add(arena, offset)), kind))
            for kind, offset in self._places
        ]
