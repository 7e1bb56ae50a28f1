"""Decides, before a kernel is lowered, which strip blocks must be materialised all the same.

Two reasons: a load whose memory is stored to before its last use (loads are snapshots), and an expensive block that
several loops want.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, Region, SSAValue

from ...dialects import tile
from ...dialects.tile.memory import root_of
from ...dialects.tile.types import shape_of
from .scalars import is_elementwise
from .strips import Strips

EXPENSIVE = 12
"""Elementwise ops under a block from which on storing it is cheaper than computing it twice."""


class Placement:
    """The blocks of a region to materialise where they are defined."""

    def __init__(self, strips: Strips, region: Region) -> None:
        self.strips = strips
        self.order: dict[Operation, int] = {op: n for n, op in enumerate(region.walk())}
        self._roots: dict[SSAValue, frozenset[Operation]] = {}
        self._cost: dict[SSAValue, int] = {}
        self._in_place: dict[SSAValue, bool] = {}
        self._writers = [op for op in self.order if isinstance(op, tile.StoreOp | tile.LaunchOp)]
        self._fill()
        self.forced = {value for op in self.order for value in op.results if self._is_forced(op, value)}

    def _fill(self) -> None:
        """Asks in an order in which each answer rests on the one before: no recursion gets deep."""
        for op in reversed(self.order):
            for value in op.results:
                self.roots(value)
                self._stays_in_place(value)
        for op in self.order:
            for value in op.results:
                self.cost(value)

    def roots(self, value: SSAValue) -> frozenset[Operation]:
        """The ops whose loops evaluate ``value``: users that are not strips, through users that are."""
        if value not in self._roots:
            found: set[Operation] = set()
            for use in value.uses:
                user = use.operation
                if self.strips.is_strip(user) and shape_of(user.results[0].type):
                    found |= self.roots(user.results[0])
                else:
                    found.add(user)
            self._roots[value] = frozenset(found)
        return self._roots[value]

    def cost(self, value: SSAValue) -> int:
        """Ops to compute one element of ``value``."""
        if value not in self._cost:
            op, total = value.owner, 0
            if isinstance(op, Operation) and self.strips.is_strip(op):
                total = 1 + sum(self.cost(operand) for operand in op.operands if shape_of(operand.type))
            self._cost[value] = min(total, EXPENSIVE)
        return self._cost[value]

    def _is_forced(self, op: Operation, value: SSAValue) -> bool:
        if not self.strips.is_strip(op) or not shape_of(value.type):
            return False
        if isinstance(op, tile.LoadOp):
            return self._is_overwritten(op)
        roots = self.roots(value)
        if len(roots) < 2 or self.cost(value) < EXPENSIVE:
            return False
        return any(self._narrows(use.operation, roots) for use in value.uses)

    def _narrows(self, user: Operation, roots: frozenset[Operation]) -> bool:
        """Whether ``user`` serves fewer loops, so that the block before it is the last one shared by all."""
        if not self.strips.is_strip(user) or not shape_of(user.results[0].type):
            return True
        return self.roots(user.results[0]) != roots

    def _is_overwritten(self, load: tile.LoadOp) -> bool:
        root = root_of(load.ref)
        return any(root in _written_by(store) and self._reaches(load, store) for store in self._writers)

    def _reaches(self, load: tile.LoadOp, store: tile.StoreOp | tile.LaunchOp) -> bool:
        """Whether a use of ``load`` may come after ``store`` has changed what it read.

        A store before the load in the text runs again only with the load itself, or with a loop around both.
        """
        if self.order[store] < self.order[load]:
            return False
        same_elements = isinstance(store, tile.StoreOp) and load.ref is store.ref and self._stays_in_place(load.result)
        for user in self.roots(load.result):
            if user is store:
                if not same_elements:
                    return True
            elif self.order[user] > self.order[store] or _repeats_between(load, store, user):
                return True
        return False

    def _stays_in_place(self, value: SSAValue) -> bool:
        """Whether the strips above ``value`` use each element for the same element only."""
        if value not in self._in_place:
            self._in_place[value] = all(
                is_elementwise(use.operation) and self._stays_in_place(use.operation.results[0])
                for use in value.uses
                if self.strips.is_strip(use.operation)
            )
        return self._in_place[value]


def _written_by(op: tile.StoreOp | tile.LaunchOp) -> list[SSAValue]:
    """The roots that an op may write to."""
    refs = [op.ref] if isinstance(op, tile.StoreOp) else op.arguments
    return [root_of(ref) for ref in refs]


def _enclosing(op: Operation) -> list[Operation]:
    """The ops around ``op``, innermost first."""
    ops = []
    parent = op.parent_op()
    while parent is not None:
        ops.append(parent)
        parent = parent.parent_op()
    return ops


def _repeats_between(load: tile.LoadOp, store: Operation, user: Operation) -> bool:
    """Whether a loop that ``load`` is outside of holds both ``store`` and ``user``."""
    around = [*_enclosing(load)]
    inside_user = _enclosing(user)
    return any(
        isinstance(op, scf.ForOp | scf.WhileOp) and op in inside_user and op not in around for op in _enclosing(store)
    )
