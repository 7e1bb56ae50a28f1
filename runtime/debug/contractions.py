"""Which ops of a graph as built become an fma under given options, by number."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from halfulp.compiler.graph import Graph
from halfulp.compiler.numerics import contractions_of
from halfulp.compiler.op_numerics import numbered_ops
from halfulp.compiler.options import CompileOptions, ordered_flags
from halfulp.compiler.passes.contract_fma import ContractFmaPass
from halfulp.compiler.passes.widen_small_floats import WidenSmallFloatsPass

_NUMBER = "halfulp.number"


def contracted_ops(graph: Graph, options: CompileOptions) -> dict[int, int]:
    """For each sum that becomes an fma, by its number, the number of the product in it.

    Empty under ``strategy="llvm"``, where LLVM decides later on.
    """
    module = graph.module
    ops = dict(numbered_ops(module))
    number_of: dict[Operation, int] = {op: number for number, op in ops.items()}
    operands = {number: [number_of.get(value.owner) for value in op.arguments] for number, op in ops.items()}  # type: ignore[arg-type]
    before = {number: op.callee.data for number, op in ops.items()}
    for number, op in ops.items():
        op.attributes[_NUMBER] = IntegerAttr(number, i64)
    flags = tuple(ordered_flags(options.fastmath))
    WidenSmallFloatsPass(mode=options.bf16).apply(Context(), module)
    ContractFmaPass(strategy=options.strategy, mode=options.fp_contract, defaults=flags).apply(Context(), module)
    # An fma takes over the attributes of its sum, and the notes are in the order of the graph.
    fused = [
        number
        for _, op in numbered_ops(module)
        if isinstance(attribute := op.attributes.get(_NUMBER), IntegerAttr)
        and op.callee.data != before[number := attribute.value.data]
    ]
    result = {}
    for number, note in zip(fused, contractions_of(module), strict=True):
        product = operands[number][note.operand]
        assert product is not None
        result[number] = product
    return result
