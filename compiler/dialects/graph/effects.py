"""What can be seen of an op besides its results: what it shows, and what it reads and changes in a buffer.

Effects come in the order of the program. So each op that has some waits for the one before, and no pass moves one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from xdsl.ir import Block, Operation

from .buffers import LoadOp, StoreOp
from .call import InplaceCustomOp
from .printing import PrintOp, PrintTextOp

EFFECTS = (PrintOp, PrintTextOp, LoadOp, StoreOp, InplaceCustomOp)


def has_effects(op: Operation) -> bool:
    """Whether an op, or one inside of it, has an effect."""
    return any(isinstance(inner, EFFECTS) for inner in op.walk())


def effects_in_order(block: Block) -> Iterator[tuple[Operation, Operation]]:
    """Pairs of ops of a block that have effects: one, and the next, which waits for it."""
    yield from pairwise(op for op in block.ops if has_effects(op))
