"""``expand-small-floats``: arithmetic on bf16 and f16 becomes f32 arithmetic, rounded after every op."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, ModuleOp, f32
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.tile.types import element_type, shape_of, with_shape

ROUNDED_ARITH = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp)
EXACT_MATH = (math.AbsFOp, math.CopySignOp, math.FmaOp)


@dataclass(frozen=True)
class ExpandSmallFloatsPass(ModulePass):
    """Computes in f32 what is not exact in a small float, on scalars and blocks.

    Before::

        %s = arith.addf %x, %y : tensor<4096xbf16>

    After::

        %a = tile.cast %x : tensor<4096xbf16> -> tensor<4096xf32>
        %b = tile.cast %y : tensor<4096xbf16> -> tensor<4096xf32>
        %c = arith.addf %a, %b : tensor<4096xf32>
        %s = tile.cast %c : tensor<4096xf32> -> tensor<4096xbf16>

    For ``+ - * /`` and ``sqrt`` the result is the correctly rounded one, although it is rounded twice: that is
    innocuous where the wide format has at least 2p + 2 bits for operands of p bits (S. Figueroa, "When is double
    rounding innocuous?", 1995; with subnormals P. Roux, "Innocuous double rounding of basic arithmetic operations",
    2014). f32 has 24; bf16 needs 18, f16 needs 24. An elementary function is the f32 one, rounded once more.

    Left alone: what only moves or compares bits, sign changes, maxima and minima, reductions (each of their steps is
    one of the ops above later on), and fma, where the theorem does not hold: ``convert-loops-to-llvm`` takes it
    through f64, rounding to odd.
    """

    name = "expand-small-floats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for candidate in list(op.walk()):
            if _rounds(candidate) and isinstance(element_type(candidate.results[0].type), BFloat16Type | Float16Type):
                _expand(candidate)


def _rounds(op: Operation) -> bool:
    return isinstance(op, ROUNDED_ARITH) or (op.dialect_name() == "math" and not isinstance(op, EXACT_MATH))


def _expand(op: Operation) -> None:
    result = op.results[0]
    small = element_type(result.type)
    block = op.parent
    assert block is not None
    wide = [tile.CastOp(operand, f32) if element_type(operand.type) == small else operand for operand in op.operands]
    operands = [new.result if isinstance(new, tile.CastOp) else new for new in wide]
    computed = type(op).create(
        operands=operands,
        result_types=[with_shape(shape_of(result.type), f32)],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    rounded = tile.CastOp(computed.results[0], small)
    rounded.result.name_hint = result.name_hint
    block.insert_ops_before([*(new for new in wide if isinstance(new, tile.CastOp)), computed, rounded], op)
    result.replace_all_uses_with(rounded.result)
    block.erase_op(op)
