"""``convert-graph-to-tile``: a graph of tensors becomes grid kernels and an entry function that launches them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..dialects import graph
from .graph_to_tile.calls import LOWERINGS
from .graph_to_tile.elementwise import emit_copy
from .graph_to_tile.entry import Entry

_HELD_AS_ARGUMENTS = graph.ConstantOp | graph.WeightOp | graph.OutputOp


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
        for part in list(op.body.block.ops):
            if isinstance(part, graph.GraphOp):
                entry = lower_graph(part)
                kernels = list(entry.kernels.body.block.ops)
                for kernel in kernels:
                    kernel.detach()
                op.body.block.insert_ops_before([*kernels, entry.function], part)
                part.detach()
                part.erase()


def lower_graph(op: graph.GraphOp) -> Entry:
    """The entry function of one graph, and the kernels that it launches."""
    entry = Entry(op)
    for part in op.body.block.ops:
        if isinstance(part, _HELD_AS_ARGUMENTS):
            continue
        lowering = LOWERINGS.get(type(part))
        if lowering is None:
            raise DiagnosticException(f"convert-graph-to-tile: cannot lower {part.name}")
        lowering(entry, part)
    for source, output in entry.copied_outputs():
        emit_copy(entry.builder, source, output)
    entry.builder.finish()
    return entry
