"""Elements of constant tables."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..lookup_table import TableAttr, table_of, verify_table
from .types import element_type, shape_of, with_shape


@irdl_op_definition
class LookupOp(IRDLOperation):
    """``table[index mod n]``, for a constant table of n f32; n is a power of two, ``index`` an i32 of any value.

    So an expansion takes the coefficients of the interval that its argument lies in. Up to 16 entries fit into a
    register, of which x86 CPUs with wide vectors take an element by one or two instructions.

    ::

        %y = tile.lookup %i in dense<[0.5, 2.0]> : tensor<2xf32> : tensor<64xi32> -> tensor<64xf32>
    """

    name = "tile.lookup"
    index = operand_def()
    table = prop_def(TableAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$index `in` $table attr-dict `:` type($index) `->` type($result)"

    def __init__(self, index: SSAValue, table: Sequence[float]) -> None:
        super().__init__(
            operands=[index],
            properties={"table": table_of(table)},
            result_types=[with_shape(shape_of(index.type), f32)],
        )

    def verify_(self) -> None:
        verify_table(self.name, self.table)
        if element_type(self.index.type) != i32:
            raise VerifyException(f"tile.lookup: index must be of i32, not {self.index.type}")
        expected = with_shape(shape_of(self.index.type), f32)
        if self.result.type != expected:
            raise VerifyException(f"tile.lookup: the result must be {expected}, not {self.result.type}")
