"""`graph.cond` and `graph.while`: a branch and a loop, whose regions see the values around them; `graph.yield`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...dtypes import DType
from ...types import TensorType
from .types import GraphTensorType, graph_tensor, tensor_type


def is_one_bool(value_type: TensorType) -> bool:
    """Whether values of the type can decide on a branch: one bool, of any rank."""
    return value_type.dtype is DType.bool and all(dim == 1 for dim in value_type.shape)


@irdl_op_definition
class CondOp(IRDLOperation):
    """Runs one of two regions, and gives what it yields.

    ::

        %y = graph.cond %p : !graph.tensor<[], bool, cpu> -> !graph.tensor<[n], f32, cpu> then {
          graph.yield %x : !graph.tensor<[n], f32, cpu>
        } else {
          %0 = graph.apply "negate"(%x) : ...
          graph.yield %0 : !graph.tensor<[n], f32, cpu>
        }

    ``%p`` is one bool. Both regions yield values of the results' types.
    """

    name = "graph.cond"

    pred = operand_def(GraphTensorType)
    outputs = var_result_def(GraphTensorType)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$pred `:` type($pred) (`->` type($outputs)^)? `then` $then_region `else` $else_region attr-dict"

    def __init__(self, pred: SSAValue, out_types: Sequence[TensorType], then_region: Region, else_region: Region):
        super().__init__(
            operands=[pred],
            result_types=[[graph_tensor(t) for t in out_types]],
            regions=[then_region, else_region],
        )

    def verify_(self) -> None:
        _verify_predicate(self, self.pred)
        types = [tensor_type(value) for value in self.outputs]
        for word, region in (("then", self.then_region), ("else", self.else_region)):
            if region.block.args:
                raise VerifyException(f"{self.name}: the {word} region takes no arguments")
            _verify_yield(self, f"the {word} region", region.block, types)


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Runs its body as long as its predicate yields true; carries values from round to round, and gives the last ones.

    ::

        %r = graph.while %i : !graph.tensor<[], i64, cpu> -> !graph.tensor<[], i64, cpu> predicate {
        ^bb0(%k: !graph.tensor<[], i64, cpu>):
          %p = graph.apply "less"(%k, %n) : ...
          graph.yield %p : !graph.tensor<[], bool, cpu>
        } body {
        ^bb0(%k: !graph.tensor<[], i64, cpu>):
          %0 = graph.apply "add"(%k, %one) : ...
          graph.yield %0 : !graph.tensor<[], i64, cpu>
        }

    Both regions take the carried values; the types of these stay as they are.
    """

    name = "graph.while"

    initial = var_operand_def(GraphTensorType)
    outputs = var_result_def(GraphTensorType)
    predicate = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$initial `:` type($initial) `->` type($outputs) `predicate` $predicate `body` $body attr-dict"

    def __init__(self, initial: Sequence[SSAValue], predicate: Region, body: Region):
        super().__init__(
            operands=[initial],
            result_types=[[value.type for value in initial]],
            regions=[predicate, body],
        )

    def verify_(self) -> None:
        types = [tensor_type(value) for value in self.initial]
        if not types:
            raise VerifyException(f"{self.name}: carries at least one value, for its predicate to read")
        if [tensor_type(value) for value in self.outputs] != types:
            raise VerifyException(f"{self.name}: its results must have the types of the initial values")
        for word, region in (("predicate", self.predicate), ("body", self.body)):
            if [argument.type for argument in region.block.args] != [value.type for value in self.initial]:
                raise VerifyException(
                    f"{self.name}: the {word} region must take arguments of the initial values' types"
                )
        _verify_yield(self, "the body", self.body.block, types)
        yielded = _yielded(self, "the predicate region", self.predicate.block)
        if len(yielded) != 1:
            raise VerifyException(f"{self.name}: the predicate region must yield one bool, not {len(yielded)} values")
        _verify_predicate(self, yielded[0])


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region: the values that it gives."""

    name = "graph.yield"

    values = var_operand_def(GraphTensorType)
    traits = traits_def(IsTerminator(), HasParent(CondOp, WhileOp))
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])


def _verify_predicate(op: Operation, value: SSAValue) -> None:
    if not is_one_bool(tensor_type(value)):
        raise VerifyException(f"{op.name}: the predicate must be one bool, not {tensor_type(value)}")


def _yielded(op: Operation, subject: str, block: Block) -> Sequence[SSAValue]:
    if not isinstance(block.last_op, YieldOp):
        raise VerifyException(f"{op.name}: {subject} must end in graph.yield")
    return block.last_op.values


def _verify_yield(op: Operation, subject: str, block: Block, types: Sequence[TensorType]) -> None:
    values = _yielded(op, subject, block)
    if len(values) != len(types):
        raise VerifyException(f"{op.name}: {subject} must yield {len(types)} values, not {len(values)}")
    for index, (value, wanted) in enumerate(zip(values, types, strict=True)):
        if tensor_type(value) != wanted:
            raise VerifyException(
                f"{op.name}: {subject} must yield {wanted} as value {index}, not {tensor_type(value)}"
            )


def yielded_values(block: Block) -> Sequence[SSAValue]:
    """What a region that ends in `graph.yield` gives."""
    assert isinstance(block.last_op, YieldOp)
    return block.last_op.values


def values_read(op: Operation) -> Iterator[SSAValue]:
    """The operands of an op and of all ops inside it; those from around it are what it must wait for."""
    for inner in op.walk():
        yield from inner.operands


def blocks_of(op: Operation) -> Iterator[Block]:
    """All blocks inside an op, each before those inside of it."""
    for inner in op.walk():
        for region in inner.regions:
            yield from region.blocks
