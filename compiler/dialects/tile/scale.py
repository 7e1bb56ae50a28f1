"""Multiplication by powers of two."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .types import element_type


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """``value`` times two to the ``power``, rounded once; f32.

    ``expand-math`` makes it for targets that have an instruction for it. ``power`` is an integer of at most 2200 in
    magnitude, or a NaN, which gives NaN.
    """

    name = "tile.scale"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    power = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$value `,` $power attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, power: SSAValue) -> None:
        super().__init__(operands=[value, power], result_types=[value.type])

    def verify_(self) -> None:
        if element_type(self.result.type) != f32:
            raise VerifyException(f"tile.scale: works on f32, not on {self.result.type}")
