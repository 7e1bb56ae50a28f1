"""Elements of a constant table, by lane."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..lookup_table import TableAttr, verify_table
from .types import element_of, like, verify_scalar_or_vector


@irdl_op_definition
class LookupOp(IRDLOperation):
    """``table[index mod n]`` in each lane, as ``tile.lookup`` has it::

    %r = vector_ext.lookup %index in dense<[0.5, 2.0]> : tensor<2xf32> : vector<16xi32> -> vector<16xf32>
    """

    name = "vector_ext.lookup"
    index = operand_def()
    table = prop_def(TableAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$index `in` $table attr-dict `:` type($index) `->` type($result)"

    def __init__(self, index: SSAValue, table: TableAttr) -> None:
        super().__init__(operands=[index], properties={"table": table}, result_types=[like(index.type, f32)])

    def verify_(self) -> None:
        verify_scalar_or_vector(self.name, "index", self.index.type)
        verify_table(self.name, self.table)
        if element_of(self.index.type) != i32:
            raise VerifyException(f"vector_ext.lookup: index must be of i32, not {self.index.type}")
        expected = like(self.index.type, f32)
        if self.result.type != expected:
            raise VerifyException(f"vector_ext.lookup: the result must be {expected}, not {self.result.type}")
