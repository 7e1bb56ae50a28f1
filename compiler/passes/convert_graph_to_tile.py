"""``convert-graph-to-tile``: a graph of tensors becomes grid kernels and an entry function that launches them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ..dialects import graph
from ..dialects.graph.types import tensor_type
from ..numerics import CONTRACTIONS
from ..registry import find_op
from .fuse_ops import has_epilogue, reduces_rows, space_of
from .graph_to_tile.access import identity, resolve, shape_in_memory, view_of
from .graph_to_tile.calls import lower_alias, lower_custom, lower_opaque
from .graph_to_tile.column_kernel import emit_column_reduction
from .graph_to_tile.copies import emit_copy
from .graph_to_tile.entry import Entry
from .graph_to_tile.group import FusedGroup
from .graph_to_tile.group_kernel import GroupKernel
from .graph_to_tile.regions import lower_cond, lower_while
from .graph_to_tile.schedule import Unit, units_in_order


@dataclass(frozen=True)
class ConvertGraphToTilePass(ModulePass):
    """Lowers each ``graph.graph`` of the module.

    Before::

        graph.graph @g(%x: !graph.tensor<[n], f32, cpu>) {
          %0 = graph.apply "negate"(%x) : ...
          graph.output %0 : !graph.tensor<[n], f32, cpu>
        }

    After::

        tile.kernel @negate(%0: !tile.ref<[?], f32, global>, %1: ...) grid(%2 of %3) axes [parallel] { ... }
        func.func @g(%x: !tile.ref<[?], f32, global> {halfulp.role = "input", ...},
                     %1: !tile.ref<[?], f32, global> {halfulp.role = "output", ...}) {
          ...
          tile.launch @negate grid(%2) (%x, %1) : ...
          func.return
        }
    """

    name = "convert-graph-to-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mode = op.attributes.get("halfulp.fp_contract", StringAttr("on"))
        assert isinstance(mode, StringAttr)
        parts = list(op.body.block.ops)
        symbols = (part.get_attr_or_prop("sym_name") for part in parts)
        names = {symbol.data for symbol in symbols if isinstance(symbol, StringAttr)}
        for part in parts:
            if isinstance(part, graph.GraphOp):
                entry = lower_graph(part, mode.data, names)
                if CONTRACTIONS in part.attributes:
                    entry.function.attributes[CONTRACTIONS] = part.attributes[CONTRACTIONS]
                kernels = list(entry.kernels.body.block.ops)
                for kernel in kernels:
                    kernel.detach()
                op.body.block.insert_ops_before([*kernels, entry.function], part)
                op.body.block.erase_op(part)


def lower_graph(op: graph.GraphOp, fp_contract: str, names: set[str]) -> Entry:
    """The entry function of one graph, and the kernels that it launches, whose names are added to ``names``."""
    entry = Entry(op, names, fp_contract)
    lower_block(entry, op.body.block)
    for source, output in entry.copied_outputs():
        emit_copy(entry.builder, source, output)
    entry.builder.finish()
    return entry


def lower_block(entry: Entry, block: Block) -> None:
    """What the ops of one block need, those in their regions included."""
    for unit in units_in_order(block):
        lower_unit(entry, unit)


def lower_unit(entry: Entry, unit: Unit) -> None:
    """One kernel for a group of fused ops; what an op of its own needs."""
    first = unit.members[0]
    if isinstance(first, graph.RegisteredOp):
        entry.builder.device = first.device_ref
    if isinstance(first, graph.ApplyOp):
        _lower_applied(entry, unit, first)
    elif isinstance(first, graph.KernelCallOp):
        lower_custom(entry, first)
    elif isinstance(first, graph.CondOp):
        lower_cond(entry, first, lower_block)
    elif isinstance(first, graph.WhileOp):
        lower_while(entry, first, lower_block)
    elif isinstance(first, graph.PrintTextOp):
        entry.builder.print(first.text)
    elif isinstance(first, graph.LoadOp):
        emit_copy(entry.builder, entry.ref(first.buffer), entry.ref(first.result))
    elif isinstance(first, graph.StoreOp):
        emit_copy(entry.builder, entry.ref(first.value), entry.ref(first.buffer))
    else:
        assert isinstance(first, graph.PrintOp)
        is_scalar = not first.type.shape
        entry.builder.print_tensor(entry.ref(first.value), first.text, first.type.dtype, is_scalar=is_scalar)


def _lower_applied(entry: Entry, unit: Unit, first: graph.ApplyOp) -> None:
    members = [part for part in unit.members if isinstance(part, graph.ApplyOp)]
    kind = find_op(first.callee.data, first.subject).kind
    if unit.fused or kind == "map" or (kind == "reduce" and reduces_rows(members[0])):
        _lower_group(entry, members)
    elif kind == "view":
        if needs_buffer(members[0]):
            value = members[0].outputs[0]
            GroupKernel(entry, FusedGroup([], [value], shape_in_memory(value))).launch()
    elif kind == "alias":
        lower_alias(entry, members[0])
    elif kind == "reduce":
        emit_column_reduction(entry, members[0])
    else:
        lower_opaque(entry, members[0], [], members[0].outputs)


def _lower_group(entry: Entry, members: list[graph.ApplyOp]) -> None:
    inside = set(members)
    outputs = list(dict.fromkeys(value for part in members for value in _read_outside(part, inside)))
    head, *behind = sorted(members, key=lambda op: not has_epilogue(op))
    if outputs and has_epilogue(head):
        lower_opaque(entry, head, behind, outputs)
    elif outputs:
        GroupKernel(entry, FusedGroup(members, outputs, space_of(members))).launch()


def _read_outside(part: graph.ApplyOp, inside: set[graph.ApplyOp]) -> Iterator[SSAValue]:
    """The values that ops outside of the group read because of ``part``: through a view they read what is behind it."""
    for value in part.outputs:
        if all(use.operation in inside for use in value.uses):
            continue
        is_view = view_of(value) is not None
        if not is_view or needs_buffer(part):
            yield value
        if is_view:
            source, _ = resolve(value, identity(tensor_type(value).rank), ())
            if source.owner in inside:
                yield source


def needs_buffer(view: graph.ApplyOp) -> bool:
    """Whether someone reads a view who does not look through it: an op with kernels of its own, or the caller."""
    for use in view.outputs[0].uses:
        user = use.operation
        if not isinstance(user, graph.ApplyOp):
            return True
        kind = find_op(user.callee.data, user.subject).kind
        if kind in ("alias", "opaque") or (kind == "reduce" and not reduces_rows(user)):
            return True
    return False
