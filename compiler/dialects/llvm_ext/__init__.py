"""The ``llvm_ext`` dialect: instructions of LLVM that upstream's ``llvm`` dialect lacks.

Upstream has no ``uitofp``, ``extractelement``, ``switch``, ``fence`` or atomics, no masked loads, compares and selects
by one ``i1`` only, and casts between floats without fastmath flags. Each op here stands for one LLVM
instruction (``gather`` and ``scatter``: an address computation and one intrinsic call) and is written to LLVM text
by ``codegen/llvm``.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .compute import (
    ExtractElementOp,
    FCmpOp,
    FloatPredicate,
    FloatPredicateAttr,
    FPExtOp,
    FPToSIOp,
    FPToUIOp,
    FPTruncOp,
    PoisonOp,
    SelectOp,
    UIToFPOp,
)
from .control import AtomicKind, AtomicKindAttr, AtomicRMWOp, CmpXchgOp, FenceOp, Ordering, OrderingAttr, SwitchOp
from .memory import GatherOp, MaskedLoadOp, MaskedStoreOp, ScatterOp

__all__ = [
    "AtomicKind",
    "AtomicKindAttr",
    "AtomicRMWOp",
    "CmpXchgOp",
    "ExtractElementOp",
    "FCmpOp",
    "FPExtOp",
    "FPToSIOp",
    "FPToUIOp",
    "FPTruncOp",
    "FenceOp",
    "FloatPredicate",
    "FloatPredicateAttr",
    "GatherOp",
    "LLVMExt",
    "MaskedLoadOp",
    "MaskedStoreOp",
    "Ordering",
    "OrderingAttr",
    "PoisonOp",
    "ScatterOp",
    "SelectOp",
    "SwitchOp",
    "UIToFPOp",
]

LLVMExt = Dialect(
    "llvm_ext",
    [
        AtomicRMWOp,
        CmpXchgOp,
        ExtractElementOp,
        FCmpOp,
        FPExtOp,
        FPToSIOp,
        FPToUIOp,
        FPTruncOp,
        FenceOp,
        GatherOp,
        MaskedLoadOp,
        MaskedStoreOp,
        PoisonOp,
        ScatterOp,
        SelectOp,
        SwitchOp,
        UIToFPOp,
    ],
    [AtomicKindAttr, FloatPredicateAttr, OrderingAttr],
)
