"""Multiplication by a power of two in one instruction."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .types import element_of, lanes_of, verify_scalar_or_vector

LANES = (0, 2, 4, 8, 16)


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """``value`` times two to the ``power``, rounded once, as ``tile.scale`` has it; for targets with AVX-512::

    %r = vector_ext.scale %value, %power : vector<16xf32>
    """

    name = "vector_ext.scale"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    power = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$value `,` $power attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, power: SSAValue) -> None:
        super().__init__(operands=[value, power], result_types=[value.type])

    def verify_(self) -> None:
        verify_scalar_or_vector(self.name, "value", self.value.type)
        if element_of(self.value.type) != f32 or lanes_of(self.value.type) not in LANES:
            raise VerifyException(
                f"vector_ext.scale: value must be an f32 or a vector of 2, 4, 8 or 16 of them, not {self.value.type}"
            )
