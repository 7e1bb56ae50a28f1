"""Which loads ask memory for the block that comes next, while they read their own for the last time.

A block that several loops of a program read comes from memory in the first one and from the caches in the others: first
memory is all there is to wait for, then it idles. So the last loop also fetches, line by line, the block that follows
in memory, which the next round of the loop around, or the next program, is about to read. A block that one loop reads
needs no such help: the CPU itself runs ahead of an ascending loop.

Nothing of it can be seen in the results: fetching an address that is not there, beyond the end of a buffer, does
nothing.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import tile
from ...dialects.tile.memory import root_of
from ...dialects.tile.types import shape_of
from .loop_builder import bytes_of
from .placement import Placement
from .scalars import is_elementwise
from .views import storage_type

LEAST_BYTES = 1 << 12
"""A smaller block is over before memory answers."""
MOST_BYTES = 1 << 17
"""Two blocks, the one at hand and the next, stay in a core's second cache."""

_PLACES = tile.RefType | IndexType | IntegerType
"""Types of what a window is made of."""

Ahead = dict[Operation, frozenset[tile.LoadOp]]
"""An op whose loop reads blocks for the last time, and the loads of these blocks."""


def loads_ahead(placement: Placement) -> Ahead:
    """The loads of a kernel that fetch the block after their own, by the op in whose loop they do."""
    found: dict[Operation, set[tile.LoadOp]] = {}
    for op in placement.order:
        if isinstance(op, tile.LoadOp) and _has_successor(op):
            loops = _loops(placement, op)
            if loops is not None and len(loops) > 1:
                found.setdefault(max(loops, key=lambda loop: placement.order[loop]), set()).add(op)
    return {loop: frozenset(loads) for loop, loads in found.items()}


def _has_successor(load: tile.LoadOp) -> bool:
    """Whether ``load`` reads one row of global memory that moves on with the loop, or the programs, around it."""
    shape = shape_of(load.result.type)
    ref = load.ref.type
    assert isinstance(ref, tile.RefType)
    if not shape or prod(shape[:-1]) != 1 or not isinstance(root_of(load.ref), BlockArgument):
        return False
    size = shape[-1] * bytes_of(storage_type(ref.element_type))
    return LEAST_BYTES <= size <= MOST_BYTES and _moves(load)


def _moves(load: tile.LoadOp) -> bool:
    around = load.parent_op()
    if isinstance(around, scf.ForOp):
        return _depends_on(load.ref, {around.body.block.args[0]})
    return isinstance(around, tile.KernelOp) and _depends_on(load.ref, set(around.program_ids))


def _depends_on(ref: SSAValue, counters: set[SSAValue]) -> bool:
    """Whether a window on the way from the buffer to ``ref`` lies where one of ``counters`` says."""
    waiting, seen = [ref], {ref}
    while waiting:
        value = waiting.pop()
        if value in counters:
            return True
        if isinstance(value.owner, Operation):
            new = [v for v in value.owner.operands if v not in seen and isinstance(v.type, _PLACES)]
            waiting += new
            seen |= set(new)
    return False


def _loops(placement: Placement, load: tile.LoadOp) -> set[Operation] | None:
    """The ops whose loops read ``load``; None if one stands elsewhere or reads in another order."""
    block, loops = load.parent_block(), set[Operation]()
    waiting, seen = [load.result], {load.result}
    while waiting:
        value = waiting.pop()
        users = [value.owner] if value in placement.forced else [use.operation for use in value.uses]
        for user in users:
            assert not isinstance(user, Block)
            if user not in loops and value not in placement.forced and is_elementwise(user):
                new = [result for result in user.results if result not in seen]
                waiting += new
                seen |= set(new)
            elif user.parent_block() is block and _reads_rows(user, value, placement):
                loops.add(user)
            elif not isinstance(user, tile.ExtractOp):
                return None
    return loops


def _reads_rows(user: Operation, value: SSAValue, placement: Placement) -> bool:
    """Whether the loop of ``user`` reads ``value`` once from its first element to its last."""
    if isinstance(user, tile.ReduceOp):
        return user.axis.value.data == len(shape_of(value.type)) - 1
    return value in placement.forced or isinstance(user, tile.StoreOp | tile.TopMergeOp)
