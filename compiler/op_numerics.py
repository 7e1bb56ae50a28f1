"""Numerics of single ops: what `CompileOptions` says of a whole graph, written on the ops for which it differs.

The pass ``set-op-numerics`` writes them, and the passes that decide on rounding read them where an op has some:
``contract-fma`` (may this sum fuse with a product; which flags has it), ``widen-small-floats`` (is its result rounded)
and ``convert-graph-to-tile`` (the fma that its own recipe states). An op's own flags, from the user, still win.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from .dialects.graph import GraphOp, RegisteredOp
from .options import Bf16, CompileOptions, FpContract, ordered_flags

OP_NUMERICS = "halfulp.numerics"
"""On a ``graph.apply`` or ``graph.custom``: the numerics that hold for it alone."""


@dataclass(frozen=True)
class OpNumerics:
    """The numerics of one op; the fields mean what they mean in `CompileOptions`."""

    fp_contract: FpContract
    fastmath: frozenset[str]
    bf16: Bf16

    @classmethod
    def of(cls, options: CompileOptions) -> OpNumerics:
        """What options say of every op."""
        return cls(options.fp_contract, options.fastmath, options.bf16)

    @property
    def permits_contraction(self) -> bool:
        """Whether a sum without flags of its own may fuse with a product."""
        return self.fp_contract == "fast" or "contract" in self.fastmath

    def to_attribute(self) -> DictionaryAttr:
        """As the dictionary that the IR holds."""
        entries: dict[str, Attribute] = {
            "fp_contract": StringAttr(self.fp_contract),
            "fastmath": StringAttr(",".join(ordered_flags(self.fastmath))),
            "bf16": StringAttr(self.bf16),
        }
        return DictionaryAttr(entries)


def op_numerics(op: Operation) -> OpNumerics | None:
    """The numerics that stand on an op; None where those of the compilation hold."""
    attribute = op.attributes.get(OP_NUMERICS)
    if not isinstance(attribute, DictionaryAttr):
        return None
    texts = {key: cast(StringAttr, value).data for key, value in attribute.data.items()}
    flags = frozenset(texts["fastmath"].split(",")) - {""}
    return OpNumerics(cast(FpContract, texts["fp_contract"]), flags, cast(Bf16, texts["bf16"]))


def numbered_ops(module: ModuleOp) -> Iterator[tuple[int, RegisteredOp]]:
    """The ops of the graphs of a module with their numbers, which count from 0 in the order of the program.

    Constants, weights and prints have no number. Numbers are those of the graph as built, before any pass.
    """
    graphs = (part for part in module.body.block.ops if isinstance(part, GraphOp))
    yield from enumerate(op for graph in graphs for op in graph.body.walk() if isinstance(op, RegisteredOp))
