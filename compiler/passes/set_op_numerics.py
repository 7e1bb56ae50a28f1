"""``set-op-numerics``: gives single ops of a graph numerics of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import CompileError
from ..op_numerics import OP_NUMERICS, OpNumerics, numbered_ops
from ..options import Bf16, CompileOptions, FpContract


@dataclass(frozen=True)
class SetOpNumericsPass(ModulePass):
    """Puts numerics on the ops with these numbers: what compiling otherwise says of all ops holds for the others only.

    An op's number is its place in the graph as built, from 0; constants, weights and prints are not counted.

    ``set-op-numerics{ops=1 fp-contract=fast}``, before (types left out)::

        %p = graph.apply "mul"(%a, %b)
        %s = graph.apply "add"(%p, %c)

    After; under ``fp_contract="on"`` this sum alone becomes an fma::

        %p = graph.apply "mul"(%a, %b)
        %s = graph.apply "add"(%p, %c) attributes {halfulp.numerics = {fp_contract = "fast", fastmath = "", bf16 = ...}}

    ``fp_contract`` and ``fastmath`` say how the op computes, ``bf16`` whether its result is rounded. Whether a sum
    fuses is up to the sum. An experiment switches ops one by one with it; compiling does not run it.

    Raises:
        CompileError: there is no op of that number.
        GraphError: an unknown mode or flag.
    """

    name = "set-op-numerics"

    ops: tuple[int, ...] = ()
    fp_contract: str = "on"
    fastmath: tuple[str, ...] = ()
    bf16: str = "round-each"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = CompileOptions(
            fp_contract=cast(FpContract, self.fp_contract),
            fastmath=",".join(self.fastmath),
            bf16=cast(Bf16, self.bf16),
        )
        attribute = OpNumerics.of(options).to_attribute()
        found = dict(numbered_ops(op))
        for number in self.ops:
            if number not in found:
                raise CompileError(
                    f"{self.name}: there is no op number {number}; the ops of the module are numbered 0 to "
                    f"{len(found) - 1}"
                )
            found[number].attributes[OP_NUMERICS] = attribute
