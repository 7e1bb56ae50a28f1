"""The order in which the parts of a block of a graph run: groups of fused ops, and ops of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from ...dialects import graph
from ..fuse_ops import GROUP


@dataclass(frozen=True)
class Unit:
    """Ops that are lowered together, in the order of the graph."""

    members: tuple[Operation, ...]
    fused: bool


def is_scheduled(op: Operation) -> bool:
    """Whether something is emitted where the op stands."""
    return isinstance(op, graph.RegisteredOp | graph.CondOp | graph.WhileOp) or graph.has_effects(op)


def _key(op: Operation, number: int) -> tuple[str, int]:
    attribute = op.attributes.get(GROUP)
    return ("group", attribute.value.data) if isinstance(attribute, IntegerAttr) else ("op", number)


def units_in_order(block: Block) -> Iterator[Unit]:
    """Every unit after those that it reads from; among those that are ready, the order of the graph.

    Effects come in the order of the program.
    """
    members: dict[tuple[str, int], list[Operation]] = {}
    key_of: dict[Operation, tuple[str, int]] = {}
    for number, part in enumerate(block.ops):
        if is_scheduled(part):
            key_of[part] = _key(part, number)
            members.setdefault(key_of[part], []).append(part)
    numbers = {key: number for number, key in enumerate(members)}
    reads = {
        key: {
            key_of[operand.owner]
            for part in parts
            for operand in graph.values_read(part)
            if isinstance(operand.owner, Operation) and operand.owner in key_of and key_of[operand.owner] != key
        }
        for key, parts in members.items()
    }
    for earlier, later in graph.effects_in_order(block):
        reads[key_of[later]].add(key_of[earlier])
    readers: dict[tuple[str, int], list[tuple[str, int]]] = {key: [] for key in members}
    for key, sources in reads.items():
        for source in sources:
            readers[source].append(key)
    ready = [(numbers[key], key) for key, sources in reads.items() if not sources]
    heapify(ready)
    count = 0
    while ready:
        _, key = heappop(ready)
        count += 1
        yield Unit(tuple(members[key]), fused=key[0] == "group")
        for reader in readers[key]:
            reads[reader].discard(key)
            if not reads[reader]:
                heappush(ready, (numbers[reader], reader))
    assert count == len(members), "groups wait for each other; fuse-ops must not have made them"
