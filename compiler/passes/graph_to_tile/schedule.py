"""The order in which a graph's kernels are launched: groups of fused ops, and ops of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ...dialects import graph
from ..fuse_ops import GROUP


@dataclass(frozen=True)
class Unit:
    """Ops that are lowered together, in the order of the graph."""

    members: tuple[graph.RegisteredOp, ...]
    fused: bool


def _key(op: graph.RegisteredOp, number: int) -> tuple[str, int]:
    attribute = op.attributes.get(GROUP)
    return ("group", attribute.value.data) if isinstance(attribute, IntegerAttr) else ("op", number)


def units_in_order(op: graph.GraphOp) -> Iterator[Unit]:
    """Every unit after those that it reads from; among those that are ready, the order of the graph."""
    members: dict[tuple[str, int], list[graph.RegisteredOp]] = {}
    key_of: dict[Operation, tuple[str, int]] = {}
    for number, part in enumerate(op.body.block.ops):
        if isinstance(part, graph.RegisteredOp):
            key_of[part] = _key(part, number)
            members.setdefault(key_of[part], []).append(part)
    numbers = {key: number for number, key in enumerate(members)}
    reads = {
        key: {
            key_of[operand.owner]
            for part in parts
            for operand in part.arguments
            if isinstance(operand.owner, Operation) and operand.owner in key_of and key_of[operand.owner] != key
        }
        for key, parts in members.items()
    }
    readers: dict[tuple[str, int], list[tuple[str, int]]] = {key: [] for key in members}
    for key, sources in reads.items():
        for source in sources:
            readers[source].append(key)
    ready = [(numbers[key], key) for key, sources in reads.items() if not sources]
    heapify(ready)
    while ready:
        _, key = heappop(ready)
        yield Unit(tuple(members[key]), fused=key[0] == "group")
        for reader in readers[key]:
            reads[reader].discard(key)
            if not reads[reader]:
                heappush(ready, (numbers[reader], reader))
