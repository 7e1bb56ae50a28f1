"""`graph.load` and `graph.store`: memory of the caller's that a graph reads and changes.

A buffer is an input of the graph, of type ``!graph.buffer``. What an op loads is the contents at that time: later
changes do not reach it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...types import TensorType
from .types import GraphBufferType, GraphTensorType, graph_tensor, tensor_type


def tensor_of(buffer: TensorType) -> TensorType:
    """The type of what a buffer holds."""
    return TensorType(buffer.dtype, buffer.shape, buffer.device)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """What a buffer holds now.

    ``%0 = graph.load %cache : !graph.buffer<[n, 8], f32, cpu> -> !graph.tensor<[n, 8], f32, cpu>``
    """

    name = "graph.load"

    buffer = operand_def(GraphBufferType)
    result = result_def(GraphTensorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue) -> None:
        super().__init__(operands=[buffer], result_types=[graph_tensor(tensor_of(tensor_type(buffer)))])

    def verify_(self) -> None:
        if tensor_type(self.result) != tensor_of(tensor_type(self.buffer)):
            raise VerifyException(f"graph.load: the result must be {tensor_of(tensor_type(self.buffer))}")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Puts a tensor in the place of what a buffer holds.

    ``graph.store %0, %cache : !graph.tensor<[n, 8], f32, cpu>, !graph.buffer<[n, 8], f32, cpu>``
    """

    name = "graph.store"

    value = operand_def(GraphTensorType)
    buffer = operand_def(GraphBufferType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $buffer attr-dict `:` type($value) `,` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue) -> None:
        super().__init__(operands=[value, buffer])

    def verify_(self) -> None:
        if tensor_type(self.value) != tensor_of(tensor_type(self.buffer)):
            raise VerifyException(f"graph.store: the value must be {tensor_of(tensor_type(self.buffer))}")
