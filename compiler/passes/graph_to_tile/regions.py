"""Branches and loops of a graph: ``scf.if`` and ``scf.while`` around the launches of what is inside them.

Values reach over the border of a region in memory. The result of a branch has a buffer, which both regions write. A
carried value has one that the initial value is written to, that every round reads and writes anew, and that holds the
result in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Region, SSAValue

from ...dialects import graph
from ...dialects.graph.types import tensor_type
from ...dialects.tile.memory import root_of
from ...tile_builder import Value
from .copies import emit_copy
from .entry import Entry, dim_texts

LowerBlock = Callable[[Entry, Block], None]
"""Lowers the ops of a block, up to its terminator."""


def lower_cond(entry: Entry, op: graph.CondOp, lower_block: LowerBlock) -> None:
    """One branch or the other; what a branch computes for a result goes to the result's buffer right away."""
    results = [entry.ref(value) for value in op.outputs]

    def branch(region: Region) -> Callable[[], None]:
        def build() -> None:
            values, computed = graph.yielded_values(region.block), set(region.block.ops)
            for value, result in zip(values, results, strict=True):
                if value not in entry.refs and value.owner in computed:
                    entry.refs[value] = result
            lower_block(entry, region.block)
            for value, result in zip(values, results, strict=True):
                _move(entry, entry.refs[value], result)

        return build

    entry.builder.if_(_read(entry, op.pred), branch(op.then_region), branch(op.else_region))


def lower_while(entry: Entry, op: graph.WhileOp, lower_block: LowerBlock) -> None:
    """A loop whose predicate is read from memory before each round."""
    carried = [entry.ref(value) for value in op.outputs]
    for value, ref in zip(op.initial, carried, strict=True):
        _move(entry, entry.refs[value], ref)
    for region in op.regions:
        entry.refs.update(zip(region.block.args, carried, strict=True))

    def condition() -> Value:
        lower_block(entry, op.predicate.block)
        (decision,) = graph.yielded_values(op.predicate.block)
        return _read(entry, decision)

    def body() -> Sequence[Value]:
        lower_block(entry, op.body.block)
        _carry_on(entry, graph.yielded_values(op.body.block), carried)
        return ()

    entry.builder.while_loop([], condition, body)


def _carry_on(entry: Entry, values: Sequence[SSAValue], carried: Sequence[Value]) -> None:
    """Writes the next carried values over the old ones; those that are old values themselves are set aside first."""
    old = {root_of(ref.ssa) for ref in carried}
    moves: list[tuple[Value, Value]] = []
    for value, target in zip(values, carried, strict=True):
        source = entry.refs[value]
        if root_of(source.ssa) is root_of(target.ssa):
            continue
        if root_of(source.ssa) in old:
            tensor = tensor_type(value)
            aside = entry.builder.buffer(dim_texts(tensor), target.element_type, tensor.device)
            emit_copy(entry.builder, source, aside)
            source = aside
        moves.append((source, target))
    for source, target in moves:
        emit_copy(entry.builder, source, target)


def _move(entry: Entry, source: Value, target: Value) -> None:
    if source.ssa is not target.ssa:
        emit_copy(entry.builder, source, target)


def _read(entry: Entry, predicate: SSAValue) -> Value:
    """The one bool of a value in memory, as a scalar of the entry function."""
    ref = entry.ref(predicate)
    return entry.builder.read(ref, *[0] * len(ref.shape))
