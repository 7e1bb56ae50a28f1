"""Ops of the ``llvm`` dialects that are written, and looked up in the table of what selects, in one way each."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import Operation

from ...dialects import llvm_ext

BINARIES: tuple[type[Operation], ...] = (
    llvm.AShrOp,
    llvm.AddOp,
    llvm.AndOp,
    llvm.FAddOp,
    llvm.FDivOp,
    llvm.FMulOp,
    llvm.FRemOp,
    llvm.FSubOp,
    llvm.LShrOp,
    llvm.MulOp,
    llvm.OrOp,
    llvm.SDivOp,
    llvm.SRemOp,
    llvm.ShlOp,
    llvm.SubOp,
    llvm.UDivOp,
    llvm.URemOp,
    llvm.XOrOp,
)
"""Instructions of two operands of one type; the instruction is the op's name after the dialect."""

NUMBER_CASTS: tuple[type[Operation], ...] = (
    llvm.FPExtOp,
    llvm.FPTruncOp,
    llvm.SExtOp,
    llvm.SIToFPOp,
    llvm.TruncOp,
    llvm.ZExtOp,
    llvm_ext.FPExtOp,
    llvm_ext.FPToSIOp,
    llvm_ext.FPToUIOp,
    llvm_ext.FPTruncOp,
    llvm_ext.UIToFPOp,
)
"""Casts between number types: the instruction is the op's name after the dialect."""

INTRINSICS: tuple[type[Operation], ...] = (
    llvm.FAbsOp,
    llvm.FCeilOp,
    llvm.FCopySignOp,
    llvm.FCosOp,
    llvm.FExp2Op,
    llvm.FExpOp,
    llvm.FFloorOp,
    llvm.FLog2Op,
    llvm.FLogOp,
    llvm.FMAOp,
    llvm.FPowOp,
    llvm.FSinOp,
    llvm.FSqrtOp,
    llvm.VectorFMaxOp,
    llvm.VectorFMinOp,
)
"""Ops that are calls of an intrinsic of the same name, with all their operands."""


POINTER_CASTS: tuple[type[Operation], ...] = (llvm.BitcastOp, llvm.IntToPtrOp, llvm.PtrToIntOp)
"""Casts that keep the bits; they select everywhere."""


def instruction_of(op: type[Operation]) -> str:
    """``llvm.fpext`` -> ``fpext``."""
    return op.name.partition(".")[2]


def intrinsic_of(op: type[Operation]) -> str:
    """``llvm.intr.fabs`` -> ``llvm.fabs``."""
    return op.name.replace("llvm.intr.", "llvm.")
